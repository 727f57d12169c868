//! What `dray advise` prints.

use comfy_table::CellAlignment;
use dray_experiment::{Point, csv_table, format_bytes};
use dray_figures::{
    Advice, BreakEven, Comparison, Coverage, Evidence, Metric, Model, RangeEffect, Used, Verdict,
    Workload,
};
use dray_platform::{Parameter, PlatformFile, Unit};

use super::Args;
use crate::print;

/// Columns of CSV.
pub(super) const HEAD: [&str; 6] = [
    "metric",
    "unit",
    "dsa",
    "core",
    "dsa_guesses",
    "core_guesses",
];

/// What is printed.
pub(super) struct Printed<'a> {
    pub(super) args: &'a Args,
    /// What to call the device's configuration.
    pub(super) config: &'a str,
    pub(super) point: Point,
    pub(super) model: &'a Model,
    pub(super) used: Used,
    pub(super) advice: Advice,
    pub(super) workload: Workload,
}

/// One quantity of both sides.
struct Row<'a> {
    what: &'static str,
    key: &'static str,
    unit: &'static str,
    device: f64,
    core: f64,
    device_interval: (f64, f64),
    core_interval: (f64, f64),
    guessed: (&'a [Parameter], &'a [Parameter]),
}

impl Printed<'_> {
    fn rows(&self) -> Vec<Row<'_>> {
        let compared = &self.advice.compared;
        let guesses = &self.advice.guesses;
        let row = |what, key, unit, metric: Metric| Row {
            what,
            key,
            unit,
            device: compared.device.get(metric).unwrap_or_default(),
            core: compared.core.get(metric).unwrap_or_default(),
            device_interval: self
                .advice
                .interval_of(|compared| compared.device.get(metric).unwrap_or_default()),
            core_interval: self
                .advice
                .interval_of(|compared| compared.core.get(metric).unwrap_or_default()),
            guessed: (&guesses.device, &guesses.core),
        };
        let (busy, working) = compared.core_time();
        let sleeping = Row {
            device: busy,
            core: working,
            device_interval: self.advice.interval_of(|compared| compared.core_time().0),
            core_interval: self.advice.interval_of(|compared| compared.core_time().1),
            guessed: (&guesses.core_time, &guesses.core),
            ..row(
                "core time, UMWAIT",
                "core_time_umwait_ns",
                "ns",
                Metric::Period,
            )
        };
        vec![
            row("throughput", "throughput_gbps", "GB/s", Metric::Throughput),
            row(
                "time per operation",
                "time_per_operation_ns",
                "ns",
                Metric::Period,
            ),
            row("latency", "latency_ns", "ns", Metric::Latency),
            row(
                "core time, polling",
                "core_time_polling_ns",
                "ns",
                Metric::Period,
            ),
            sleeping,
        ]
    }

    pub(super) fn table(&self) -> String {
        let mut table = print::plain([
            "",
            "unit",
            "DSA",
            "90 % interval",
            "one core",
            "90 % interval",
            "guess",
        ]);
        for row in self.rows() {
            let guess = match (row.guessed.0.is_empty(), row.guessed.1.is_empty()) {
                (true, true) => "",
                (false, true) => "DSA",
                (true, false) => "core",
                (false, false) => "both",
            };
            table.add_row([
                row.what.to_owned(),
                row.unit.to_owned(),
                format!("{:.1}", row.device),
                interval(row.device_interval),
                format!("{:.1}", row.core),
                interval(row.core_interval),
                guess.to_owned(),
            ]);
        }
        let columns = table.column_iter_mut().skip(2).take(4);
        columns.for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        let words = self.words();
        let depth = self.point.integer("depth").unwrap_or(1);
        format!(
            "{}, {depth} outstanding: {}\n\n{table}\n\n{}\n{}\n",
            self.case(),
            words[0],
            self.head(),
            words[1..].join("\n"),
        )
    }

    /// The operation and its size.
    pub(super) fn case(&self) -> String {
        let batch = match self.args.batch.as_str() {
            "1" => String::new(),
            batch => format!(" in batches of {batch}"),
        };
        let size = self.point.integer("size").unwrap_or_default();
        format!("{} of {}{batch}", self.args.op, size_text(size))
    }

    /// What the numbers are of.
    pub(super) fn head(&self) -> String {
        let platform = &self.model.platform.name;
        let used = self.used.describe();
        format!("Modelled: {platform} with {}, {used}.", self.config)
    }

    /// How many published values of such results lie within their intervals.
    pub(super) fn coverage(&self) -> String {
        let shares: Vec<String> = self
            .covered()
            .iter()
            .map(|of| format!("{} of {} ({})", of.inside, of.points, of.class.words()))
            .collect();
        match shares.is_empty() {
            true => {
                "Coverage of the intervals: not known, no published value was compared with this machine."
                    .to_owned()
            }
            false => format!(
                "Coverage of the intervals: published values that lie within those of a model fitted without their table, {}.",
                shares.join(", ")
            ),
        }
    }

    /// The coverage of the results that are compared, as far as it is known.
    fn covered(&self) -> Vec<Coverage> {
        let evidence = Evidence::kept(&self.model.platform).ok().flatten();
        evidence.map_or(Vec::new(), |evidence| evidence.coverage_of(&self.workload))
    }

    fn words(&self) -> Vec<String> {
        let advice = &self.advice;
        let verdict_guessed = advice.guesses.are_behind(advice.compared.verdict());
        let guessed = if verdict_guessed { " (guess)" } else { "" };
        let from = |what: &str, of: fn(&BreakEven) -> Option<u32>| {
            let (least, most) = (of(&advice.interval.0), of(&advice.interval.1));
            let range = match least == most {
                true => String::new(),
                false => format!(
                    "; 90 % interval {} to {}",
                    size_or_none(least),
                    size_or_none(most)
                ),
            };
            let size = match of(&advice.from) {
                Some(size) => format!("from {} on", size_text(size.into())),
                None => "at no size that the work queue takes".to_owned(),
            };
            format!("{what} {size}{range}.")
        };
        let mut words = vec![format!("{}{guessed}", verdict(&advice.compared))];
        words.push(from(
            "With so many outstanding, the device has more throughput",
            |even| even.throughput,
        ));
        words.push(from(
            "A core that sleeps in UMWAIT spends less time than by doing the work itself",
            |even| even.core_time,
        ));
        words.push("A core that polls is busy all the time.".to_owned());
        words.push(self.coverage());
        if let Some(dominant) = advice.dominant() {
            let p = &dominant.parameter;
            words.push(format!(
                "The range of {} matters most: {} to {} by itself. {}",
                p.name,
                size_or_none(dominant.within.0.throughput),
                size_or_none(dominant.within.1.throughput),
                narrow(p)
            ));
        }
        words.push(String::new());
        for effect in &advice.ranges {
            words.push(range_words(effect));
        }
        if advice.ranges.iter().all(|effect| effect.turns.is_none()) {
            words.push("None of them turns the verdict within its range by itself.".to_owned());
        }
        words
    }

    pub(super) fn json(&self) -> serde_json::Value {
        let advice = &self.advice;
        let case: serde_json::Map<String, serde_json::Value> = self
            .point
            .iter()
            .map(|(name, value)| {
                let value = match value.integer() {
                    Some(number) => number.into(),
                    None => value.to_string().into(),
                };
                let name = if name == "size" { "size_bytes" } else { name };
                (name.to_owned(), value)
            })
            .collect();
        let intervals = |of: fn(&Row<'_>) -> (f64, f64)| -> serde_json::Map<_, _> {
            let rows = self.rows();
            let each = rows.iter().map(|row| {
                let (low, high) = of(row);
                (row.key.to_owned(), serde_json::json!([low, high]))
            });
            each.collect()
        };
        let side = |of: fn(&Row<'_>) -> (f64, Vec<String>)| {
            let rows = self.rows();
            let values = rows.iter().map(|r| (r.key.to_owned(), of(r).0.into()));
            let guesses = rows.iter().map(|r| (r.key.to_owned(), of(r).1.into()));
            let values: serde_json::Map<String, serde_json::Value> = values.collect();
            let guesses: serde_json::Map<String, serde_json::Value> = guesses.collect();
            (values, guesses)
        };
        let (dsa, dsa_guesses) = side(|row| (row.device, names(row.guessed.0)));
        let (core, core_guesses) = side(|row| (row.core, names(row.guessed.1)));
        let even = |even: BreakEven| {
            serde_json::json!({
                "break_even_bytes": even.throughput,
                "core_break_even_bytes": even.core_time,
            })
        };
        let parameters = advice.ranges.iter().map(|effect| {
            let p = &effect.parameter;
            serde_json::json!({
                "parameter": p.name, "value": p.value, "unit": p.unit.name(), "guess": p.guess,
                "low": p.range[0], "high": p.range[1], "source": &*p.source,
                "least": even(effect.within.0), "most": even(effect.within.1),
            })
        });
        let turns = advice.ranges.iter().filter_map(|effect| {
            let turn = effect.turns.as_ref()?;
            Some(serde_json::json!({
                "parameter": effect.parameter.name, "turns_at": turn.at,
                "towards": turn.towards, "verdict": word(turn.end.verdict()),
            }))
        });
        let dominant = advice.dominant().map(|effect| effect.parameter.name);
        serde_json::json!({
            "case": case,
            "work_queue": {
                "id": self.used.wq, "mode": if self.used.shared { "shared" } else { "dedicated" },
                "entries": self.used.entries, "engines": self.used.engines, "others_idle": self.used.idle,
            },
            "dsa": { "executor": "model", "metrics": dsa, "intervals_90": intervals(|row| row.device_interval), "rests_on_guesses": dsa_guesses },
            "core": { "executor": "model-cpu", "metrics": core, "intervals_90": intervals(|row| row.core_interval), "rests_on_guesses": core_guesses },
            "verdict": word(advice.compared.verdict()),
            "break_even_bytes": advice.from.throughput,
            "core_break_even_bytes": advice.from.core_time,
            "parameters": parameters.collect::<Vec<_>>(),
            "verdict_turns": turns.collect::<Vec<_>>(),
            "coverage": self.covered(),
            "dominant_parameter": dominant,
            "interval_90": {
                "least": even(advice.interval.0), "most": even(advice.interval.1),
            },
        })
    }

    pub(super) fn csv(&self) -> String {
        csv_table(&HEAD, self.csv_rows())
    }

    pub(super) fn csv_rows(&self) -> Vec<Vec<String>> {
        let row = |row: Row<'_>| {
            vec![
                row.key.to_owned(),
                row.unit.to_owned(),
                row.device.to_string(),
                row.core.to_string(),
                names(row.guessed.0).join(" "),
                names(row.guessed.1).join(" "),
            ]
        };
        self.rows().into_iter().map(row).collect()
    }
}

