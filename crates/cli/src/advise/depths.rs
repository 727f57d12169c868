//! What `dray advise` prints where no depth is asked for: the case at several depths.

use std::fmt::Write;

use dray_experiment::csv_table;
use dray_figures::{Comparison, Metric, Verdict};

use super::printed::{Printed, more, size_or_none};
use crate::print;

/// Operations outstanding that are compared.
pub(super) const DEPTHS: [u16; 4] = [1, 4, 16, 64];

/// The same case at each depth, the least first.
pub(super) struct Depths<'a>(pub(super) Vec<(u16, Printed<'a>)>);

impl Depths<'_> {
    pub(super) fn table(&self) -> String {
        let mut table = print::plain([
            "outstanding",
            "DSA GB/s",
            "core GB/s",
            "ratio",
            "core busy",
            "pays from",
            "90 % interval",
        ]);
        let mut guess = false;
        for (depth, printed) in &self.0 {
            let advice = &printed.advice;
            let (device, core) = advice.compared.period();
            let (busy, working) = advice.compared.core_time();
            let rate = |metrics: &dray_figures::Metrics| {
                let rate = metrics.get(Metric::Throughput).unwrap_or_default();
                format!("{rate:.1}")
            };
            guess |= advice.guesses.are_behind(advice.compared.verdict());
            let (least, most) = (advice.interval.0.throughput, advice.interval.1.throughput);
            table.add_row([
                depth.to_string(),
                rate(&advice.compared.device),
                rate(&advice.compared.core),
                format!("{:.2}", core / device),
                format!("{:.0} %", 100.0 * busy / working),
                size_or_none(advice.from.throughput),
                format!("{} to {}", size_or_none(least), size_or_none(most)),
            ]);
        }
        print::right(&mut table, 0);
        let Some((_, first)) = self.0.first() else {
            return String::new();
        };
        let guess = if guess { " (guess)" } else { "" };
        let mut text = format!("{}{guess}\n\n{table}\n\n", self.sentence());
        for line in [
            first.head(),
            "core busy: share of the core's own time for the work that it is busy when it sleeps in UMWAIT meanwhile; a core that polls is busy all the time.".to_owned(),
            "90 % interval: each parameter of the model may be anywhere in its range. --depth N names them; --batch, --placement, --config change the case.".to_owned(),
            first.coverage(),
        ] {
            writeln!(text, "{line}").expect("memory takes every write");
        }
        text
    }

    /// What to do, in one sentence.
    fn sentence(&self) -> String {
        let case = self.0.first().map_or(String::new(), |(_, p)| p.case());
        let verdicts = |(_, printed): &(u16, Printed<'_>)| printed.advice.compared.verdict();
        let ratio = |compared: &Comparison| {
            let (device, core) = compared.period();
            core / device
        };
        let pays = self
            .0
            .iter()
            .rposition(|row| verdicts(row) != Verdict::Offload);
        let from = pays.map_or(0, |last| last + 1);
        let spares = self.0[..from]
            .iter()
            .any(|row| verdicts(row) == Verdict::SparesTheCore);
        let Some((depth, printed)) = self.0.get(from) else {
            return match spares {
                true => format!(
                    "{case}: a DSA is not faster than one core; offload only if the core has other work meanwhile."
                ),
                false => format!("{case}: do not offload; one core is faster at each depth."),
            };
        };
        let (least, most) =
            self.0[from..]
                .iter()
                .fold((f64::MAX, 0.0_f64), |(least, most), row| {
                    let ratio = ratio(&row.1.advice.compared);
                    (least.min(ratio), most.max(ratio))
                });
        let gain = match most - least < 0.05 {
            true => more(ratio(&printed.advice.compared), "one core"),
            false => format!("{least:.1} to {most:.1} times the throughput of one core"),
        };
        match (from, spares) {
            (0, _) => format!("{case}: offload, {gain}."),
            (_, true) => format!(
                "{case}: offload if {depth} or more are outstanding ({gain}), with fewer only if the core has other work meanwhile."
            ),
            (_, false) => {
                format!(
                    "{case}: offload if {depth} or more are outstanding ({gain}), not with fewer."
                )
            }
        }
    }

    /// The case with one operation outstanding, as with `--depth 1`, the answer, and the case at each depth.
    pub(super) fn json(&self) -> serde_json::Value {
        let cases: Vec<_> = self.0.iter().map(|(_, printed)| printed.json()).collect();
        let mut document = cases.first().cloned().unwrap_or_default();
        document["answer"] = self.sentence().into();
        document["depths"] = cases.into();
        document
    }

    /// The rows of each depth, which is the last column.
    pub(super) fn csv(&self) -> String {
        let head: Vec<&str> = super::printed::HEAD.into_iter().chain(["depth"]).collect();
        let rows = self.0.iter().flat_map(|(depth, printed)| {
            let rows = printed.csv_rows().into_iter();
            rows.map(move |row| row.into_iter().chain([depth.to_string()]).collect())
        });
        csv_table(&head, rows)
    }
}
