//! The experiments that are part of the program.

use std::fmt;
use std::str::FromStr;

use dray_experiment::{Experiment, FileError, Sweep};
use dray_suggest::suggest;

use crate::FiguresError;
use crate::vocabulary::VOCABULARY;

/// How the published experiments are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Protocol {
    /// Sync means one operation outstanding, async means the queue kept full.
    #[default]
    Paper,
    /// What the script of a published reproduction does: 128 buffers in flight in both modes,
    /// which differ in the wait instruction alone.
    Seed,
}

impl Protocol {
    /// Each of them.
    pub const ALL: [Protocol; 2] = [Protocol::Paper, Protocol::Seed];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Paper => "paper",
            Protocol::Seed => "seed",
        }
    }

    /// One line for the report.
    pub fn meaning(self) -> &'static str {
        match self {
            Protocol::Paper => {
                "sync: one operation or batch outstanding; async: the queue kept full"
            }
            Protocol::Seed => {
                "as the script of the reproduction does it: 128 buffers in flight in both modes, \
                 which differ in the wait instruction alone"
            }
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Protocol::ALL.into_iter();
        let found = all.find(|protocol| protocol.name() == text);
        found.ok_or_else(|| suggest(text, Protocol::ALL.map(Protocol::name)))
    }
}

macro_rules! files {
    ($dir:literal: $($name:literal),+ $(,)?) => {
        &[$((
            concat!($dir, $name, ".toml"),
            include_str!(concat!("../../../", $dir, $name, ".toml")),
        )),+]
    };
}

const PAPER: &[(&str, &str)] =
    files!["figures/": "fig2", "fig3", "fig4", "fig5", "fig6a", "fig6b", "fig7"];
/// What the published figures leave out.
const MORE: &[(&str, &str)] = files![
    "figures/more/": "knee", "enqcmd", "devices", "split", "misalignment", "faults", "waits",
    "priorities", "read-buffers", "tenants", "overtaking", "orders", "pages", "migration",
    "break-even", "vhost", "vhost-batch", "vhost-threshold", "vhost-cores",
    "tier-copies", "migrate-call", "tiering", "migration-volume", "channels", "in-kernel",
];
const SEED: &[(&str, &str)] =
    files!["figures/seed/": "modes", "fig2", "fig3", "fig4", "fig6a", "fig7"];

/// The experiments of a run.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The experiments, in their order.
    pub experiments: Vec<Experiment>,
    /// Parameters with several values, each with how many experiments were left out because they do not use it.
    pub narrowed: Vec<(String, usize)>,
}

impl Selection {
    /// A line for each parameter that left experiments out.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.narrowed.iter().map(|(name, count)| {
            let figures = dray_output::counted(*count, "figure");
            format!("{figures} without {name} left out; --only with their names runs them too")
        })
    }
}

/// All experiments of a protocol.
///
/// # Errors
/// A file that is not well-formed.
pub fn experiments(protocol: Protocol) -> Result<Vec<Experiment>, FiguresError> {
    let (files, more) = match protocol {
        Protocol::Paper => (PAPER, MORE),
        Protocol::Seed => (SEED, &[][..]),
    };
    let parse = |(origin, text): &(&str, &str)| {
        Experiment::parse(text, origin, &VOCABULARY).map_err(FiguresError::from)
    };
    files.iter().chain(more).map(parse).collect()
}

