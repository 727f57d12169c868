//! Published numbers of the very configuration of a modelled point.

use dray_device::WorkQueueMode;
use dray_experiment::{Point, ReferencePoint, ReferenceTable};
use dray_idxd::Profile;
use dray_workload::Op;

use crate::published_unit::PublishedUnit;
use crate::workload::{What, Workload};
use crate::{FiguresError, Metric};

/// Published throughputs and latencies by workload.
#[derive(Debug, Default)]
pub(crate) struct Published {
    queue: Option<Queue>,
    /// Workload, metric, value in the unit of the metric.
    known: Vec<(Workload, Metric, f64)>,
}

/// What the profile gives a workload that does not say it.
#[derive(Debug, Clone, Copy)]
struct Queue {
    shared: bool,
    engines: u16,
    size: u16,
}

impl Published {
    /// The numbers of `tables` that a figure may draw: those without differences of the machine.
    ///
    /// # Errors
    /// A table that names what this program does not know.
    pub(crate) fn new(
        tables: &[ReferenceTable],
        profile: &Profile,
    ) -> Result<Published, FiguresError> {
        let queue = profile.devices()?.first().and_then(|device| {
            let queue = device.work_queues.first()?;
            let group = device.groups.iter().find(|g| g.id == queue.group)?;
            Some(Queue {
                shared: queue.mode == WorkQueueMode::Shared,
                engines: group.engines.len() as u16,
                size: queue.size,
            })
        });
        let mut published = Published {
            queue,
            known: Vec::new(),
        };
        for table in tables.iter().filter(|t| t.overrides.is_empty()) {
            // Where the source leaves open where the buffers were, the configuration is not the same.
            let inferred =
                |p: &ReferencePoint| p.note.as_deref().is_some_and(|n| n.contains("inferred"));
            for point in table.points.iter().filter(|p| p.checked && !inferred(p)) {
                published.add(table, point)?;
            }
        }
        Ok(published)
    }

    /// The published value of a metric of a point, if one was published for just this.
    pub(crate) fn value(&self, point: &Point, metric: Metric) -> Option<f64> {
        let workload = self.settled(Workload::from_point(point).ok()?);
        let known = |(w, m, _): &&(Workload, Metric, f64)| *w == workload && *m == metric;
        self.known.iter().find(known).map(|(.., value)| *value)
    }

    fn add(&mut self, table: &ReferenceTable, point: &ReferencePoint) -> Result<(), FiguresError> {
        let workload = Workload::from_point(&Point::new(point.parameters.clone()))?;
        if workload.what != What::Offload || workload.bytes() == 0 {
            return Ok(());
        }
        let bytes = workload.bytes() as f64;
        let unit = PublishedUnit::of(table)?;
        let (metric, value) = (unit.metric, point.value / unit.factor);
        if !matches!(
            metric,
            Metric::Latency | Metric::Period | Metric::Throughput
        ) {
            return Ok(());
        }
        let workload = self.settled(workload);
        self.known.push((workload, metric, value));
        let alone = workload.depth == Some(1) && workload.batch == 1;
        if metric == Metric::Period || (metric == Metric::Latency && alone) {
            self.known
                .push((workload, Metric::Throughput, bytes / value));
        }
        Ok(())
    }

    /// A workload with all that the profile decides, and without what makes no difference.
    fn settled(&self, mut w: Workload) -> Workload {
        let Some(queue) = self.queue else { return w };
        let size = w.wq_size.unwrap_or(queue.size);
        w.depth = Some(w.depth.unwrap_or(u32::from(size)));
        w.shared = Some(w.shared.unwrap_or(queue.shared));
        w.engines = Some(w.engines.unwrap_or(queue.engines));
        w.wq_size = Some(size);
        if w.depth == Some(1) && w.batch == 1 {
            // One descriptor uses one engine and one entry.
            w.engines = Some(1);
            w.wq_size = Some(1);
        }
        if w.op == Op::NtFill {
            w.op = Op::Fill;
        }
        w
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_are_drawn_only_for_the_same_configuration() {
        let tables = crate::reference_tables().unwrap();
        let point = Point::default()
            .with("op", "memmove")
            .with("mode", "sync")
            .with("size", 4096);
        let value = |profile: &str| {
            let published = Published::new(&tables, &Profile::named(profile).unwrap()).unwrap();
            published.value(&point, Metric::Throughput)
        };
        // 1.14 us with ENQCMD; with MOVDIR64B the source does not say where the buffers were.
        assert!((value("1e1w-s").unwrap() - 4096.0 / 1140.0).abs() < 1e-9);
        assert!((value("4e1w-s").unwrap() - 4096.0 / 1140.0).abs() < 1e-9);
        assert_eq!(value("1e1w-d"), None);
        let published = Published::new(&tables, &Profile::named("1e1w-d").unwrap()).unwrap();
        assert_eq!(
            published.value(&point.with("mode", "async"), Metric::Throughput),
            None
        );
        assert_eq!(
            published.value(&point.with("dst_node", "remote"), Metric::Throughput),
            None
        );
    }
}