fn interval((low, high): (f64, f64)) -> String {
    format!("{low:.1} to {high:.1}")
}

/// One parameter that matters: what it is, what it does, and where it turns the verdict.
fn range_words(effect: &RangeEffect) -> String {
    let p = &effect.parameter;
    let unit = match p.unit {
        Unit::Count | Unit::Ratio => String::new(),
        unit => format!(" {}", unit.name()),
    };
    let kind = if p.guess { "guess" } else { "range" };
    let (least, most) = (effect.within.0.throughput, effect.within.1.throughput);
    let sizes = match least == most {
        true => String::new(),
        false => format!(": {} to {}", size_or_none(least), size_or_none(most)),
    };
    let turn = effect.turns.as_ref().map_or(String::new(), |turn| {
        let side = match turn.towards > p.value {
            true => format!("from {:.3} on", turn.at),
            false => format!("down from {:.3}", turn.at),
        };
        format!(
            "; {side} the verdict is another, at {}: {}",
            turn.towards,
            verdict(&turn.end)
        )
    });
    format!(
        "{kind}: {} = {}{unit}, possible are {} to {}{sizes}{turn} ({})",
        p.name, p.value, p.range[0], p.range[1], p.source
    )
}

/// What to do to know a parameter better.
fn narrow(p: &Parameter) -> String {
    match dray_figures::measurement(p.name) {
        Some(what) => format!("What would narrow it: {what}."),
        None => format!(
            "What would narrow it: {} Measure that, and state it in a platform file (--platform).",
            PlatformFile::help(p.name)
        ),
    }
}

