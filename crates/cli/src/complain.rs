//! How errors are printed: what was wrong, why, and what to type next.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

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
pub(crate) fn exit(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {}", with_causes(error.as_ref()));
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
        Some(FiguresError::Interrupted { .. }) => ExitCode::from(130),
        Some(error) if error.is_bad_input() => ExitCode::from(2),
        _ if usage.is_some() || flows.is_some() || error.is::<ProfileError>() => ExitCode::from(2),
        _ if hardware.is_some() => ExitCode::from(3),
        _ if session.is_some_and(RunError::is_bad_input) => ExitCode::from(2),
        _ if fabric.is_some_and(PcieError::is_bad_input) => ExitCode::from(2),
        _ => match config {
            Some(ConfigError::NoDriver { .. }) => ExitCode::from(3),
            Some(ConfigError::Profile(ProfileError::Invalid { .. })) => ExitCode::FAILURE,
            Some(ConfigError::Profile(_) | ConfigError::NoDevice { .. }) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
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
    error.exit()
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
