//! What parameters and their values are called in charts.

use dray_experiment::{Point, Value};

use crate::Metric;
use crate::task::Backend;
use crate::vocabulary::VOCABULARY;

/// Title of the category axis.
pub(crate) fn axis(parameter: &str) -> String {
    match parameter {
        "size" => "Transfer size (bytes)".to_owned(),
        "engines" => "Engines".to_owned(),
        "wq_size" => "Work queue size (entries)".to_owned(),
        "batch" => "Batch size (descriptors)".to_owned(),
        "depth" => "Descriptors outstanding".to_owned(),
        "count" => "Descriptors of the burst".to_owned(),
        "cores" => "Cores".to_owned(),
        "devices" => "Devices".to_owned(),
        "pages" => "Pages of 4 KiB".to_owned(),
        "channels" => "Channels".to_owned(),
        "read_buffers" => "Read buffers of the group".to_owned(),
        "migrator" => "Who migrates".to_owned(),
        "slow" => "Memory of the slow tier".to_owned(),
        "working_set" => "Working set".to_owned(),
        "order" => "Order n: up to 2^n pages copied together".to_owned(),
        "second" => "Time since the start (s)".to_owned(),
        "neighbour_size" => "Copies of the neighbour (bytes; 0: no neighbour)".to_owned(),
        other => VOCABULARY
            .parameters()
            .iter()
            .find(|p| p.name == other)
            .map_or(other.to_owned(), |p| sentence(p.help)),
    }
}

/// A value along the axis.
pub(crate) fn category(parameter: &str, value: &Value) -> String {
    match parameter {
        "op" => operation(&value.to_string()).to_owned(),
        "migrator" => system(&value.to_string()).to_owned(),
        "slow" => tier(&value.to_string()).to_owned(),
        _ => VOCABULARY.label(parameter, value),
    }
}

/// A series: who did it, and the values that distinguish it from the others.
///
/// `beside_core`: a core stands in the same chart, so that the device must be named.
pub(crate) fn series(
    backend: Backend,
    names: &[String],
    point: &Point,
    beside_core: bool,
) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut nodes = String::new();
    for name in names {
        let Some(value) = point.get(name) else {
            continue;
        };
        match name.as_str() {
            // A letter alone says nothing.
            "src_node" if !names.iter().any(|n| n == "dst_node") => {
                parts.push(format!("source in {} memory", word(&value.to_string())));
            }
            "dst_node" if !names.iter().any(|n| n == "src_node") => {
                parts.push(format!(
                    "destination in {} memory",
                    word(&value.to_string())
                ));
            }
            "src_node" | "dst_node" => {
                if !nodes.is_empty() {
                    nodes.push(',');
                }
                nodes.push_str(node(&value.to_string()));
            }
            _ => parts.push(one(name, value)),
        }
    }
    if !nodes.is_empty() {
        parts.push(nodes);
    }
    let who = match backend {
        Backend::Model if !beside_core => "",
        Backend::Model => "DSA",
        Backend::Device if dray::hw::is_virtual() => "virtual DSA here",
        Backend::Device => "DSA here",
        Backend::Cpu | Backend::Measured => "one core",
    };
    match (who.is_empty(), parts.is_empty()) {
        (true, true) => "DSA".to_owned(),
        (true, false) => parts.join(", "),
        (false, true) => who.to_owned(),
        (false, false) => format!("{who}: {}", parts.join(", ")),
    }
}

fn one(name: &str, value: &Value) -> String {
    let text = VOCABULARY.label(name, value);
    match name {
        "size" => bytes(&text),
        "batch" => format!("batch {text}"),
        "wq_size" => match value.integer() {
            Some(1) => "1 entry".to_owned(),
            _ => format!("{text} entries"),
        },
        "engines" => match value.integer() {
            Some(1) => "1 engine".to_owned(),
            _ => format!("{text} engines"),
        },
        "devices" => match value.integer() {
            Some(1) => "1 device".to_owned(),
            _ => format!("{text} devices"),
        },
        "cores" => match value.integer() {
            Some(1) => "1 core".to_owned(),
            _ => format!("{text} cores"),
        },
        "payload" => format!("{} each", bytes(&text)),
        "core_node" => match text.as_str() {
            "local" => "cores on the device's socket".to_owned(),
            _ => "cores on the other socket".to_owned(),
        },
        "sharing" => match text.as_str() {
            "queue" => "one queue".to_owned(),
            "engine" => "one engine".to_owned(),
            _ => "own engine".to_owned(),
        },
        "fault" => match text.as_str() {
            "block" => "block on fault".to_owned(),
            _ => "software touches".to_owned(),
        },
        "dst_align" => format!("{text} B aligned"),
        "depth" => format!("{text} outstanding"),
        "buffers" => format!("{text} in flight"),
        "op" => operation(&text).to_owned(),
        "copier" => match text.as_str() {
            "core" => "copied by the core".to_owned(),
            _ => "copied by DSA".to_owned(),
        },
        "queues" => match text.as_str() {
            "own" => "a dedicated WQ each".to_owned(),
            "locked" => "one dedicated WQ, lock".to_owned(),
            _ => "one shared WQ".to_owned(),
        },
        "threshold" => match value.integer() {
            Some(0) => "no threshold".to_owned(),
            _ => format!("core below {}", bytes(&text)),
        },
        "submit" => match text.as_str() {
            "movdir64b" => "dedicated WQ".to_owned(),
            _ => "shared WQ".to_owned(),
        },
        "wait" => match text.as_str() {
            "poll" => "polling".to_owned(),
            "umwait" => "UMWAIT".to_owned(),
            _ => text,
        },
        "migrator" => system(&text).to_owned(),
        "system" => copier(&text).to_owned(),
        "slow" => tier(&text).to_owned(),
        "phase" => match text.as_str() {
            "in-progress" => "migration in progress".to_owned(),
            _ => text,
        },
        "working_set" | "policy" | "direction" => text,
        "mode" | "placement" | "access" | "kind" | "layout" => text,
        _ => format!("{name} {text}"),
    }
}

