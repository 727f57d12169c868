//! What a kernel counted while it migrated pages: its calls by reason and mode, and its copies by order. As
//! charts, CSV and JSON.
//!
//! The times of the same file are those of an emulated processor and are left out.

use dray_experiment::csv_table;
use dray_report::{Chart, ChartSize, Provenance, Series, SeriesKind};
use serde::{Deserialize, Serialize};

use crate::FiguresError;

/// The figure that they belong to.
pub(crate) const FIGURE: &str = "in-kernel";
/// Name of the files.
pub(crate) const ID: &str = "in-kernel-counts";
/// Lines of /proc/timer of a guest.
const HISTOGRAMS: &str = include_str!("../../../figures/traces/guest-histograms.csv");

/// What was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Counted {
    /// Calls of migrate_pages.
    Calls,
    /// Copies by the core or a device.
    Copies,
}

impl Counted {
    fn name(self) -> &'static str {
        match self {
            Counted::Calls => "calls",
            Counted::Copies => "copies",
        }
    }
}

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Line {
    kind: Counted,
    by: String,
    of: String,
    from: u64,
    to: u64,
    count: u64,
}

/// How often something happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Count {
    /// Calls or copies.
    pub(crate) kind: Counted,
    /// Reason and mode of a call, or who copied.
    pub(crate) by: String,
    /// The fewest pages.
    pub(crate) least_pages: u64,
    /// The most.
    pub(crate) most_pages: u64,
    /// How often.
    pub(crate) count: u64,
}

impl Count {
    fn of(line: Line) -> Count {
        let order = || line.of.parse::<u32>().unwrap_or_default().min(62);
        let (by, least_pages, most_pages) = match line.kind {
            // A copy of order n has more than half of 2^n pages.
            Counted::Copies => (line.by, (1 << order()) / 2 + 1, 1 << order()),
            Counted::Calls => (format!("{}, {}", line.by, line.of), line.from, line.to),
        };
        Count {
            kind: line.kind,
            by,
            least_pages: least_pages.min(most_pages),
            most_pages,
            count: line.count,
        }
    }

    fn same(&self, other: &Count) -> bool {
        (self.kind, &self.by, self.least_pages) == (other.kind, &other.by, other.least_pages)
    }

    fn pages(&self) -> String {
        match self.least_pages == self.most_pages {
            true => self.most_pages.to_string(),
            false => format!("{}-{}", self.least_pages, self.most_pages),
        }
    }
}

/// All counts, in the order of the file; copies of one order are one, however long they took.
///
/// # Errors
/// A file that is not well-formed.
pub(crate) fn counts() -> Result<Vec<Count>, FiguresError> {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(HISTOGRAMS.as_bytes());
    let mut counts: Vec<Count> = Vec::new();
    for line in reader.deserialize::<Line>() {
        let count = Count::of(line.map_err(|source| FiguresError::Trace {
            source: Box::new(source),
        })?);
        match counts.iter_mut().find(|known| known.same(&count)) {
            Some(known) => known.count += count.count,
            None => counts.push(count),
        }
    }
    Ok(counts)
}

/// The counts as CSV.
pub(crate) fn to_csv(counts: &[Count]) -> String {
    let rows = counts.iter().map(|c| {
        let (reason, mode) = c.by.split_once(", ").unwrap_or((&c.by, ""));
        vec![
            c.kind.name().to_owned(),
            reason.to_owned(),
            mode.to_owned(),
            c.least_pages.to_string(),
            c.most_pages.to_string(),
            c.count.to_string(),
        ]
    });
    csv_table(
        &["kind", "by", "mode", "least_pages", "most_pages", "count"],
        rows,
    )
}

/// Names in `by`, in the order of the file.
fn names<'a>(counts: &[&'a Count]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for count in counts {
        if !names.contains(&count.by.as_str()) {
            names.push(count.by.as_str());
        }
    }
    names
}

fn total(counts: &[&Count], name: &str) -> u64 {
    counts
        .iter()
        .filter(|c| c.by == name)
        .map(|c| c.count)
        .sum()
}

