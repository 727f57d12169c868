//! `dray tier bench policies`.

use std::fmt::{self, Write};
use std::thread;

use dray_tier::bench::{Followed, SECONDS, TRACES, Trace, WAYS, followed, followed_by_kernel};
use dray_tier::policy::{POLICIES, needs_accesses};

/// Every policy that decides by accesses on every trace, with each way of tracking, and the kernel's own tiering.
pub(super) fn followed_all(seed: u64) -> Vec<Followed> {
    let of = |trace: Trace| {
        let policies = (0..POLICIES.len()).filter(|index| needs_accesses(*index));
        let mut all: Vec<Followed> = policies
            .flat_map(|policy| WAYS.map(|way| followed(trace, way, policy, SECONDS, seed)))
            .collect();
        all.push(followed_by_kernel(trace, SECONDS, seed));
        all
    };
    thread::scope(|scope| {
        let runs = TRACES.map(|trace| scope.spawn(move || of(trace)));
        let joined = runs.map(|run| run.join().expect("it does not panic"));
        joined.into_iter().flatten().collect()
    })
}

pub(super) fn print(text: &mut String, all: &[Followed]) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "policies in virtual time: 256 MiB, fast tier of 32 MiB, {SECONDS} s; accesses to the fast tier, an oracle's, time\n\
         to be within 5 points of it, moves that took a page back within 8 s, moved, overhead of a core"
    )?;
    writeln!(
        text,
        "  trace  policy tracking    fast   oracle    time    back      moved overhead"
    )?;
    for ran in all {
        let time = ran
            .follow_s
            .map_or_else(|| "-".to_owned(), |time| format!("{time:.1} s"));
        writeln!(
            text,
            "  {:6} {:6} {:8} {:5.1} %  {:5.1} % {time:>7} {:5.1} % {:5.1} MB/s   {:4.2} %",
            ran.trace.name(),
            ran.policy,
            ran.way.map_or("its own", |way| way.name()),
            ran.fast_percent,
            ran.oracle_percent,
            ran.back_percent,
            ran.moved_mb_s,
            ran.overhead_percent
        )?;
    }
    Ok(())
}
