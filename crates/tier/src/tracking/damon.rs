//! Reads and writes by DAMON: the kernel's thread looks at accessed bits of page tables, and the program
//! waits for nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Books, Tracked, Tracker, Tracking, access, enter_present, stretches};
use crate::mechanism::{BLOCK, Engine};
use crate::sys::damon::{Attributes, Damon, DamonError, Region};
use crate::sys::pagemap::PageMap;

/// How often new mappings and what it costs are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Time between two looks of the kernel at a region: it is doubled while that costs too much.
const SAMPLE: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(160)];
/// Regions for each percent of a core: 1000 cost some 0.7 % with 5 ms between looks.
const REGIONS: u64 = 1000;
const MOST_REGIONS: u64 = 10_000;

/// Monitors managed memory with DAMON.
#[derive(Debug)]
pub struct DamonTracker {
    damon: Damon,
    pagemap: PageMap,
    /// What is monitored; empty before the first time.
    ranges: Vec<(u64, u64)>,
    attributes: Attributes,
    /// Time that may still be used; negative when more was.
    credit: i64,
    last: Instant,
    looked: Instant,
    read: Instant,
    /// Core time of the kernel's thread when it was last looked at.
    kernel: Duration,
}

impl DamonTracker {
    /// Takes DAMON for a process.
    ///
    /// # Errors
    /// `/proc` is not there; inside, why DAMON cannot be had.
    pub fn take(directory: &Path, pid: i32) -> std::io::Result<Result<DamonTracker, DamonError>> {
        let pagemap = PageMap::of(pid)?;
        let taken = Damon::take(directory, pid.unsigned_abs());
        Ok(taken.map(|damon| DamonTracker::with(damon, pagemap)))
    }

    /// With a monitor of a process, whose page map it is.
    pub(crate) fn with(damon: Damon, pagemap: PageMap) -> DamonTracker {
        let now = Instant::now();
        DamonTracker {
            damon,
            pagemap,
            ranges: Vec::new(),
            attributes: Attributes {
                sample: SAMPLE[0],
                regions: (0, 0),
            },
            credit: 0,
            last: now,
            looked: now,
            read: now,
            kernel: Duration::ZERO,
        }
    }

    /// Has DAMON monitor what is managed now, as exactly as `overhead` allows.
    fn adjust(&mut self, books: &impl Books, overhead: u64, share: u32) -> Result<(), DamonError> {
        let elapsed = self.looked.elapsed();
        if !self.ranges.is_empty() && elapsed < LOOK {
            return Ok(());
        }
        let ranges = books.regions();
        if ranges.is_empty() {
            return Ok(());
        }
        self.looked = Instant::now();
        let mut wanted = self.attributes;
        if !self.ranges.is_empty()
            && let Some(cpu) = self.damon.cpu()
        {
            let used = cpu.saturating_sub(self.kernel);
            self.kernel = cpu;
            wanted.sample = sample(self.attributes.sample, used, elapsed / share, overhead);
        }
        // More regions than blocks add nothing.
        let blocks: u64 = ranges
            .iter()
            .map(|(start, end)| (end - start).div_ceil(BLOCK))
            .sum();
        let most = (REGIONS * overhead / u64::from(share))
            .clamp(20, MOST_REGIONS)
            .min(2 * blocks);
        let most = most.max(2 * ranges.len() as u64).max(20);
        wanted.regions = (most / 4, most);
        if ranges != self.ranges || wanted != self.attributes {
            self.damon.monitor(&ranges, wanted)?;
            self.ranges = ranges;
            self.attributes = wanted;
        }
        Ok(())
    }

    /// One interval, with `overhead` percent of a core, which this one of `share` trackers has its part of.
    ///
    /// # Errors
    /// It cannot track any more.
    pub(crate) fn step_on(
        &mut self,
        books: &impl Books,
        overhead: u64,
        share: u32,
    ) -> Result<Tracked, DamonError> {
        let mut tracked = Tracked::default();
        if overhead == 0 {
            return Ok(tracked);
        }
        let start = Instant::now();
        let gained = (start - self.last).as_nanos() as i64 * overhead as i64 / 100;
        let gained = gained / i64::from(share);
        self.last = start;
        self.credit = (self.credit + gained).min(overhead as i64 * 10_000_000);
        self.adjust(books, overhead, share)?;
        let aggregation = self.attributes.sample * crate::sys::damon::SAMPLES;
        let due = !self.ranges.is_empty() && self.read.elapsed() >= aggregation;
        if due && self.credit > 0 {
            // The call waits for the end of an aggregation: core time alone counts.
            let before = crate::sys::thread_cpu_ns();
            let regions = self.damon.regions()?;
            self.read = Instant::now();
            self.enter(books, &regions);
            tracked.scanned = true;
            let cost = crate::sys::thread_cpu_ns().saturating_sub(before);
            tracked.cost = Duration::from_nanos(cost);
            self.credit -= cost as i64;
        }
        Ok(tracked)
    }

    fn enter(&mut self, books: &impl Books, regions: &[Region]) {
        let pagemap = &mut self.pagemap;
        stretches(books, |start, end| {
            let first = regions.partition_point(|region| region.end <= start);
            let within = regions[first..]
                .iter()
                .take_while(|region| region.start < end);
            enter_present(pagemap, books, start, end, true, |blocks| {
                for region in within.filter(|region| region.accesses > 0) {
                    let (from, to) = (region.start.max(start), region.end.min(end));
                    blocks.change_known(from, to, |block, _| access(block, region.accesses));
                }
            });
        });
    }
}

/// The time between looks that costs about `overhead` percent of a core, after `used` of it in `elapsed`.
fn sample(now: Duration, used: Duration, elapsed: Duration, overhead: u64) -> Duration {
    let allowed = elapsed.as_nanos() as u64 * overhead / 100;
    let used = used.as_nanos() as u64;
    let wanted = match used {
        _ if used > allowed => now * 2,
        _ if used < allowed / 4 => now / 2,
        _ => now,
    };
    wanted.clamp(SAMPLE[0], SAMPLE[1])
}

impl Tracker for DamonTracker {
    fn tracking(&self) -> Tracking {
        Tracking::Damon
    }

    fn step(&mut self, engine: &Engine, overhead: u64) -> Result<Tracked, DamonError> {
        self.step_on(engine, overhead, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sampling_interval_follows_the_overhead_knob() {
        let ms = Duration::from_millis;
        let second = Duration::from_secs(1);
        assert_eq!(sample(ms(5), ms(20), second, 1), ms(10));
        assert_eq!(sample(ms(10), ms(8), second, 1), ms(10));
        assert_eq!(sample(ms(10), ms(1), second, 1), ms(5));
        assert_eq!(sample(ms(5), ms(1), second, 1), ms(5));
        assert_eq!(sample(ms(160), second, second, 1), ms(160));
    }
}
