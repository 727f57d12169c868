//! What is measured of a point.

use dray_clock::Duration;
use dray_workload::Measured;

/// Declares an enum of words, each with its name in files and results.
macro_rules! words {
    ($(#[$about:meta])* $enum:ident { $($(#[$doc:meta])+ $variant:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $enum {
            $($(#[$doc])+ $variant,)+
        }

        impl $enum {
            /// All names.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Its name in files and results.
            pub const fn name(self) -> &'static str {
                match self {
                    $($enum::$variant => $name,)+
                }
            }

            /// The one of this name.
            pub fn named(name: &str) -> Option<$enum> {
                match name {
                    $($name => Some($enum::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// A number that a point gives; its name ends with its unit.
    Metric {
        /// Payload, 1e9 bytes a second.
        Throughput = "throughput_gbps",
        /// Time from preparation to completion seen.
        Latency = "latency_ns",
        /// Time from one completion to the next.
        Period = "period_ns",
        /// The shortest of several measured periods but one.
        PeriodLow = "period_low_ns",
        /// The longest of several measured periods but one.
        PeriodHigh = "period_high_ns",
        /// Core time spent preparing an operation.
        Prepare = "prepare_ns",
        /// Core time spent submitting it.
        Submit = "submit_ns",
        /// The rest of the core's period.
        Wait = "wait_ns",
        /// Share of its time in which the core is not asleep.
        BusyShare = "busy_share",
        /// Share of its time that the core has back, in percent.
        FreeShare = "free_share",
        /// Million operations a second.
        Rate = "rate_mops",
        /// ENQCMD answered with retry, in percent.
        RetryShare = "retry_share",
        /// Core time of a burst.
        Burst = "burst_ns",
        /// Descriptors that a queue accepted.
        Accepted = "accepted",
        /// Time per page of operations that fault.
        FaultPage = "fault_page_ns",
        /// Throughput of the neighbour.
        NeighbourThroughput = "neighbour_gbps",
        /// Latency of the neighbour's operations.
        NeighbourLatency = "neighbour_latency_us",
        /// Time to copy a list of pages.
        List = "list_ns",
        /// Time of a migration, for each of its pages.
        MigrationPage = "migration_page_ns",
        /// The part of it that is copying.
        CopyPage = "copy_page_ns",
        /// Core time per packet for switching and the network port.
        Forward = "forward_ns",
        /// Core time per packet for the rings of a virtual switch.
        Ring = "ring_ns",
        /// Core time per packet for copying.
        Copy = "copy_ns",
        /// Core time per packet for handing copies to a device and taking them back.
        Offload = "offload_ns",
        /// Million packets a second.
        PacketRate = "rate_mpps",
        /// Time of one call that migrates pages.
        Migrate = "migrate_ns",
        /// The part of it that is the copy.
        MigrateCopy = "migrate_copy_ns",
        /// The rest of it.
        MigrateRest = "migrate_rest_ns",
        /// Bytes that have changed tier since the start, in 1e9.
        Migrated = "migrated_gb",
        /// Million accesses a second of a program on two tiers.
        Accesses = "accesses_mops",
        /// Share of the accesses that find their page in the fast tier.
        FastShare = "fast_share",
        /// Size from which the device has more throughput than the core.
        BreakEven = "break_even_bytes",
        /// Size from which offload takes less core time.
        CoreBreakEven = "core_break_even_bytes",
    }
}

impl Metric {
    /// Whether it is a size from which something holds, which there need not be.
    pub(crate) fn is_break_even(self) -> bool {
        matches!(self, Metric::BreakEven | Metric::CoreBreakEven)
    }
}

/// Metrics and values, in a fixed order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metrics(Vec<(Metric, f64)>);

impl Metrics {
    /// One metric alone.
    pub fn single(metric: Metric, value: f64) -> Metrics {
        Metrics(vec![(metric, value)])
    }

    /// The metrics of loops of operations of `bytes` payload bytes that ran at the same time.
    pub(crate) fn of(loops: &[Measured], bytes: u64) -> Metrics {
        let operations = loops.iter().map(|m| m.operations).sum::<u64>().max(1) as f64;
        let mean = |time: fn(&Measured) -> Duration| {
            loops.iter().map(|m| time(m).as_ns()).sum::<f64>() / operations
        };
        let period = match loops {
            [one] => one.elapsed.as_ns() / operations,
            all => {
                let rate =
                    |m: &Measured| m.operations as f64 / m.elapsed.as_ns().max(f64::MIN_POSITIVE);
                1.0 / all.iter().map(rate).sum::<f64>().max(f64::MIN_POSITIVE)
            }
        };
        let (prepare, submit) = (mean(|m| m.prepare), mean(|m| m.submit));
        // What a core waits of its own period; the period of all is shorter.
        let own = period * loops.len() as f64;
        Metrics::default()
            .with(
                Metric::Throughput,
                bytes as f64 / period.max(f64::MIN_POSITIVE),
            )
            .with(Metric::Latency, mean(|m| m.latency))
            .with(Metric::Period, period)
            .with(Metric::Prepare, prepare)
            .with(Metric::Submit, submit)
            .with(Metric::Wait, (own - prepare - submit).max(0.0))
            .with(Metric::Rate, 1e3 / period.max(f64::MIN_POSITIVE))
    }

    /// Adds a metric.
    pub fn with(mut self, metric: Metric, value: f64) -> Metrics {
        self.0.push((metric, value));
        self
    }

    /// The value of a metric.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.0.iter().find(|m| m.0 == metric).map(|m| m.1)
    }

    /// Metrics and values.
    pub fn iter(&self) -> impl Iterator<Item = (Metric, f64)> {
        self.0.iter().copied()
    }

    /// All of them by name.
    pub fn into_vec(self) -> Vec<(String, f64)> {
        let named = |(metric, value): (Metric, f64)| (metric.name().to_owned(), value);
        self.0.into_iter().map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_name_of_its_own() {
        for name in Metric::NAMES {
            assert_eq!(Metric::named(name).map(Metric::name), Some(*name));
        }
        assert_eq!(Metric::named("beside_gbps"), None);
    }
}
