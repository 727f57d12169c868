//! Metrics and units of published tables.

use dray_experiment::ReferenceTable;

use crate::{FiguresError, Metric};

/// What a table's numbers are: metric and unit in the table's words, and the metric of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PublishedUnit {
    /// The model's metric.
    pub(crate) metric: Metric,
    /// A value of the table divided by that of the metric.
    pub(crate) factor: f64,
}

const METRICS: [(&str, Metric); 6] = [
    ("latency", Metric::Latency),
    ("period", Metric::Period),
    ("throughput", Metric::Throughput),
    ("burst_total", Metric::Burst),
    ("accepted", Metric::Accepted),
    ("fault_page", Metric::FaultPage),
];

/// What a unit measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Time,
    Rate,
    Count,
}

const UNITS: [(&str, Quantity, f64); 7] = [
    ("ns", Quantity::Time, 1.0),
    ("us", Quantity::Time, 1e-3),
    ("ticks_2.2GHz", Quantity::Time, 2.2),
    ("GB/s", Quantity::Rate, 1.0),
    ("MiB/s", Quantity::Rate, 1e9 / (1u64 << 20) as f64),
    ("GiB/s", Quantity::Rate, 1e9 / (1u64 << 30) as f64),
    ("descriptors", Quantity::Count, 1.0),
];

impl Metric {
    fn quantity(self) -> Quantity {
        match self {
            Metric::Throughput => Quantity::Rate,
            Metric::Accepted => Quantity::Count,
            _ => Quantity::Time,
        }
    }
}

impl PublishedUnit {
    /// Of a table.
    ///
    /// # Errors
    /// A metric or a unit that is not known, or a unit that the metric does not have.
    pub(crate) fn of(table: &ReferenceTable) -> Result<PublishedUnit, FiguresError> {
        let unknown = |field, value: &str, known: Vec<&'static str>| FiguresError::Table {
            table: format!("reference/{}.toml", table.id),
            field,
            value: value.to_owned(),
            hint: dray_suggest::suggest(value, known),
        };
        let metric = METRICS.iter().find(|(name, _)| *name == table.metric);
        let (_, metric) = metric.ok_or_else(|| {
            let known = METRICS.iter().map(|(name, _)| *name);
            unknown("metric", &table.metric, known.collect())
        })?;
        let of_metric = UNITS.iter().filter(|(_, q, _)| *q == metric.quantity());
        let unit = of_metric.clone().find(|(name, ..)| *name == table.unit);
        let (.., factor) = unit.ok_or_else(|| {
            let known = of_metric.map(|(name, ..)| *name);
            unknown("unit", &table.unit, known.collect())
        })?;
        Ok(PublishedUnit {
            metric: *metric,
            factor: *factor,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_metrics_and_units_are_errors_that_list_the_known() {
        let table = crate::reference_tables().unwrap().remove(0);
        let message = |metric: &str, unit: &str| {
            let table = ReferenceTable {
                metric: metric.to_owned(),
                unit: unit.to_owned(),
                ..table.clone()
            };
            PublishedUnit::of(&table).unwrap_err().to_string()
        };
        assert!(message("speed", "us").contains("'speed' is unknown; known: latency"));
        assert!(message("latncy", "us").contains("did you mean `latency`?"));
        assert!(message("latency", "mus").contains("did you mean `us`?"));
        assert!(message("latency", "hours").contains("'hours' is unknown; known: ns, us"));
        // Every unit is one of some metric, but not of each.
        assert!(message("throughput", "us").contains("known: GB/s, MiB/s, GiB/s"));
    }
}
