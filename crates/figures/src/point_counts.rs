//! Points of figures that a run does not have, counted by figure and reason.

use std::collections::BTreeMap;
use std::fmt::Display;

/// How many points of each figure, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PointCounts<R>(BTreeMap<(String, R), usize>);

impl<R> Default for PointCounts<R> {
    fn default() -> PointCounts<R> {
        PointCounts(BTreeMap::new())
    }
}

impl<R: Ord + Display> PointCounts<R> {
    /// Counts a point.
    pub(crate) fn add(&mut self, figure: &str, reason: R) {
        *self.0.entry((figure.to_owned(), reason)).or_default() += 1;
    }

    /// Points in all.
    pub(crate) fn count(&self) -> usize {
        self.0.values().sum()
    }

    /// A line for each figure and reason; `what` is said of the points.
    pub(crate) fn lines(&self, what: &'static str) -> impl Iterator<Item = String> {
        self.0.iter().map(move |((figure, reason), count)| {
            let points = match count {
                1 => "1 point is".to_owned(),
                count => format!("{count} points are"),
            };
            format!("{figure}: {points} {what}: {reason}")
        })
    }
}
