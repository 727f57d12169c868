//! What is recorded of TLPs and transfers, as JSON for Perfetto.

use serde_json::json;

use super::tlp::{Tlp, TlpKind};
use crate::topology::Topology;

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

/// The Chrome trace format: a track for each edge and each stream, times in microseconds.
pub(crate) fn perfetto(
    topology: &Topology,
    hops: &[Hop],
    spans: &[TransferSpan],
    streams: &[String],
) -> String {
    let us = |ps: u64| ps as f64 / 1e6;
    let mut events = Vec::with_capacity(hops.len() + 3 * spans.len() + 64);
    let name = |pid: u32, tid: u32, name: &str| json!({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}});
    for (pid, title) in [(1, "links"), (2, "transfers")] {
        events
            .push(json!({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": title}}));
    }
    for (index, edge) in topology.edges().iter().enumerate() {
        events.push(name(1, index as u32, &edge.name));
    }
    for (index, stream) in streams.iter().enumerate() {
        events.push(name(2, index as u32, stream));
    }
    for hop in hops {
        events.push(json!({
            "ph": "X", "pid": 1, "tid": hop.edge, "name": hop.kind(),
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
                    "ph": ph, "cat": "transfer", "id": index, "pid": 2, "tid": span.stream,
                    "name": phase, "ts": us(at),
                })
            };
            events.push(event("b", from));
            events.push(event("e", to));
        }
    }
    json!({"displayTimeUnit": "ns", "traceEvents": events}).to_string()
}
