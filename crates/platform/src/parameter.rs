//! The physical parameters: name, unit, what it means; and their values as integers.

use std::cell::Cell;
use std::sync::Arc;

use dray_clock::Duration;
use serde::Deserialize;

/// Unit of a parameter in the platform file, and what integer it becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Unit {
    /// Nanoseconds; kept as picoseconds.
    #[serde(rename = "ns")]
    Ns,
    /// 1e9 bytes a second; kept as femtoseconds per 64-byte line.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
    /// A plain number of things.
    #[serde(rename = "count")]
    Count,
    /// A ratio without unit; kept in thousandths.
    #[serde(rename = "ratio")]
    Ratio,
}

impl Unit {
    /// The unit as platform files spell it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::GigabytesPerSecond => "GB/s",
            Unit::Count => "count",
            Unit::Ratio => "ratio",
        }
    }

    /// The unit that follows a value: none where it is a plain number.
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Ns => " ns",
            Unit::GigabytesPerSecond => " GB/s",
            Unit::Count | Unit::Ratio => "",
        }
    }

    /// The integer that the model calculates with. `value` is finite and not negative; one
    /// multiplication or division, exactly rounded by IEEE 754, so the same on every machine.
    fn integer(self, value: f64) -> u64 {
        match self {
            Unit::Ns | Unit::Ratio => (value * 1000.0).round() as u64,
            Unit::GigabytesPerSecond => (64_000_000.0 / value).round() as u64,
            Unit::Count => value.round() as u64,
        }
    }
}

/// One parameter as the platform file states it.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Name, as in the file.
    pub name: &'static str,
    /// Value in `unit`.
    pub value: f64,
    /// Unit of value and range.
    pub unit: Unit,
    /// Values that are physically possible.
    pub range: [f64; 2],
    /// Where the number comes from.
    pub source: Arc<str>,
    /// No published number stands behind the value.
    pub guess: bool,
}

/// Integer type that a unit becomes.
macro_rules! kept {
    (Ns) => {
        Duration
    };
    ($other:ident) => {
        u64
    };
}

macro_rules! keep {
    (Ns, $value:expr) => {
        Duration($value)
    };
    ($other:ident, $value:expr) => {
        $value
    };
}

macro_rules! integer {
    (Ns, $value:expr) => {
        $value.0
    };
    ($other:ident, $value:expr) => {
        $value
    };
}

