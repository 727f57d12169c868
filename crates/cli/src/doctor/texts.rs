//! `dray doctor FILE...` and `dray doctor --message TEXT`.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use dray_doctor::{Captured, Explanation, Severity, TextError, Texts, diagnose};

use super::{Args, Format, width};
use crate::complain::Usage;
use crate::print;
use crate::terminal;

/// Explains the messages of files and of the command line. This machine is not looked at.
pub(super) fn run(args: &Args, messages: Option<&str>) -> anyhow::Result<ExitCode> {
    if let [path] = args.files.as_slice()
        && messages.is_none()
        && let Some(captured) = capture(path)
    {
        return super::report(args.format, &diagnose(&captured));
    }
    let mut texts = Texts::new();
    for path in &args.files {
        read(&mut texts, path)?;
    }
    if let Some(messages) = messages {
        texts.message(messages);
    }
    let explanation = texts.finish();
    let text = match args.format {
        Format::Table => {
            let text = dray_doctor::messages(&explanation, width());
            terminal::judged(&text, super::verdict)?;
            return Ok(code(&explanation));
        }
        Format::Markdown => dray_doctor::messages_markdown(&explanation),
        Format::Json => print::document(&explanation)?,
    };
    print::all(&mut io::stdout().lock(), &text)?;
    Ok(code(&explanation))
}

fn code(explanation: &Explanation) -> ExitCode {
    match explanation.worst() {
        Some(Severity::Error | Severity::Warning) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// A machine, if the file is one that --capture wrote.
fn capture(path: &Path) -> Option<Captured> {
    let is_archive = path.is_file() || path.join("capture.json").is_file();
    is_archive.then(|| Captured::open(path).ok()).flatten()
}

fn read(texts: &mut Texts, path: &Path) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return texts
            .read("standard input", io::stdin())
            .map_err(|error| refuse("standard input", &error));
    }
    let name = path.display().to_string();
    if path.is_dir() {
        let hint = format!("name the files in it, such as dray doctor {name}/*");
        return Err(Usage::error(format!("{name} is a directory"), hint));
    }
    let file = File::open(path).map_err(|error| refuse(&name, &error.into()))?;
    texts
        .read(&name, file)
        .map_err(|error| refuse(&name, &error))
}

fn refuse(name: &str, error: &TextError) -> anyhow::Error {
    let hint = match error {
        TextError::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            format!("sudo dray doctor {name}")
        }
        TextError::Empty => "dmesg may need root: sudo dmesg | dray doctor -".to_owned(),
        TextError::Compressed { command, .. } => format!("{command} {name} | dray doctor -"),
        TextError::Archive => {
            format!(
                "tar -xOf {name} | dray doctor -; what `dray doctor --capture` wrote is read as it is"
            )
        }
        _ => "give a text: the output of dmesg or journalctl, of a tool, or a question".to_owned(),
    };
    Usage::error(format!("{name} {error}"), hint)
}
