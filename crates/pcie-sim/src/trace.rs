//! What is recorded of TLPs and transfers, as JSON for Perfetto.

use serde_json::json;

use super::tlp::{Tlp, TlpKind};
use dray_topology::Topology;

/// A TLP on an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Index of the edge.
    pub edge: u32,
    /// When its first byte was sent, ps.
    pub start_ps: u64,
    /// When its last byte was sent, ps.
    pub end_ps: u64,
    /// Payload, bytes.
    pub payload: u16,
    /// Transfer or source that it belongs to.
    pub owner: u32,
    kind: TlpKind,
}

impl Hop {
    pub(super) fn new(edge: u32, start_ps: u64, end_ps: u64, tlp: &Tlp) -> Self {
        Self {
            edge,
            start_ps,
            end_ps,
            payload: tlp.payload,
            owner: tlp.owner,
            kind: tlp.kind,
        }
    }

    /// Kind of TLP, in words.
    pub fn kind(&self) -> &'static str {
        self.kind.word()
    }
}

/// A completed transfer in three phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferSpan {
    /// Index of the stream.
    pub stream: u32,
    /// Asked for, doorbell sent, command at the device, first TLP sent, completion word in memory,
    /// known to the program; ps.
    pub stamps: [u64; 6],
}

/// Microseconds. Perfetto multiplies them by 1000 and drops what is below a nanosecond: rounding must not make it a
/// nanosecond less.
fn microseconds(ps: u64) -> f64 {
    let exact = ps as f64 / 1e6;
    if ((exact * 1000.0) as u64) < ps / 1000 {
        exact.next_up()
    } else {
        exact
    }
}

/// The Chrome trace format: a track for each edge and each stream, times in microseconds. No two tracks have the same number,
/// and none has 0, which is the idle thread in Perfetto.
pub(crate) fn perfetto(
    topology: &Topology,
    hops: &[Hop],
    spans: &[TransferSpan],
    streams: &[String],
) -> String {
    let us = microseconds;
    let stream_track = |stream: u32| topology.edges().len() as u32 + 1 + stream;
    let mut events = Vec::with_capacity(hops.len() + 3 * spans.len() + 64);
    let name = |pid: u32, tid: u32, name: &str| json!({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}});
    for (pid, title) in [(1, "links"), (2, "transfers")] {
        events
            .push(json!({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": title}}));
    }
    for (index, edge) in topology.edges().iter().enumerate() {
        events.push(name(1, index as u32 + 1, &edge.name));
    }
    for (index, stream) in streams.iter().enumerate() {
        events.push(name(2, stream_track(index as u32), stream));
    }
    for hop in hops {
        events.push(json!({
            "ph": "X", "pid": 1, "tid": hop.edge + 1, "name": hop.kind(),
            "ts": us(hop.start_ps), "dur": us(hop.end_ps - hop.start_ps),
            "args": {"payload": hop.payload, "owner": hop.owner},
        }));
    }
    for (index, span) in spans.iter().enumerate() {
        let [asked, sent, arrived, first, stored, known] = span.stamps;
        for (phase, from, to) in [
            ("host: submit", asked, sent),
            ("fabric: doorbell", sent, arrived),
            ("device", arrived, first),
            ("fabric: data and completion", first, stored),
            ("host: poll", stored, known),
        ] {
            let event = |ph: &str, at: u64| {
                json!({
                    "ph": ph, "cat": "transfer", "id": index, "pid": 2, "tid": stream_track(span.stream),
                    "name": phase, "ts": us(at),
                })
            };
            events.push(event("b", from));
            events.push(event("e", to));
        }
    }
    json!({"displayTimeUnit": "ns", "traceEvents": events}).to_string()
}

#[cfg(test)]
mod tests {
    use super::microseconds;

    #[test]
    fn whole_nanoseconds_are_exact_in_microseconds() {
        let mut below = 0;
        for ns in 0..200_000 {
            let value = microseconds(ns * 1000);
            assert_eq!((value * 1000.0) as u64, ns);
            below += usize::from(value != ns as f64 / 1e3);
        }
        assert!(below > 0, "some would be a nanosecond less");
        assert_eq!(microseconds(577), 0.000577);
    }
}
