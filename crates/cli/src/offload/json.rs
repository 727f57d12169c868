//! The histogram as JSON.

use dray_offload::calls::Call;
use dray_offload::settings::Mover;
use dray_offload::stats::Snapshot;

pub(super) fn histogram(snapshot: &Snapshot, mover: Mover) -> serde_json::Value {
    let rows = snapshot.rows.iter().map(|row| {
        let count = row.count;
        serde_json::json!({
            "call": row.call.name(),
            "from_bytes": row.from_bytes,
            "below_bytes": row.from_bytes * 2,
            "executor": row.executor.name(),
            "calls": count.calls,
            "bytes": count.bytes,
            "mean_ns": (count.calls > 0).then(|| count.ns as f64 / count.calls as f64),
        })
    });
    let small = Call::ALL.iter().zip(snapshot.small).map(|(call, count)| {
        let count = serde_json::json!({ "calls": count.calls, "bytes": count.bytes });
        (call.name().to_owned(), count)
    });
    let reasons = snapshot.reasons.iter().filter(|(_, count)| count.calls > 0);
    let reasons = reasons.map(|(reason, count)| {
        serde_json::json!({
            "reason": reason.name(), "times": count.calls, "bytes": count.bytes,
        })
    });
    let executors = snapshot.executors.iter().map(|executor| executor.name());
    serde_json::json!({
        "mover": mover.name(),
        "programs": snapshot.processes,
        "executors": executors.collect::<Vec<_>>(),
        "min_bytes": snapshot.min_bytes,
        "core_percent": snapshot.core_percent,
        "eligible_bytes": snapshot.eligible_bytes(),
        "offloaded_bytes": snapshot.offloaded_bytes(),
        "histogram": rows.collect::<Vec<_>>(),
        "below_threshold": small.collect::<serde_json::Map<_, _>>(),
        "on_the_core": reasons.collect::<Vec<_>>(),
        "page_faults": snapshot.faults,
        "resumed_after_page_fault": snapshot.resumed,
    })
}