fn bytes(label: &str) -> String {
    match label.strip_suffix(|c: char| c.is_ascii_alphabetic()) {
        Some(number) => format!("{number} {}iB", &label[number.len()..]),
        None => format!("{label} B"),
    }
}

fn node(name: &str) -> &str {
    match name {
        "local" => "L",
        "remote" => "R",
        "cxl" => "C",
        other => other,
    }
}

fn word(node: &str) -> &str {
    match node {
        "cxl" => "CXL",
        other => other,
    }
}

/// An operation in words.
pub(crate) fn operation(name: &str) -> &str {
    match name {
        "noop" => "NOOP",
        "memmove" => "copy",
        "fill" => "fill",
        "nt_fill" => "NT fill",
        "compare" => "compare",
        "compval" => "compare pattern",
        "dualcast" => "dualcast",
        "crc" => "CRC",
        "copy_crc" => "copy with CRC",
        other => other,
    }
}

/// A system that migrates pages.
fn system(name: &str) -> &str {
    match name {
        "kernel" => "kernel, one core",
        "huge-dsa" => "kernel, DSA for huge pages",
        "concurrent-threads" => "concurrent, threads",
        "concurrent-dsa" => "concurrent, DSA",
        "user-core" => "dray tier, one core",
        "user-dsa" => "dray tier, DSA",
        other => other,
    }
}

/// Who copies what a kernel migrates.
fn copier(name: &str) -> &str {
    match name {
        "core" => "one core",
        "huge-pages" => "DSA for huge pages",
        "threads" => "four threads",
        "device" => "DSA from 12 pages on",
        "every-list" => "DSA for all",
        other => other,
    }
}

/// Memory of the slow tier.
fn tier(name: &str) -> &str {
    match name {
        "dram" => "remote DRAM",
        "cxl" => "CXL",
        "pm" => "PM",
        other => other,
    }
}

/// A part of a stacked bar.
pub(crate) fn metric(name: &str) -> &str {
    match Metric::named(name) {
        Some(Metric::Prepare) => "prepare",
        Some(Metric::Submit) => "submit",
        Some(Metric::Wait) => "wait",
        Some(Metric::Throughput) => "first tenant",
        Some(Metric::NeighbourThroughput) => "neighbour",
        Some(Metric::Forward) => "port, switching",
        Some(Metric::Ring) => "rings",
        Some(Metric::Copy) => "copy",
        Some(Metric::Offload) => "descriptors, account",
        Some(Metric::MigrateCopy) => "copy",
        Some(Metric::MigrateRest) => "all else",
        _ => name,
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use dray_experiment::Kind;

    use super::*;

    #[test]
    fn series_are_named_by_the_parameters_that_differ() {
        let point = Point::default()
            .with("src_node", "local")
            .with("dst_node", "cxl")
            .with("size", 1024)
            .with("batch", 4);
        let name = |backend, names: &[&str], beside| {
            let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
            series(backend, &names, &point, beside)
        };
        assert_eq!(
            name(Backend::Model, &["src_node", "dst_node"], true),
            "DSA: L,C"
        );
        assert_eq!(
            name(Backend::Cpu, &["src_node", "dst_node"], true),
            "one core: L,C"
        );
        assert_eq!(
            name(Backend::Model, &["size", "batch"], false),
            "1 KiB, batch 4"
        );
        assert_eq!(name(Backend::Measured, &["mode"], true), "one core");
        assert_eq!(name(Backend::Model, &[], false), "DSA");
    }

    /// A word that is added to the vocabulary must not fall to the label of another.
    #[test]
    fn every_word_of_a_parameter_has_a_label_of_its_own() {
        for parameter in VOCABULARY.parameters() {
            let Kind::Choice(words) = parameter.kind else {
                continue;
            };
            let label = |word: &&str| one(parameter.name, &Value::Text((*word).to_owned()));
            let mut labels: Vec<String> = words.iter().map(label).collect();
            labels.sort();
            labels.dedup();
            // Software touches a page by writing or by reading.
            let alike = usize::from(parameter.name == "fault");
            assert_eq!(labels.len() + alike, words.len(), "{}", parameter.name);
        }
    }
}
