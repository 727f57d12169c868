//! What kind of error it is, and what to type next.

use dray_experiment::StoreError;
use dray_platform::PlatformError;

use crate::FiguresError;

impl FiguresError {
    /// Whether what was asked for is at fault: a file, a name, a value. All else failed while running.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Platform(_)
            | Self::Profile(_)
            | Self::File(_)
            | Self::Sweep(_)
            | Self::Vocabulary(_)
            | Self::NoWorkQueue
            | Self::Limit { .. }
            | Self::NoNode { .. }
            | Self::NotMeasurable
            | Self::UnknownFigure { .. }
            | Self::Table { .. } => true,
            Self::Store(error) => matches!(error, StoreError::NotADirectory { .. }),
            Self::Point { source, .. } => source.is_bad_input(),
            _ => false,
        }
    }

    /// What to type next, if the message does not say it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Platform(PlatformError::Unknown { .. }) => {
                Some("--platform takes a built-in name or the path of a platform file".to_owned())
            }
            Self::Profile(error) => error.hint(),
            Self::NotPutBack { .. } => Some("dray config --undo puts the device back".to_owned()),
            Self::UnknownFigure { .. } => Some("--list shows all figures".to_owned()),
            Self::Point { source, .. } => match source.as_ref() {
                Self::Limit {
                    what: "batch",
                    limit,
                    ..
                } => {
                    let within = [1, 4, 16, 64].iter().filter(|b| *b <= limit);
                    let within: Vec<String> = within.map(u64::to_string).collect();
                    Some(format!(
                        "--set batch={}, or a profile that allows more, such as --config 1e1w-d",
                        within.join(",")
                    ))
                }
                Self::Limit { what, limit, .. } => Some(format!("--set {what}={limit}")),
                Self::NoNode { .. } => Some(
                    "--only leaves the figure out, or set the topology of the platform file"
                        .to_owned(),
                ),
                _ => source.hint(),
            },
            Self::NoFigureUses { name } => Some(format!(
                "--only fig3 --set {name}=... runs a figure with each value"
            )),
            Self::Interrupted { .. } => {
                Some("the same command goes on where it stopped".to_owned())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_restored_is_named_with_the_first_failure() {
        let failure = Box::new(FiguresError::NothingCompletes { operations: 3 });
        let back = dray_config::ConfigError::InUse {
            name: "wq0.0".to_owned(),
            clients: "1".to_owned(),
        };
        let error = FiguresError::NotPutBack {
            failure,
            device: "dsa0".to_owned(),
            back,
        };
        let text = error.to_string();
        let parts = ["3 operations", "dsa0 is not as it was", "clients is 1"];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert!(error.hint().is_some_and(|hint| hint.contains("--undo")));
        assert!(!error.is_bad_input());
    }
}
