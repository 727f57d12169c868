//! Core time of a page without its copy, by batch, beside HeMem's way, in one run: medians and
//! quartiles. `cargo bench -p dray-tier`; what `dray tier bench mechanism` prints.

use dray_tier::bench::{compaction, costs, frames, hemem};
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
        println!("{cost}");
    }
    println!(
        "The kernel's part of it where frames are released: new ones alone, by madvise, without userfaultfd"
    );
    for new in frames(&[128, 512], ROUNDS)? {
        println!(
            "frames alone        {:>4} x {}  {:>7} ns a page ({} to {}) to make, of it zeroing at least {}; {} to drop",
            new.pages,
            if new.huge { "2M" } else { "4K" },
            new.make_ns.median,
            new.make_ns.lower,
            new.make_ns.upper,
            new.zero_ns.median,
            new.drop_ns.median
        );
    }
    if let Some(compaction) = compaction(256 << 20, 9)? {
        println!("{compaction}");
    }
    Ok(())
}
