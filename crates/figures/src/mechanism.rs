//! What is believed to be missing where the model misses a published number.

use crate::CheckedPoint;

/// Table, parameters that all stand in the point's label, and what is believed.
const MISSING: &[(&str, &[&str], &str)] = &[
    (
        "batch32-one-engine",
        &["op=compval", "size=512"],
        "published 512 B (62.7 ns) is slower than 1 KiB (53.8 ns) and than compare of twice the \
         reads (42.7 ns): no mechanism known to us gives that, noise is likely",
    ),
    (
        "batch32-one-engine",
        &["op=compval"],
        "the engine's slots are held by latency; single-source reads seem to hold them longer than \
         the model has it",
    ),
    (
        "misalignment-sync",
        &["op=memmove", "dst_align=32"],
        "two writes of half a line to different lines seem to overlap when the engine is idle; the \
         model lets them queue",
    ),
    (
        "misalignment-sync",
        &["op=memmove", "dst_align=8"],
        "copies of 16 to 64 KiB are slower than the model from the start (see sync-latency): their \
         reads seem to wait for read buffers that writes still hold, which the model leaves out",
    ),
    (
        "sync-latency",
        &["op=memmove"],
        "reads of a large copy seem to wait for read buffers that its writes still hold, which the \
         model leaves out",
    ),
    (
        "pingpong",
        &["placement=llc"],
        "how much of the 4 KiB was in the cache is inferred, not stated by the source",
    ),
];

/// The mechanism that is believed to be missing at a point of a table, or that it is unknown.
pub fn missing_mechanism(table: &str, point: &CheckedPoint) -> &'static str {
    let label: Vec<&str> = point.label.split([',', ' ']).collect();
    MISSING
        .iter()
        .find(|(id, words, _)| *id == table && words.iter().all(|word| label.contains(word)))
        .map_or("unknown", |(.., text)| text)
}