/// Which numbers of pages are most often asked for, by reason and mode.
pub(crate) fn sentence(counts: &[Count]) -> String {
    let calls: Vec<&Count> = counts.iter().filter(|c| c.kind == Counted::Calls).collect();
    let each = names(&calls).into_iter().filter_map(|name| {
        let of = calls.iter().filter(|c| c.by == name);
        let most = of.max_by_key(|c| (c.count, c.most_pages))?;
        let total = total(&calls, name);
        let plural = if total == 1 { "" } else { "s" };
        Some(format!(
            "{name}: {total} call{plural}, {} of them with {} page{}",
            most.count,
            most.pages(),
            if most.most_pages == 1 { "" } else { "s" }
        ))
    });
    format!(
        "Counted in the guest: {}.",
        each.collect::<Vec<_>>().join("; ")
    )
}

/// Calls by pages, for each reason and mode; copies by order.
pub(crate) fn charts(counts: &[Count]) -> Vec<Chart> {
    let chart = |kind: Counted, title: &str, x_label: &str, y_label: &str, of_all: bool| {
        let counts: Vec<&Count> = counts.iter().filter(|c| c.kind == kind).collect();
        let mut columns: Vec<(u64, String)> =
            counts.iter().map(|c| (c.least_pages, c.pages())).collect();
        columns.sort();
        columns.dedup();
        let series = names(&counts).into_iter().map(|name| {
            let total = total(&counts, name);
            let values = columns.iter().map(|(least, _)| {
                let found = counts
                    .iter()
                    .find(|c| c.by == name && c.least_pages == *least)?;
                Some(match of_all {
                    true => found.count as f64 * 100.0 / total as f64,
                    false => found.count as f64,
                })
            });
            let name = format!("{name} ({total})");
            Series::new(
                name,
                Provenance::Counted,
                SeriesKind::Bars,
                values.collect(),
            )
        });
        Chart {
            id: format!("{FIGURE}-{}", kind.name()),
            title: title.to_owned(),
            x_label: x_label.to_owned(),
            y_label: y_label.to_owned(),
            log_y: !of_all,
            categories: columns.iter().map(|(_, pages)| pages.clone()).collect(),
            series: series.collect(),
            footer: "Debian's Linux 7.2.12 in QEMU, dray_migrate, two memory tiers".to_owned(),
            size: ChartSize::Full,
            ..Chart::default()
        }
    };
    vec![
        chart(
            Counted::Calls,
            "Pages of a call of migrate_pages, by reason and mode",
            "Pages that a call migrated",
            "Share of the calls (%)",
            true,
        ),
        chart(
            Counted::Copies,
            "Copies by order",
            "Pages copied together",
            "Copies",
            false,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::{Trace, copies};

    #[test]
    fn the_trace_and_the_histograms_are_of_one_run() {
        let counts = counts().unwrap();
        for order in 0..=9 {
            let most = 1 << order;
            let counted: u64 = counts
                .iter()
                .filter(|c| c.kind == Counted::Copies && c.most_pages == most)
                .map(|c| c.count)
                .sum();
            let traced: u64 = copies(Trace::All)
                .unwrap()
                .iter()
                .filter(|c| c.order() == order)
                .map(|c| c.count)
                .sum();
            assert!(counted > 0, "no copy of order {order}");
            assert_eq!(counted, traced, "order {order}");
        }
    }

    #[test]
    fn the_bars_have_every_call() {
        let counts = counts().unwrap();
        let [calls, copies] = charts(&counts).try_into().unwrap();
        for series in &calls.series {
            let sum: f64 = series.values.iter().flatten().sum();
            assert!((sum - 100.0).abs() < 1e-9, "{}: {sum}", series.name);
        }
        let reasons: Vec<&str> = calls
            .series
            .iter()
            .map(|s| s.name.split(" (").next().unwrap())
            .collect();
        for reason in [
            "compaction, sync",
            "demotion, async",
            "numa_misplaced, async",
        ] {
            assert!(reasons.contains(&reason), "{reasons:?}");
        }
        assert_eq!(copies.categories.len(), 10);
        assert!(copies.to_svg().unwrap().contains("counted in a guest"));
        let csv = to_csv(&counts);
        assert_eq!(csv.lines().count(), counts.len() + 1);
        assert!(csv.contains("\ncalls,demotion,async,"), "{csv}");
        let said = sentence(&counts);
        // A fault promotes one page.
        assert!(
            said.contains("numa_misplaced, async: 2048 calls, 2048 of them with 1 page"),
            "{said}"
        );
    }
}