fn names(of: &[Parameter]) -> Vec<String> {
    of.iter().map(|p| p.name.to_owned()).collect()
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Offload => "offload",
        Verdict::SparesTheCore => "offload-if-the-core-has-other-work",
        Verdict::Stay => "stay-on-the-core",
    }
}

/// What to do, and by how much.
fn verdict(compared: &Comparison) -> String {
    let (device, core) = compared.period();
    let (busy, working) = compared.core_time();
    match compared.verdict() {
        Verdict::Offload => format!("Offload: {}.", more(core / device, "one core")),
        Verdict::SparesTheCore => format!(
            "One core has {}, but one that sleeps in UMWAIT is busy for {:.0} % of the time that the work takes it: offload if it has other work to do meanwhile.",
            more(device / core, "the device"),
            100.0 * busy / working
        ),
        Verdict::Stay => format!(
            "Do not offload: one core has {}, and handing the work over keeps it busy for no less time than doing it.",
            more(device / core, "the device")
        ),
    }
}

/// A ratio of one or more; as percent where one decimal would say nothing.
pub(super) fn more(ratio: f64, than: &str) -> String {
    match ratio < 1.05 {
        true => format!("{:.1} % more throughput than {than}", 100.0 * (ratio - 1.0)),
        false => format!("{ratio:.1} times the throughput of {than}"),
    }
}

pub(super) fn size_or_none(bytes: Option<u32>) -> String {
    bytes.map_or("no size".to_owned(), |bytes| size_text(bytes.into()))
}

fn size_text(bytes: u64) -> String {
    let text = format_bytes(bytes);
    match text.strip_suffix(|unit: char| unit.is_ascii_alphabetic()) {
        Some(number) => format!("{number} {}iB", &text[number.len()..]),
        None => format!("{text} B"),
    }
}
