//! Results of a run that was stopped, so that the same command goes on with the cases that are left.

use std::collections::HashMap;

use serde_json::Value;

use crate::case::Case;
use crate::context::Context;
use crate::timing::{Counter, Timing};

/// Key of the context that a stopped run leaves: how many cases it had not finished.
pub const UNFINISHED: &str = "dray_unfinished";
/// Key of the context that names the command, without which results are not gone on with.
pub const COMMAND: &str = "dray_command";

/// Measurements by the name of their case, in the order of their repetitions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Finished {
    timings: HashMap<String, Vec<(Timing, Vec<Counter>)>>,
}

impl Finished {
    /// Reads a result as [`write_json`](crate::write_json) writes it. Nothing is taken from one that
    /// is complete, was made by another command or version, or on another machine.
    pub fn read(text: &str, context: &Context) -> Finished {
        Finished::parse(text, context).unwrap_or_default()
    }

    fn parse(text: &str, context: &Context) -> Option<Finished> {
        let document: Value = serde_json::from_str(text).ok()?;
        let found = document.get("context")?;
        found.get(UNFINISHED)?;
        let ours = serde_json::to_value(context).ok()?;
        let same = [
            COMMAND,
            "dray_time",
            "dray_version",
            "dray_platform",
            "dray_profile",
        ];
        if same.iter().any(|key| found.get(key) != ours.get(key)) {
            return None;
        }
        let mut timings: HashMap<String, Vec<(Timing, Vec<Counter>)>> = HashMap::new();
        for line in document.get("benchmarks")?.as_array()? {
            let is_measurement = line.get("run_type")?.as_str()? == "iteration"
                && line.get("error_occurred").is_none();
            if is_measurement {
                let name = line.get("run_name")?.as_str()?.to_owned();
                timings.entry(name).or_default().push(measurement(line)?);
            }
        }
        Some(Finished { timings })
    }

    /// The measurements of a case; empty if it has none.
    pub fn of(&self, case: &Case) -> &[(Timing, Vec<Counter>)] {
        let known = self.timings.get(&case.to_string());
        known.map_or(&[], Vec::as_slice)
    }

    /// Cases that have measurements.
    pub fn cases(&self) -> usize {
        self.timings.len()
    }
}

fn measurement(line: &Value) -> Option<(Timing, Vec<Counter>)> {
    let number = |key: &str| line.get(key)?.as_f64();
    let to_ns = match line.get("time_unit")?.as_str()? {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let timing = Timing {
        iterations: line.get("iterations")?.as_u64()?,
        real_ns: number("real_time")? * to_ns,
        cpu_ns: number("cpu_time")? * to_ns,
    };
    let named = [
        ("Latency", "s"),
        ("Latency/Op", "s"),
        ("Throughput", "/s"),
        ("p50", "s"),
        ("p90", "s"),
        ("p99", "s"),
    ];
    let counters = named.iter().filter_map(|(name, unit)| {
        Some(Counter {
            name: (*name).to_owned(),
            value: number(name)?,
            unit,
        })
    });
    Some((timing, counters.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exec;
    use crate::case::Api;
    use crate::case::tests::SEED;
    use crate::console::TimeUnit;
    use crate::row::{Position, rows};

    const CASE: Case = Case {
        api: Api::Rust,
        exec: Exec::Sync,
        size: 4096,
        threads: 1,
        ..SEED
    };

    fn context(command: &str, unfinished: Option<u64>) -> Context {
        let mut context = Context::modelled("spr-2s", "1e1w-s", 96);
        context.extra.insert(COMMAND.to_owned(), command.into());
        if let Some(left) = unfinished {
            context.extra.insert(UNFINISHED.to_owned(), left.into());
        }
        context
    }

    #[test]
    fn a_stopped_run_is_resumed_only_with_the_same_options() {
        let timing = Timing {
            iterations: 7,
            real_ns: 1234.5678,
            cpu_ns: 1000.25,
        };
        let at = Position {
            family: 0,
            instance: 0,
        };
        let one = (timing, timing.counters(&CASE));
        let rows = rows(&CASE, at, &[one.clone(), one.clone()]);
        let write = |context: &Context| crate::write_json(context, &rows, TimeUnit::Ns).unwrap();
        let stopped = write(&context("a", Some(3)));
        let found = Finished::read(&stopped, &context("a", None));
        assert_eq!(found.of(&CASE), [one.clone(), one]);
        assert_eq!(found.cases(), 1);
        let nothing = Finished::default();
        assert_eq!(Finished::read(&stopped, &context("b", None)), nothing);
        let complete = write(&context("a", None));
        assert_eq!(Finished::read(&complete, &context("a", None)), nothing);
        assert_eq!(Finished::read("{", &context("a", None)), nothing);
    }
}
