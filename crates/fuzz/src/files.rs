//! Platform files, experiments, reference tables and saved results: read, or refused with words.

use dray_experiment::{Experiment, Kind, Parameter, ReferenceTable, Vocabulary, read_json};
use dray_platform::PlatformFile;

use crate::draw::Draw;
use crate::text::text;

const PLATFORMS: &[&str] = &[
    include_str!("../../../platforms/spr-2s.toml"),
    include_str!("../../../platforms/dsa2-2s.toml"),
];

const EXPERIMENTS: &[&str] = &[include_str!("../../../figures/fig7.toml")];

/// The words of that experiment.
const VOCABULARY: Vocabulary = Vocabulary::new(&[
    Parameter {
        name: "op",
        kind: Kind::Choice(&["memmove", "fill"]),
        help: "operation",
    },
    Parameter {
        name: "mode",
        kind: Kind::Choice(&["sync", "async"]),
        help: "one outstanding, or the queue kept full",
    },
    Parameter {
        name: "engines",
        kind: Kind::Count { min: 1, max: 64 },
        help: "engines of the group",
    },
    Parameter {
        name: "size",
        kind: Kind::Bytes {
            min: 1,
            max: 1 << 31,
        },
        help: "bytes of one operation",
    },
    Parameter {
        name: "batch",
        kind: Kind::Count { min: 1, max: 1024 },
        help: "operations in a batch descriptor",
    },
])
.with_backends(&["model", "cpu"])
.with_metrics(&["throughput_gbps"]);

const TABLES: &[&str] = &[
    include_str!("../../../reference/ceilings.toml"),
    include_str!("../../../reference/sync-latency.toml"),
];

const RESULTS: &[&str] = &[include_str!("../data/results.json")];

/// Reads a file that `bytes` make.
///
/// # Panics
///
/// If the parser violates an invariant.
pub fn files(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let refused = match draw.below(4) {
        0 => {
            let file = PlatformFile::parse(&text(draw, PLATFORMS), "hostile");
            file.map(|file| assert!(!file.list().is_empty()))
                .map_err(|error| error.to_string())
        }
        1 => {
            let file = Experiment::parse(&text(draw, EXPERIMENTS), "hostile", &VOCABULARY);
            file.map(|file| assert!(file.points().len() <= dray_experiment::MAX_POINTS))
                .map_err(|error| error.to_string())
        }
        2 => {
            let file = ReferenceTable::parse(&text(draw, TABLES), "hostile");
            file.map(|_| ()).map_err(|error| error.to_string())
        }
        _ => {
            let file = read_json(&text(draw, RESULTS));
            file.map(|_| ()).map_err(|error| error.to_string())
        }
    };
    if let Err(message) = refused {
        assert!(!message.is_empty(), "an error without words");
    }
}

#[cfg(test)]
mod tests {
    use dray_experiment::write_json;

    use super::*;

    #[test]
    fn the_unedited_files_are_valid() {
        for text in PLATFORMS {
            PlatformFile::parse(text, "good").unwrap();
        }
        for text in EXPERIMENTS {
            Experiment::parse(text, "good", &VOCABULARY).unwrap();
        }
        for text in TABLES {
            ReferenceTable::parse(text, "good").unwrap();
        }
        for text in RESULTS {
            let (header, outcomes) = read_json(text).unwrap();
            assert_eq!(write_json(&header, &outcomes).unwrap(), *text);
        }
    }
}
