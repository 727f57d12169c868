//! Sessions in the OpenMetrics text format, for Prometheus and its like.

use std::collections::BTreeMap;
use std::fmt::Write;

use dray_tier::stats::Snapshot;

/// Values that are not counted up.
const GAUGES: [&str; 5] = [
    "fast_bytes",
    "slow_bytes",
    "managed_bytes",
    "regions",
    "knee_pages",
];

/// All values of all processes, by session: its number and what it has done. Process 0 is all that have ended.
pub(super) fn text(sessions: &[(u32, Snapshot)]) -> String {
    let mut families: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (number, snapshot) in sessions {
        let session = format!(
            "session=\"{number}\",back_end=\"{}\",policy=\"{}\"",
            snapshot.back_end, snapshot.policy
        );
        let missed = format!("{{{session}}} {}", snapshot.missed_processes);
        families.entry("missed_processes").or_default().push(missed);
        for process in &snapshot.processes {
            let labels = format!("{session},pid=\"{}\"", process.pid);
            for (name, value) in &process.values {
                let sample = format!("{{{labels}}} {value}");
                families.entry(name).or_default().push(sample);
            }
            for (outcome, pages) in &process.outcomes {
                let sample = format!("{{{labels},outcome=\"{outcome}\"}} {pages}");
                families.entry("tried_pages").or_default().push(sample);
            }
        }
    }
    let mut text = String::new();
    for (name, samples) in families {
        let (kind, suffix) = match GAUGES.contains(&name) {
            true => ("gauge", ""),
            false => ("counter", "_total"),
        };
        let _ = writeln!(text, "# TYPE dray_tier_{name} {kind}");
        for sample in samples {
            let _ = writeln!(text, "dray_tier_{name}{suffix}{sample}");
        }
    }
    text + "# EOF\n"
}

#[cfg(test)]
mod tests {
    use dray_tier::session::{Session, Setup, Value};
    use dray_tier::stats::snapshot;
    use dray_tier::tracking::Choice;

    #[test]
    fn gauges_and_counters_of_each_process_have_a_line() {
        let session = Session::private(&Setup {
            bytes: [1 << 20, u64::MAX],
            nodes: [Some(0), Some(1)],
            policy: 0,
            shared_read: false,
            release: dray_tier::Release::Kernel,
            device: 1,
            tracking: Choice::Best,
            filters: 0,
        })
        .expect("memory");
        session.by_kernel(3);
        let process = session.claim(1 << 30).expect("room");
        process.add(Value::DemotedPages, 9);
        process.put(Value::FastBytes, 4096);
        let text = super::text(&[(7, snapshot(&session))]);
        let labels = "session=\"7\",back_end=\"kernel\",policy=\"tpp\"";
        let pid = 1 << 30;
        for line in [
            "# TYPE dray_tier_demoted_pages counter\n".to_owned(),
            format!("\ndray_tier_demoted_pages_total{{{labels},pid=\"{pid}\"}} 9\n"),
            "# TYPE dray_tier_fast_bytes gauge\n".to_owned(),
            format!("\ndray_tier_fast_bytes{{{labels},pid=\"{pid}\"}} 4096\n"),
            format!("\ndray_tier_missed_processes_total{{{labels}}} 3\n"),
            format!("\ndray_tier_tried_pages_total{{{labels},pid=\"{pid}\",outcome=\"busy\"}} 0\n"),
        ] {
            assert!(text.contains(&line), "{line}: {text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
