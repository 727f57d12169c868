//! Core time of a page without its copy, by batch, beside HeMem's way, in one run: medians and
//! quartiles. `cargo bench -p dray-tier`; what `dray tier bench mechanism` prints.

use dray_tier::bench::{costs, hemem};
use dray_tier::mechanism::measure_knee;

fn main() -> Result<(), dray_tier::TierError> {
    const BATCHES: [u64; 7] = [1, 8, 32, 34, 64, 128, 512];
    const ROUNDS: usize = 60;
    let knee = measure_knee()?;
    println!(
        "knee: {} pages; move out and in, ns a page: {:?}",
        knee.pages, knee.costs
    );
    let mut all = costs(&BATCHES, ROUNDS)?;
    all.extend(hemem(&BATCHES, ROUNDS)?);
    for cost in all {
        println!(
            "{:11} reuse {:5} {:>4} x {}  {:>7} ns a page ({} to {}), {} batches",
            cost.way,
            cost.reuse,
            cost.pages,
            if cost.huge { "2M" } else { "4K" },
            cost.core_ns.median,
            cost.core_ns.lower,
            cost.core_ns.upper,
            cost.batches
        );
    }
    Ok(())
}