/// The experiments named in `only` (all if it is empty), with parameters given other values.
///
/// Without `only`, several values of a parameter leave out the experiments that do not use it: each of its points
/// would be there once for each value, with the same result or another question.
///
/// # Errors
/// An unknown figure, and what is wrong with a sweep, a name or a value of `set`.
pub fn select(
    protocol: Protocol,
    only: &[String],
    set: &[(String, String)],
) -> Result<Selection, FiguresError> {
    let mut chosen = experiments(protocol)?;
    let known: Vec<String> = chosen.iter().map(|e| e.id.clone()).collect();
    if let Some(name) = only.iter().find(|name| !known.contains(name)) {
        return Err(FiguresError::UnknownFigure {
            name: name.clone(),
            hint: suggest(name, known.iter().map(String::as_str)),
        });
    }
    if !only.is_empty() {
        chosen.retain(|experiment| only.contains(&experiment.id));
    }
    let mut narrowed = Vec::new();
    for (name, text) in set {
        let sweep = |reason| FileError::Sweep {
            origin: "--set".to_owned(),
            key: name.clone(),
            reason: Box::new(reason),
        };
        VOCABULARY
            .check_name(name)
            .map_err(|reason| FileError::Parameter {
                origin: "--set".to_owned(),
                key: name.clone(),
                reason: Box::new(reason),
            })?;
        let values = Sweep::parse(text).map_err(sweep)?;
        let count = chosen.len();
        if only.is_empty() && values.len() > 1 {
            chosen.retain(|experiment| !experiment.values(name).is_empty());
        }
        if chosen.is_empty() {
            return Err(FiguresError::NoFigureUses { name: name.clone() });
        }
        if chosen.len() < count {
            narrowed.push((name.clone(), count - chosen.len()));
        }
        for experiment in &mut chosen {
            experiment.set(name, &values)?;
        }
    }
    Ok(Selection {
        experiments: chosen,
        narrowed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_an_experiment_with_points_and_panels() {
        for protocol in [Protocol::Paper, Protocol::Seed] {
            for experiment in experiments(protocol).unwrap_or_else(|e| panic!("{e}")) {
                assert!(!experiment.points().is_empty(), "{}", experiment.id);
                assert!(!experiment.panels.is_empty(), "{}", experiment.id);
            }
        }
    }

    #[test]
    fn references_name_existing_tables() {
        let tables = crate::reference_tables().unwrap();
        for protocol in [Protocol::Paper, Protocol::Seed] {
            for experiment in experiments(protocol).unwrap() {
                for id in &experiment.reference {
                    assert!(
                        tables.iter().any(|t| t.id == *id),
                        "{}: {id}",
                        experiment.id
                    );
                }
            }
        }
    }

    #[test]
    fn selected_figures_keep_their_order_and_take_set_values() {
        let only = ["fig7".to_owned(), "fig4".to_owned()];
        let set = [("wq_size".to_owned(), "1..4*2".to_owned())];
        let chosen = select(Protocol::Paper, &only, &set).unwrap().experiments;
        let ids: Vec<&str> = chosen.iter().map(|e| e.id.as_str()).collect();
        assert_eq!(ids, ["fig4", "fig7"]);
        assert_eq!(chosen[0].values("wq_size").len(), 3);
    }

    #[test]
    fn a_sweep_leaves_out_the_figures_that_do_not_use_the_parameter() {
        let set = |values: &str| [("batch".to_owned(), values.to_owned())];
        let all = experiments(Protocol::Paper).unwrap();
        let using: Vec<&str> = all
            .iter()
            .filter(|experiment| !experiment.values("batch").is_empty())
            .map(|experiment| experiment.id.as_str())
            .collect();
        assert!(!using.is_empty() && using.len() < all.len());
        let chosen = select(Protocol::Paper, &[], &set("1..256*4")).unwrap();
        let ids: Vec<&str> = chosen.experiments.iter().map(|e| e.id.as_str()).collect();
        assert_eq!(ids, using);
        assert_eq!(
            chosen.narrowed,
            [("batch".to_owned(), all.len() - using.len())]
        );
        // One value multiplies nothing, and who names a figure wants it.
        let chosen = select(Protocol::Paper, &[], &set("4")).unwrap();
        assert_eq!(chosen.experiments.len(), all.len());
        let only = ["waits".to_owned()];
        let chosen = select(Protocol::Paper, &only, &set("1,4")).unwrap();
        assert_eq!(chosen.experiments[0].values("batch").len(), 2);
        assert!(chosen.narrowed.is_empty());
    }

    #[test]
    fn unknown_figures_and_parameters_have_a_suggestion() {
        let message = |only: &str, name: &str, values: &str| {
            let only: Vec<String> = only.split_terminator(',').map(str::to_owned).collect();
            let set = [(name.to_owned(), values.to_owned())];
            select(Protocol::Paper, &only, &set)
                .unwrap_err()
                .to_string()
        };
        assert!(message("fg3", "size", "64").contains("did you mean `fig3`?"));
        assert!(message("", "sise", "64").contains("did you mean `size`?"));
        assert!(message("", "size", "").contains("expands to nothing"));
        assert!(message("", "size", "4k..1k").contains("expands to nothing"));
        assert!(message("", "size", "0").contains("size = 0 is outside of 1 to 2G"));
    }
}
