//! What is printed of a replay.

use dray_experiment::{csv_table, format_bytes};
use dray_offload::table::size;
use dray_platform::WaitMode;
use dray_recording::{Kind, Recording};
use dray_replay::{Program, Way};

use super::verdict::Verdict;
use super::{Row, Setting};
use crate::print;

/// Threads that are listed.
const THREADS: usize = 8;

pub(super) struct Printed<'a> {
    pub(super) recording: &'a Recording,
    pub(super) program: &'a Program,
    pub(super) setting: &'a Setting,
    pub(super) rows: &'a [Row],
    pub(super) verdict: &'a Verdict,
}

/// A time in a unit that fits.
pub(super) fn time(ns: f64) -> String {
    match ns {
        ns if ns >= 1e9 => format!("{:.2} s", ns / 1e9),
        ns if ns >= 1e6 => format!("{:.2} ms", ns / 1e6),
        ns if ns >= 1e3 => format!("{:.2} us", ns / 1e3),
        ns => format!("{ns:.0} ns"),
    }
}

/// A command, or its beginning.
fn shortened(command: &str) -> String {
    const MOST: usize = 80;
    // What comes from a file of others begins no line.
    let command = command.replace(char::is_control, " ");
    match command.chars().count() > MOST {
        true => command.chars().take(MOST).chain("...".chars()).collect(),
        false => command,
    }
}

fn wait_word(wait: WaitMode) -> &'static str {
    match wait {
        WaitMode::Poll => "poll",
        WaitMode::Pause => "pause",
        WaitMode::Umwait => "umwait",
    }
}

/// Who, threshold, window, batch, and how threads wait.
fn columns(way: Way) -> [String; 5] {
    let none = String::new;
    match way {
        Way::Core => ["core".to_owned(), none(), none(), none(), none()],
        Way::Recorded { batch, wait, .. } => [
            "device".to_owned(),
            none(),
            none(),
            match batch {
                0 => "recorded".to_owned(),
                batch => batch.to_string(),
            },
            wait_word(wait).to_owned(),
        ],
        Way::Synchronous { threshold, wait } => [
            "sync".to_owned(),
            threshold.to_string(),
            none(),
            none(),
            wait_word(wait).to_owned(),
        ],
        Way::Asynchronous {
            threshold,
            window,
            wait,
        } => [
            "async".to_owned(),
            threshold.to_string(),
            window.to_string(),
            none(),
            wait_word(wait).to_owned(),
        ],
    }
}

/// A row, in words.
pub(super) fn way_words(row: &Row) -> String {
    let config = &row.config;
    match row.way {
        Way::Core => "the core".to_owned(),
        Way::Recorded { batch: 0, wait, .. } => format!("{config} with {}", wait_word(wait)),
        Way::Recorded { batch, wait, .. } => {
            format!(
                "{config} with {} and batches of at most {batch}",
                wait_word(wait)
            )
        }
        Way::Synchronous { threshold, wait } => format!(
            "{config} from {} on, waiting with {},",
            size(threshold),
            wait_word(wait)
        ),
        Way::Asynchronous {
            threshold,
            window,
            wait,
        } => format!(
            "{config} from {} on, with {window} in flight and {},",
            size(threshold),
            wait_word(wait)
        ),
    }
}

const HEAD: [&str; 13] = [
    "config",
    "by",
    "threshold",
    "window",
    "batch",
    "wait",
    "run_ns",
    "core_ns",
    "waited_ns",
    "by_device",
    "in_flight",
    "p50_ns",
    "p99_ns",
];

