//! Replays in the simulator, with a word on how long they take.

use std::time::{Duration, Instant};

use dray_bench::Gauge;
use dray_fabric::{Ends, FabricError, Replays};

use crate::progress;

/// After so long it is said how long the rest takes, if that is long.
const SAID_AFTER: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(10);

/// Runs them. Large ones are announced on stderr, with a bar from the third second on.
pub(super) fn run(replays: &Replays<'_>, jobs: usize) -> Result<Vec<Ends>, FabricError> {
    let all = replays.hops();
    if replays.are_large() {
        let count = dray_output::counted(replays.distinct(), "simulation");
        eprintln!(
            "note: {count} to run, of {:.0} million packets over an edge in all",
            all as f64 * 1e-6
        );
    }
    let gauge = Gauge::default();
    gauge.start(all);
    let mut watch = Watch {
        gauge: &gauge,
        shown: 0,
        begun: Instant::now(),
        all,
        said: false,
    };
    progress::watch(&gauge, "simulating", || {
        replays.run(jobs, &mut |done| watch.look(done))
    })
}

/// How far they are.
struct Watch<'g> {
    gauge: &'g Gauge,
    shown: u64,
    begun: Instant,
    all: u64,
    said: bool,
}

impl Watch<'_> {
    fn look(&mut self, done: u64) {
        self.gauge.add(done - self.shown);
        self.shown = done;
        let time = self.begun.elapsed();
        if self.said || time < SAID_AFTER || done == 0 {
            return;
        }
        self.said = true;
        let left = time.as_secs_f64() * (self.all - done) as f64 / done as f64;
        if left > LONG.as_secs_f64() {
            let left = Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX);
            eprintln!(
                "note: the simulator needs about {}",
                dray_output::rough(left)
            );
        }
    }
}