macro_rules! parameters {
    ($($(#[doc = $doc:literal])+ $name:ident: $unit:ident,)+) => {
        /// All parameters, as the integers that the model calculates with: durations in
        /// picoseconds, bandwidths in femtoseconds per 64-byte line, ratios in thousandths.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Parameters {
            $($(#[doc = $doc])+ pub $name: kept!($unit),)+
        }

        /// Name, unit and meaning of every parameter, in the order of the report.
        pub(crate) const SCHEMA: &[(&str, Unit, &str)] = &[
            $((stringify!($name), Unit::$unit, concat!($($doc),+)),)+
        ];

        impl Parameters {
            /// From values in the order of the schema.
            pub(crate) fn from_values(values: &[f64]) -> Parameters {
                let mut kept = values.iter().zip(SCHEMA).map(|(v, (_, unit, _))| unit.integer(*v));
                Parameters {
                    $($name: keep!($unit, kept.next().unwrap_or_default()),)+
                }
            }

            /// All values, in the order of the schema.
            fn integers(&self) -> [u64; SCHEMA.len()] {
                [$(integer!($unit, self.$name),)+]
            }
        }

        /// Positions in the schema.
        #[allow(non_camel_case_types)]
        enum Position {
            $($name,)+
        }

        impl RecordedParameters {
            $(
                $(#[doc = $doc])+
                #[inline]
                pub fn $name(&self) -> kept!($unit) {
                    self.read.set(self.read.get() | 1 << Position::$name as u32);
                    self.values.$name
                }
            )+
        }
    };
}

/// Parameters that record which of them are read: a run depends on no others.
#[derive(Debug, Clone)]
pub struct RecordedParameters {
    values: Parameters,
    /// One bit for each parameter, by its position in the schema.
    read: Cell<u128>,
}

const _: () = assert!(SCHEMA.len() <= u128::BITS as usize);

impl RecordedParameters {
    /// Nothing has been read yet.
    pub fn new(values: Parameters) -> RecordedParameters {
        RecordedParameters {
            values,
            read: Cell::new(0),
        }
    }

    /// What has been read.
    pub fn reads(&self) -> ParameterReads {
        let read = self.read.get();
        let values = self.values.integers().into_iter().enumerate();
        ParameterReads {
            read,
            values: values
                .filter(|(position, _)| read >> position & 1 == 1)
                .map(|(_, value)| value)
                .collect(),
        }
    }
}

/// The parameters that a run has read, and their values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ParameterReads {
    /// One bit for each parameter, by its position in the schema.
    read: u128,
    /// Of those that were read, in the order of the schema.
    values: Box<[u64]>,
}

impl ParameterReads {
    /// Whether other parameters have the same values wherever these were read.
    pub fn same_in(&self, parameters: &Parameters) -> bool {
        let mut left = self.read;
        let others = parameters.integers();
        self.values.iter().all(|value| {
            let position = left.trailing_zeros();
            left &= left - 1;
            others[position as usize] == *value
        })
    }
}

parameters! {
    /// Core time to write one descriptor into its cache.
    prepare: Ns,
    /// Core time of a MOVDIR64B while the store queue has room.
    movdir64b_issue: Ns,
    /// Time that one MOVDIR64B to a portal line takes to be accepted; one at a time per core.
    movdir64b_drain: Ns,
    /// Stores that a core holds before it stalls, MOVDIR64B and ordinary ones alike.
    core_store_queue: Count,
    /// MOVDIR64B accepted at once when the portal offset changes with each of them.
    portal_lines_in_flight: Count,
    /// Time that a core is blocked by one ENQCMD.
    enqcmd_period: Ns,
    /// Shortest time between two ENQCMD that one device answers.
    enqcmd_accept: Ns,
    /// Extra time of a descriptor to reach a shared queue instead of a dedicated one.
    enqcmd_admission: Ns,
    /// What each further ENQCMD that waits at the device adds to that time.
    enqcmd_contention: Ns,
    /// Shortest time between two ENQCMD from the other socket that one device answers.
    enqcmd_accept_remote: Ns,
    /// Extra time that a core of the other socket is blocked by one ENQCMD, over the way there and back.
    enqcmd_remote: Ns,
    /// Extra time of an ENQCMD that finds the device's inbound path busy with read data.
    enqcmd_behind_reads: Ns,
    /// Extra one-way time of a submission to a device of another socket.
    submit_remote: Ns,
    /// Time from the start of a submission to the work queue.
    submit_to_wq: Ns,
    /// Time from the work queue to the start in an engine, decoding included.
    dispatch: Ns,
    /// Time from the last data write to the completion record in the cache.
    completion_write: Ns,
    /// First read of a completion line that the device has just written.
    completion_read: Ns,
    /// Core time of one look at a completion record.
    poll: Ns,
    /// Time between two looks with PAUSE between them.
    pause: Ns,
    /// Time from the write to a monitored line until UMWAIT returns, over a plain look.
    umwait_wake: Ns,
    /// Descriptors that an engine fetches ahead of the one whose data it requests.
    engine_fetch_ahead: Count,
    /// Descriptors whose accesses are in flight in one engine.
    engine_in_flight: Count,
    /// Shortest time between the starts of two descriptors in one engine.
    engine_issue: Ns,
    /// How much longer an engine needs for a descriptor whose data it computes over: CRC, DIF, delta.
    engine_transform: Ns,
    /// Time that an engine needs between the data of two descriptors.
    engine_gap: Ns,
    /// Device-internal rate at which data is read from memory, all engines together.
    port_read: GigabytesPerSecond,
    /// Rate at which data is written to memory, all engines together.
    port_write: GigabytesPerSecond,
    /// Time lost per line when a descriptor reads and writes at once.
    port_turnaround: Ns,
    /// Time of the write port for one completion record, which is half a line.
    port_completion: Ns,
    /// Bytes that one read buffer covers.
    read_buffer_bytes: Count,
    /// Read buffers of the device.
    read_buffers: Count,
    /// Mean latency of a line read that hits the last-level cache.
    read_llc: Ns,
    /// Mean latency of a line read from local DRAM.
    read_dram: Ns,
    /// Extra latency of memory on another socket.
    remote_extra: Ns,
    /// Extra latency of CXL memory.
    cxl_extra: Ns,
    /// Mean excess of a DRAM read over the fastest one, exponentially distributed.
    read_spread: Ns,
    /// The same for reads that hit the last-level cache.
    read_spread_llc: Ns,
    /// Mean latency of a line write, posted to acknowledged.
    write_ack: Ns,
    /// Mean excess of a line write over the fastest one, exponentially distributed.
    write_spread: Ns,
    /// Latency of a translation that misses the engine's translation cache.
    translation_miss: Ns,
    /// Time that a write of part of a 32-byte sector holds up an engine's write stream.
    partial_sector: Ns,
    /// The same for a write of half a line on its 32-byte boundary.
    partial_line: Ns,
    /// Rate at which buffered data leaves the engine after such a hold-up.
    write_burst: GigabytesPerSecond,
    /// Engine time from a batch descriptor to the first member, besides reading the list.
    batch_dispatch: Ns,
    /// Extra time of a batch descriptor from a shared work queue until its list is fetched, with members of 4 KiB
    /// or more; in proportion with smaller ones.
    batch_shared: Ns,
    /// Page fault that the device resolves by a page request, engine blocked.
    fault_block: Ns,
    /// Time that a faulting translation takes until the engine knows.
    fault_detect: Ns,
    /// Core time to make a page present by writing to it, resubmission excluded.
    fault_touch_write: Ns,
    /// Core time to make a page present by reading from it, resubmission excluded.
    fault_touch_read: Ns,
    /// Read bandwidth of a DRAM node for data movers.
    node_read: GigabytesPerSecond,
    /// Write bandwidth of a DRAM node for data movers.
    node_write: GigabytesPerSecond,
    /// Payload bandwidth between two sockets, all links together, each direction.
    socket_link: GigabytesPerSecond,
    /// Read bandwidth of a CXL node.
    cxl_read: GigabytesPerSecond,
    /// Write bandwidth of a CXL node.
    cxl_write: GigabytesPerSecond,
    /// Core time of a virtual switch for the ring of one packet in one direction, copying excluded.
    vhost_ring: Ns,
    /// Core time of a virtual switch for one packet in one direction, ring and copying excluded.
    vhost_forward: Ns,
    /// Core time to keep account of one packet's asynchronous copy, its descriptor excluded.
    vhost_async: Ns,
    /// Core time to copy a line of a packet that another core or the network port wrote.
    vhost_copy_line: Ns,
    /// Core time to fetch again what one packet in one direction needs of rings and buffers, where copies of the core have
    /// driven it out of the first-level cache.
    vhost_refetch: Ns,
    /// Core time to take a lock that another core held.
    vhost_lock: Ns,
    /// Core time to call a software routine.
    cpu_call: Ns,
    /// Bytes from which memcpy copies by a string instruction, which reads no line for ownership.
    cpu_string_from: Count,
    /// Core time until a copy that loops streams: prefetchers begin with each copy, and a string
    /// instruction sets up before it copies.
    cpu_copy_start: Ns,
    /// Latency of a line of local DRAM to a core.
    cpu_line_latency: Ns,
    /// Misses that a core keeps outstanding at once.
    cpu_fill_buffers: Count,
    /// Core time per line of memcpy from and to local DRAM, by a string instruction.
    cpu_copy_line: Ns,
    /// Core time per line of memset to local DRAM.
    cpu_fill_line: Ns,
    /// Core time per line of a memset with non-temporal stores.
    cpu_nt_fill_line: Ns,
    /// Core time per line of memcmp, both sources in local DRAM.
    cpu_compare_line: Ns,
    /// Core time per line of a comparison with a pattern.
    cpu_pattern_line: Ns,
    /// Core time per line of CRC32C for its read from local DRAM.
    cpu_crc_line: Ns,
    /// Core time per line of CRC32C for its computation, wherever the data is; the longer of both counts.
    cpu_crc_compute: Ns,
    /// Core time per line of a copy to two destinations.
    cpu_dualcast_line: Ns,
    /// Extra core time of a string instruction, fill or comparison at a random address.
    cpu_random_access: Ns,
    /// Line cost with data in the core's own caches, relative to local DRAM.
    cpu_scale_l1: Ratio,
    /// Line cost with data in the last-level cache, relative to local DRAM.
    cpu_scale_llc: Ratio,
    /// Line cost with data on another socket, relative to local DRAM.
    cpu_scale_remote: Ratio,
    /// Line cost with data in CXL memory, relative to local DRAM.
    cpu_scale_cxl: Ratio,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_converted_to_integers_in_schema_order() {
        let values: Vec<f64> = (0..SCHEMA.len()).map(|i| 1.0 + i as f64).collect();
        let parameters = Parameters::from_values(&values);
        assert_eq!(parameters.prepare, Duration(1000));
        assert_eq!(parameters.core_store_queue, 4);
        let position = |name| SCHEMA.iter().position(|s| s.0 == name).unwrap() as u64;
        let fs_per_line = 64_000_000.0 / (1 + position("port_read")) as f64;
        assert_eq!(parameters.port_read, fs_per_line.round() as u64);
        assert_eq!(parameters.cpu_scale_cxl, 1000 * SCHEMA.len() as u64);
    }
}