impl Printed<'_> {
    /// Percentiles of all sizes together: those of the size with the most requests.
    fn most_frequent(row: &Row) -> [f64; 4] {
        let classes = row.replayed.latency.iter();
        classes
            .max_by_key(|class| class.count)
            .map_or([0.0; 4], |class| class.ns)
    }

    fn in_flight(row: &Row) -> f64 {
        row.replayed
            .occupancy
            .values()
            .fold(0.0, |sum, (mean, _)| sum + mean)
    }

    pub(super) fn csv(&self) -> String {
        let rows = self.rows.iter().map(|row| {
            let found = &row.replayed;
            let [p50, _, p99, _] = Self::most_frequent(row);
            let mut cells = vec![row.config.clone()];
            cells.extend(columns(row.way));
            cells.extend(
                [found.run_ns, found.core_ns, found.waited_ns].map(|ns| format!("{ns:.0}")),
            );
            cells.push(found.by_device.to_string());
            cells.push(format!("{:.3}", Self::in_flight(row)));
            cells.extend([p50, p99].map(|ns| format!("{ns:.0}")));
            cells
        });
        csv_table(&HEAD, rows)
    }

    pub(super) fn table(&self) -> String {
        let header = &self.recording.header;
        let what = match header.kind {
            Kind::Calls => "calls",
            Kind::Descriptors => "descriptors and batches",
        };
        let program = self.program;
        let mut text = format!(
            "{}: {} {what} of {} threads, {}; {} of core time between them\n\n",
            shortened(&header.command),
            match program.left_out.later {
                0 => program.requests().to_string(),
                later => format!(
                    "the first {} of {}",
                    program.requests(),
                    program.requests() + later
                ),
            },
            program.threads(),
            size(program.bytes()),
            time(program.think_ns() as f64),
        );
        let mut table = print::plain([
            "config",
            "by",
            "threshold",
            "window",
            "batch",
            "wait",
            "run time",
            "core time",
            "waited",
            "in flight",
        ]);
        for row in self.rows {
            let found = &row.replayed;
            let mut cells = vec![row.config.clone()];
            cells.extend(columns(row.way));
            cells.extend([found.run_ns, found.core_ns, found.waited_ns].map(time));
            cells.push(format!("{:.2}", Self::in_flight(row)));
            table.add_row(cells);
        }
        print::right(&mut table, 6);
        text += &format!("{table}\n\n");
        if let Some(core) = self.rows.iter().find(|row| row.way == Way::Core) {
            text += &format!(
                "Here the calls took {}; a core of {} takes {} for them by the model.\n",
                time(program.took_ns as f64),
                self.setting.platform.name,
                time(core.replayed.on_core_ns),
            );
            if core.replayed.excess_ns > 0.0 {
                text += &format!(
                    "No core explains {} of it: page faults of memory that is used for the first time, or preemption. Each row has it.\n",
                    time(core.replayed.excess_ns)
                );
            }
            text += "\n";
        }
        for row in self.shown() {
            text += &self.details(row);
        }
        for sentence in &self.verdict.sentences {
            text += &format!("{sentence}\n");
        }
        text
    }

    /// The rows that the verdict is about; else the first.
    fn shown(&self) -> Vec<&Row> {
        let rows: Vec<&Row> = self
            .verdict
            .compared
            .iter()
            .map(|c| &self.rows[c.0])
            .collect();
        match rows.is_empty() {
            true => self.rows.first().into_iter().collect(),
            false => rows,
        }
    }

    /// Latency by size, queues, and who waits.
    fn details(&self, row: &Row) -> String {
        let mut text = format!(
            "{}: from a request until its thread has seen the end\n",
            way_words(row).trim_end_matches(',')
        );
        let mut table = print::plain(["  from bytes", "requests", "p50", "p90", "p99", "most"]);
        for class in &row.replayed.latency {
            let mut cells = vec![
                format!("  {}", format_bytes(class.from_bytes)),
                class.count.to_string(),
            ];
            cells.extend(class.ns.map(time));
            table.add_row(cells);
        }
        print::right(&mut table, 1);
        text += &format!("{table}\n");
        for ((device, wq), (mean, most)) in &row.replayed.occupancy {
            text += &format!(
                "  wq{device}.{wq}: {mean:.2} requests in flight on average, at most {most} of a thread\n"
            );
        }
        let threads = &row.replayed.threads;
        for thread in threads.iter().take(THREADS) {
            let share = |ns: f64| 100.0 * ns / thread.elapsed_ns.max(f64::MIN_POSITIVE);
            text += &format!(
                "  thread {} of process {}: {}, of which it waits {:.1} % for the device and rests {:.1} %\n",
                thread.tid,
                thread.pid,
                time(thread.elapsed_ns),
                share(thread.waited_ns),
                share(thread.idle_ns),
            );
        }
        if threads.len() > THREADS {
            text += &format!("  and {} threads more\n", threads.len() - THREADS);
        }
        text + "\n"
    }

    pub(super) fn json(&self) -> serde_json::Value {
        let header = &self.recording.header;
        let rows: Vec<serde_json::Value> = self.rows.iter().map(row_json).collect();
        let compared: Vec<serde_json::Value> = self
            .verdict
            .compared
            .iter()
            .map(|(row, with, c)| {
                serde_json::json!({
                    "row": row, "with": with,
                    "core_ratio": c.core, "core_ratio_90": [c.core_90.0, c.core_90.1],
                    "run_ratio": c.run, "run_ratio_90": [c.run_90.0, c.run_90.1],
                })
            })
            .collect();
        serde_json::json!({
            "recording": {
                "kind": match header.kind { Kind::Calls => "calls", Kind::Descriptors => "descriptors" },
                "command": header.command,
                "complete": header.ended && self.recording.cut_at.is_none() && header.lost == 0,
                "lost": header.lost,
                "threads": self.program.threads(),
                "requests": self.program.requests(),
                "bytes": self.program.bytes(),
                "think_ns": self.program.think_ns(),
                "took_ns": self.program.took_ns,
                "left_out": self.program.left_out.later,
            },
            "platform": self.setting.platform.name,
            "rows": rows,
            "verdict": { "sentences": self.verdict.sentences, "compared": compared },
        })
    }
}

fn row_json(row: &Row) -> serde_json::Value {
    let found = &row.replayed;
    let [by, threshold, window, batch, wait] = columns(row.way);
    let latency: Vec<serde_json::Value> = found
        .latency
        .iter()
        .map(|class| {
            let [p50, p90, p99, most] = class.ns;
            serde_json::json!({
                "from_bytes": class.from_bytes, "requests": class.count,
                "p50_ns": p50, "p90_ns": p90, "p99_ns": p99, "most_ns": most,
            })
        })
        .collect();
    let queues: Vec<serde_json::Value> = found
        .occupancy
        .iter()
        .map(|((device, wq), (mean, most))| {
            serde_json::json!({ "device": device, "wq": wq, "mean_in_flight": mean, "most_of_a_thread": most })
        })
        .collect();
    let threads: Vec<serde_json::Value> = found
        .threads
        .iter()
        .map(|t| {
            serde_json::json!({
                "pid": t.pid, "tid": t.tid, "elapsed_ns": t.elapsed_ns, "core_ns": t.core_ns,
                "waited_ns": t.waited_ns, "idle_ns": t.idle_ns,
            })
        })
        .collect();
    serde_json::json!({
        "config": row.config, "by": by,
        "threshold": threshold.parse::<u64>().ok(), "window": window.parse::<u32>().ok(),
        "batch": batch.parse::<u32>().ok(), "wait": (!wait.is_empty()).then_some(wait),
        "run_ns": found.run_ns, "core_ns": found.core_ns, "think_ns": found.think_ns, "excess_ns": found.excess_ns,
        "on_core_ns": found.on_core_ns, "waited_ns": found.waited_ns,
        "by_device": found.by_device, "failed": found.failed,
        "latency": latency, "queues": queues, "threads": threads,
    })
}
