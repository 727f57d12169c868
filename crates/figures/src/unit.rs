//! Units of an axis, by its label.

/// What the label of an axis asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    /// As the metric is.
    Plain,
    /// Microseconds of a metric in nanoseconds.
    Micro,
    /// How much above the core, relative to it.
    Excess,
    /// Percent of all parts of a stack together.
    Share,
}

impl Unit {
    /// By the words of the label.
    pub(crate) fn of(y_label: &str) -> Unit {
        if y_label.contains("(µs)") {
            Unit::Micro
        } else if y_label.contains("(DSA − core) / core") {
            Unit::Excess
        } else if y_label.starts_with("Share (%)") {
            Unit::Share
        } else {
            Unit::Plain
        }
    }

    /// A value in this unit.
    pub(crate) fn apply(self, value: f64) -> f64 {
        match self {
            Unit::Plain | Unit::Share => value,
            Unit::Micro => value / 1000.0,
            Unit::Excess => value - 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_the_label() {
        assert_eq!(Unit::of("Latency (µs)").apply(1500.0), 1.5);
        assert_eq!(Unit::of("Time of one copy (ns)").apply(15.0), 15.0);
        assert_eq!(Unit::of("Improvement, (DSA − core) / core").apply(3.0), 2.0);
    }
}
