//! What a measurement found, and the line that says so.

use dray_experiment::{Provenance, csv_table};
use serde_json::{Value, json};

use super::options::Submission;

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Decimal gigabytes a second, of all CPUs together.
    pub gb_per_sec: f64,
    /// Mean time of a descriptor in ns, where one is in flight at a time.
    pub latency_ns: Option<f64>,
    /// Cycles a second of the clock that latencies are given in.
    pub cycles_per_sec: u64,
    /// Share of their time in which cores neither looked in vain for a record nor slept, in percent.
    pub cpu_percent: f64,
    /// Thousand operations a second.
    pub kops: u64,
    /// Descriptors were only handed over.
    pub submission: Option<Submission>,
    /// Iterations that were run.
    pub iterations: u64,
    /// Whether the bytes were checked.
    pub verified: bool,
}

impl Outcome {
    fn latency_cycles(&self) -> Option<f64> {
        let per_ns = self.cycles_per_sec as f64 / 1e9;
        self.latency_ns.map(|ns| ns * per_ns)
    }

    /// The peer's line, to the letter.
    pub fn line(&self) -> String {
        match self.submission {
            Some(Submission::Enqcmd) => format!(
                "kopsrate = {} latency = {} ns\n",
                self.kops,
                1_000_000 / self.kops.max(1)
            ),
            Some(Submission::Movdir64b) => format!("kopsrate = {}\n", self.kops),
            None => {
                let latency = match (self.latency_cycles(), self.latency_ns) {
                    (Some(cycles), Some(ns)) => format!(
                        " latency(cycles) = {cycles:.6}, {ns:.6} ns, cycles/sec ={}",
                        self.cycles_per_sec
                    ),
                    _ => String::new(),
                };
                format!(
                    "GB per sec = {:.6}{latency} cpu {:.6} kopsrate = {}\n",
                    self.gb_per_sec, self.cpu_percent, self.kops
                )
            }
        }
    }

    /// The same for programs.
    pub fn json(&self, case: &str, time: Provenance, made_on: &str) -> Value {
        json!({
            "tool": "dray micros",
            "version": env!("CARGO_PKG_VERSION"),
            "case": case,
            "time": time,
            "made_on": made_on,
            "iterations": self.iterations,
            "verified": self.verified,
            "gb_per_sec": self.gb_per_sec,
            "latency_ns": self.latency_ns,
            "latency_cycles": self.latency_cycles(),
            "cycles_per_sec": self.cycles_per_sec,
            "cpu_percent": self.cpu_percent,
            "kopsrate": self.kops,
        })
    }

    /// The same as a table of one row.
    pub fn csv(&self, case: &str, time: Provenance, made_on: &str) -> String {
        let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
        let columns = [
            ("case", case.to_owned()),
            ("time", time.to_string()),
            ("made_on", made_on.to_owned()),
            ("iterations", self.iterations.to_string()),
            ("verified", self.verified.to_string()),
            ("gb_per_sec", self.gb_per_sec.to_string()),
            ("latency_ns", number(self.latency_ns)),
            ("latency_cycles", number(self.latency_cycles())),
            ("cycles_per_sec", self.cycles_per_sec.to_string()),
            ("cpu_percent", self.cpu_percent.to_string()),
            ("kopsrate", self.kops.to_string()),
        ];
        let (head, row): (Vec<&str>, Vec<String>) = columns.into_iter().unzip();
        csv_table(&head, [row])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUND: Outcome = Outcome {
        gb_per_sec: 30.125,
        latency_ns: None,
        cycles_per_sec: 2_000_000_000,
        cpu_percent: 12.5,
        kops: 7354,
        submission: None,
        iterations: 1000,
        verified: true,
    };

    #[test]
    fn the_result_line_is_that_of_dsa_perf_micros() {
        assert_eq!(
            FOUND.line(),
            "GB per sec = 30.125000 cpu 12.500000 kopsrate = 7354\n"
        );
        let one = Outcome {
            latency_ns: Some(541.5),
            ..FOUND
        };
        assert_eq!(
            one.line(),
            "GB per sec = 30.125000 latency(cycles) = 1083.000000, 541.500000 ns, cycles/sec =2000000000 cpu 12.500000 kopsrate = 7354\n"
        );
        let rate = Outcome {
            submission: Some(Submission::Enqcmd),
            kops: 4000,
            ..FOUND
        };
        assert_eq!(rate.line(), "kopsrate = 4000 latency = 250 ns\n");
    }

    /// As the script of a published reproduction reads logs: parts between blanks and commas that
    /// are numbers; throughput first, latency in ns third.
    #[test]
    fn the_result_line_can_be_parsed_by_a_published_script() {
        let line = Outcome {
            latency_ns: Some(541.5),
            ..FOUND
        }
        .line();
        let parts: Vec<&str> = line.trim_end().split([' ', ',']).collect();
        assert_eq!(parts[0], "GB");
        let numbers: Vec<f64> = parts.iter().filter_map(|p| p.parse().ok()).collect();
        assert_eq!((numbers[0], numbers[2]), (30.125, 541.5));
    }
}
