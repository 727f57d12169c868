//! `dray doctor`.

mod capture;
mod texts;

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use dray_doctor::{CHECKS, Captured, Diagnosis, Live, Severity, WithMessages, diagnose};

use crate::complain::Usage;
use crate::print;
use crate::terminal::{self, Verdict};

const EXAMPLES: &str = "\
Examples:
  dray doctor                              faults of this machine, and fixes
  dray doctor dmesg.txt                    messages of a log, explained
  journalctl -k -b -o json | dray doctor - the same from standard input
  dray doctor --message \"Error[0x80110000] dsa0/wq0.0: Unknown error\"
  sudo dray doctor --format markdown       for an issue; root reads more files
  sudo dray doctor --capture dsa.tar.gz    to send to others; lists its files
  dray doctor --from dsa.tar.gz            diagnose that machine here
  dray doctor --explain sva                reason and documents of a check

FILE is any text, plain or compressed by gzip, of any length: dmesg, a journal
(also its JSON), the output of a tool, a question in a forum.
Nothing is changed: files are read, no command is run. Of the kernel's messages
and command line only what concerns the device is read and captured.
Exit codes: 0 no error (there may be warnings and notes), 1 an error (in a text
also a warning), 2 usage or bad input, 3 there is no DSA.";

/// An attribute answers within microseconds; one of a stuck driver never.
const DEADLINE: Duration = Duration::from_secs(2);
/// Width of what does not go to a terminal.
const WIDTH: usize = 96;

/// Arguments of `dray doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A log or any other text whose messages are explained; - is standard input.
    #[arg(value_name = "FILE", conflicts_with_all = ["from", "capture", "explain", "list"])]
    files: Vec<PathBuf>,
    /// Diagnose a captured machine: an archive of --capture, or a directory of the same form.
    #[arg(long, value_name = "FILE", conflicts_with = "capture")]
    from: Option<PathBuf>,
    /// Write the files that are read to a new tar.gz, and list them.
    #[arg(long, value_name = "FILE.tar.gz")]
    capture: Option<PathBuf>,
    /// An error message to explain; may be repeated.
    #[arg(long, value_name = "TEXT")]
    message: Vec<String>,
    /// Judge this machine, too, with what the messages say.
    #[arg(long, requires = "message", conflicts_with_all = ["from", "files"])]
    here: bool,
    /// How the diagnosis is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Say why a check matters, and where it is documented.
    #[arg(long, value_name = "CHECK", conflicts_with_all = ["from", "capture", "list"])]
    explain: Option<String>,
    /// List the checks, in the order of the chain.
    #[arg(long, conflicts_with_all = ["from", "capture"])]
    list: bool,
}

/// How a diagnosis is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The chain, then the findings, for people.
    Table,
    /// One JSON document.
    Json,
    /// For an issue report.
    Markdown,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.list {
        return list();
    }
    if let Some(id) = &args.explain {
        return explain(id);
    }
    let messages = messages(args)?;
    if let Some(path) = &args.from {
        let captured = open(path)?;
        return match messages {
            Some(messages) => {
                let machine = WithMessages::new(&captured, messages);
                report(args.format, &diagnose(&machine))
            }
            None => report(args.format, &diagnose(&captured)),
        };
    }
    if !args.files.is_empty() || (messages.is_some() && !args.here && args.capture.is_none()) {
        return texts::run(args, messages.as_deref());
    }
    let mut live = Live::new(DEADLINE);
    if env::var_os("DRAY_SYSFS_PATH").is_some_and(|path| !path.is_empty()) {
        live = live.with_sysfs(dray_config::sysfs_root());
    } else if dray_config::session_state().is_some() {
        live = live.in_session();
    }
    if let Some(messages) = messages {
        live = live.with_messages(messages);
    }
    match &args.capture {
        Some(path) => capture::run(&live, path),
        None => report(args.format, &diagnose(&live)),
    }
}

fn open(path: &Path) -> anyhow::Result<Captured> {
    Captured::open(path).map_err(|error| {
        let error = anyhow::Error::new(error);
        let hint = "--from takes what `dray doctor --capture FILE.tar.gz` wrote, as it is";
        Usage::error(format!("{error:#}"), hint)
    })
}

/// What programs said, if anything was given.
fn messages(args: &Args) -> anyhow::Result<Option<String>> {
    for message in &args.message {
        let is_file = !message.contains(char::is_whitespace) && Path::new(message).is_file();
        if message == "-" || is_file {
            let hint = format!("to explain what is in it: dray doctor {message}");
            return Err(Usage::error(
                format!("--message takes a text, and {message} is a file"),
                hint,
            ));
        }
    }
    let text = args.message.join("\n");
    match args.message.is_empty() {
        true => Ok(None),
        false if text.trim().is_empty() => Err(Usage::error(
            "--message is empty",
            "give the line that the program printed",
        )),
        false => Ok(Some(text)),
    }
}

/// Columns to write.
fn width() -> usize {
    terminal::width().unwrap_or(WIDTH)
}

/// What a line of a diagnosis, or of an explanation, says of the machine.
fn verdict(line: &str) -> Option<Verdict> {
    let numbered = line
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .strip_prefix(". ");
    let word = numbered.unwrap_or(line).split([' ', ':']).next()?;
    match word {
        "error" => Some(Verdict::Bad),
        "warning" => Some(Verdict::Doubtful),
        "ok" => Some(Verdict::Good),
        _ => None,
    }
}

fn report(format: Format, diagnosis: &Diagnosis) -> anyhow::Result<ExitCode> {
    let text = match format {
        Format::Table => {
            let text = dray_doctor::table(diagnosis, width());
            terminal::judged(&text, verdict)?;
            return Ok(code(diagnosis));
        }
        Format::Markdown => dray_doctor::markdown(diagnosis),
        Format::Json => print::document(diagnosis)?,
    };
    print::all(&mut io::stdout().lock(), &text)?;
    Ok(code(diagnosis))
}

fn code(diagnosis: &Diagnosis) -> ExitCode {
    match diagnosis.worst() {
        _ if diagnosis.device_missing => ExitCode::from(3),
        Some(Severity::Error) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

fn list() -> anyhow::Result<ExitCode> {
    let mut table = print::plain(["check", "what is looked at", "after"]);
    for check in CHECKS {
        table.add_row([check.id, check.title, &check.needs.join(", ")]);
    }
    print::all(&mut io::stdout().lock(), &format!("{table}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn explain(id: &str) -> anyhow::Result<ExitCode> {
    let Some(check) = CHECKS.iter().find(|check| check.id == id) else {
        let hint = dray_suggest::suggest(id, CHECKS.iter().map(|check| check.id));
        return Err(Usage::error(
            format!("there is no check {id:?}; {hint}"),
            "dray doctor --list",
        ));
    };
    print::all(&mut io::stdout().lock(), &dray_doctor::explain(check))?;
    Ok(ExitCode::SUCCESS)
}
