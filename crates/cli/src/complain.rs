//! How errors are printed: what was wrong, why, and what to type next.

use std::borrow::Cow;
use std::error::Error;
use std::process::ExitCode;
use std::{fmt, io};

use clap::error::ErrorKind;

use dray::hw::HwError;
use dray_config::ConfigError;
use dray_fabric::FabricError;
use dray_figures::FiguresError;
use dray_idxd::ProfileError;
use dray_pcie::PcieError;
use dray_run::RunError;
use dray_tier::TierError;

/// Something typed that cannot be, found by the command itself.
#[derive(Debug)]
pub(crate) struct Usage {
    message: String,
    hint: String,
}

impl Usage {
    pub(crate) fn error(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Usage {
            message: message.into(),
            hint: hint.into(),
        })
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Usage {}

const HARDWARE_HINT: &str =
    "dray doctor says what is missing; without a device: dray run --profile 1e1w-d -- dray ...";

/// Prints the error to stderr; the exit code that it has.
pub(crate) fn exit(error: &anyhow::Error) -> u8 {
    eprintln!("error: {}", shortened(&with_causes(error.as_ref())));
    let figures = error.downcast_ref::<FiguresError>();
    let usage = error.downcast_ref::<Usage>();
    let config = match figures {
        Some(FiguresError::Setting(error)) => Some(error),
        _ => error.downcast_ref::<ConfigError>(),
    };
    let session = error.downcast_ref::<RunError>();
    let fabric = error.downcast_ref::<PcieError>();
    let flows = error.downcast_ref::<FabricError>();
    let hardware = match figures {
        Some(FiguresError::Hardware(error)) => Some(error),
        _ => error.chain().find_map(hardware),
    };
    let hint = figures
        .and_then(FiguresError::hint)
        .or(config.and_then(ConfigError::hint))
        .or(session.and_then(RunError::hint))
        .or(fabric.and_then(PcieError::hint))
        .or(flows.and_then(FabricError::hint))
        .or(usage.map(|u| u.hint.clone()))
        .or(hardware.map(|_| HARDWARE_HINT.to_owned()))
        .or(error.downcast_ref::<TierError>().and_then(TierError::hint));
    if let Some(hint) = hint {
        eprintln!("hint: {hint}");
    }
    match figures {
        Some(FiguresError::Interrupted { .. }) => 130,
        Some(error) if error.is_bad_input() => 2,
        _ if usage.is_some() || flows.is_some() || error.is::<ProfileError>() => 2,
        _ if hardware.is_some() => 3,
        _ if session.is_some_and(RunError::is_bad_input) => 2,
        _ if fabric.is_some_and(PcieError::is_bad_input) => 2,
        _ => match config {
            Some(ConfigError::NoDriver { .. }) => 3,
            Some(ConfigError::Profile(ProfileError::Invalid { .. })) => 1,
            Some(ConfigError::Profile(_) | ConfigError::NoDevice { .. }) => 2,
            _ => 1,
        },
    }
}

/// Prints why the arguments cannot be read, or the help that was asked for; the exit code.
pub(crate) fn misparsed(error: &clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::InvalidUtf8 {
        // clap does not say which one. What follows `--` may be anything.
        let arguments = std::env::args_os().skip(1);
        let ours = arguments.take_while(|argument| argument != "--");
        let bad: Vec<String> = ours
            .filter(|argument| argument.to_str().is_none())
            .map(|argument| format!("{argument:?}"))
            .collect();
        eprintln!("error: not text in UTF-8: {}", bad.join(", "));
        return ExitCode::from(2);
    }
    if error.kind() == ErrorKind::TooManyValues && error.to_string().contains("'--stats'") {
        eprint!("{error}");
        eprintln!("\nhint: --stats-file FILE writes them as JSON");
        return ExitCode::from(2);
    }
    // Help that nobody can read is no success.
    match error.print() {
        Err(failed) if failed.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("error: standard output: {failed}");
            ExitCode::FAILURE
        }
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
    }
}

/// Most characters of a message: what a file or an argument says in it may be of any length.
const LONGEST: usize = 2000;

/// A message without its middle, if it is long.
fn shortened(text: &str) -> Cow<'_, str> {
    let mut ends = text.char_indices().map(|(at, _)| at);
    let count = text.chars().count();
    if count <= LONGEST {
        return text.into();
    }
    let half = LONGEST / 2;
    let first = ends.nth(half).unwrap_or_default();
    let last = ends.nth(count - 2 * half - 1).unwrap_or_default();
    let left_out = count - 2 * half;
    format!(
        "{} [{left_out} characters] {}",
        &text[..first],
        &text[last..]
    )
    .into()
}

/// The error of a mover of hardware, if this is one.
fn hardware<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a HwError> {
    let boxed = error.downcast_ref::<Box<HwError>>();
    boxed.map(Box::as_ref).or(error.downcast_ref())
}

/// The message and its causes, without those that it contains already.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_beginning_and_its_end() {
        for count in [0, 1, LONGEST] {
            let text = "ü".repeat(count);
            assert_eq!(shortened(&text), text);
        }
        for count in [LONGEST + 1, LONGEST + 2, 100_000] {
            let text = format!("a{}z", "ü".repeat(count - 2));
            let short = shortened(&text);
            let said = format!(" [{} characters] ", count - LONGEST);
            assert!(short.starts_with('a') && short.ends_with('z'), "{count}");
            assert!(short.contains(&said), "{count}");
            assert_eq!(short.chars().count(), LONGEST + said.len());
        }
    }
}
