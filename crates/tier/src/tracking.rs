//! Which blocks are accessed: writes by `PAGEMAP_SCAN`, reads by hints.
//!
//! Both cost the program time: a write to a page that a scan has protected some 1.1 us, a touched
//! hint some 16 us. So both are as frequent as the overhead knob allows.

use std::time::{Duration, Instant};

use crate::mechanism::{BLOCK, BLOCK_PAGES, Engine, Order, block_of};
use crate::sys::pagemap::{FILE, HUGE_PAGE, PRESENT, PageMap, Run, WRITTEN, Wanted, ZERO};
use crate::sys::{HUGE, PAGE};

/// Time that the first write to a page takes after a scan.
const WRITE: Duration = Duration::from_nanos(1100);
/// Time to take a hint out and put it back, and what it costs whoever touches it.
const HINT: Duration = Duration::from_nanos(3200);
const TOUCH: Duration = Duration::from_micros(16);
/// Memory that is entered into the books under one lock.
const STRETCH: u64 = 64 * BLOCK;
/// A block whose hint nobody touched counts as idle for so many intervals.
const UNTOUCHED: u16 = 8;

/// What tracking did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tracked {
    /// Whether memory was scanned.
    pub scanned: bool,
    /// Hints that were put out, and that were touched since the last time.
    pub armed: u64,
    /// As above.
    pub touched: u64,
    /// What this thread used, and what it estimates the program did.
    pub cost: Duration,
}

/// Finds out which blocks are accessed.
#[derive(Debug)]
pub struct Tracker {
    pagemap: PageMap,
    /// Time that may still be used; negative when more was.
    credit: i64,
    last: Instant,
    cursor: [u64; 2],
    interval: u32,
}

impl Tracker {
    /// With this process's page map.
    ///
    /// # Errors
    /// `/proc` is not there.
    pub fn new() -> std::io::Result<Tracker> {
        Ok(Tracker {
            pagemap: PageMap::own()?,
            credit: 0,
            last: Instant::now(),
            cursor: [0; 2],
            interval: 0,
        })
    }

    /// What it uses, for messages.
    pub fn name(order: Order) -> &'static str {
        match order {
            Order::Strict => "writes by PAGEMAP_SCAN, reads by hint faults",
            Order::SharedRead => "reads and writes by hint faults",
        }
    }

    /// One interval: takes in what was touched, scans if it may, and puts out new hints. With
    /// `overhead` percent of a core.
    pub fn step(&mut self, engine: &Engine, overhead: u64) -> Tracked {
        let start = Instant::now();
        let gained = (start - self.last).as_nanos() as i64 * overhead as i64 / 100;
        self.last = start;
        self.interval += 1;
        // What is not used is not saved for more than a second's worth.
        let most = (overhead as i64 * 10_000_000).max(1);
        self.credit = (self.credit + gained).min(most);
        let mut tracked = Tracked::default();
        let (touched, untouched) = engine.collect_hints();
        tracked.touched = touched.len() as u64;
        mark(engine, &touched, &untouched);
        let mut program = TOUCH * touched.len() as u32;
        if self.credit > 0 {
            tracked.scanned = true;
            program += WRITE * self.scan(engine) as u32;
        }
        let left = self.credit - program.as_nanos() as i64 - start.elapsed().as_nanos() as i64;
        if left > 0 {
            let each = (HINT + TOUCH).as_nanos() as i64;
            let hints = self.choose(engine, (left / each).clamp(0, 1024) as usize);
            tracked.armed = engine.arm_hints(&hints);
        }
        tracked.cost = start.elapsed() + program;
        self.credit -= tracked.cost.as_nanos() as i64;
        tracked
    }

    /// Pages that were written since the last scan.
    fn scan(&mut self, engine: &Engine) -> u64 {
        let mut written_pages = 0;
        for (start, end) in engine.regions() {
            let mut at = start;
            while at < end {
                let until = ((at / STRETCH + 1) * STRETCH).min(end);
                written_pages += self.scan_stretch(engine, at, until);
                at = until;
            }
        }
        written_pages
    }

    fn scan_stretch(&mut self, engine: &Engine, start: u64, end: u64) -> u64 {
        let mut present: Vec<Run> = Vec::new();
        let mut written: Vec<Run> = Vec::new();
        let wanted = Wanted {
            all: PRESENT,
            none: FILE | ZERO,
            tell: HUGE_PAGE,
            protect: false,
        };
        // What has been unmapped meanwhile is not there next time.
        let _ = self
            .pagemap
            .scan(start, end, wanted, |run| present.push(run));
        let tracks_writes = engine.config().order == Order::Strict;
        if tracks_writes {
            let wanted = Wanted {
                all: PRESENT | WRITTEN,
                none: FILE | ZERO | HUGE_PAGE,
                tell: WRITTEN,
                protect: true,
            };
            let _ = self
                .pagemap
                .scan(start, end, wanted, |run| written.push(run));
        }
        engine.with_blocks(start, end, |blocks| {
            blocks.change_known(start, end, |block, pages| {
                block.present &= !pages;
                block.huge = false;
                if tracks_writes || block.idle > 0 {
                    block.idle = block.idle.saturating_add(1);
                } else {
                    block.idle = 1;
                }
                block.touched <<= 1;
            });
            for run in &present {
                blocks.change_range(run.start, run.end, |block, pages| {
                    block.present |= pages;
                    block.huge |= run.categories & HUGE_PAGE != 0;
                });
            }
            let mut count = 0;
            for run in &written {
                blocks.change_range(run.start, run.end, |block, pages| {
                    // Migration has written those, and nobody else perhaps.
                    let by_program = pages & !block.fresh;
                    block.fresh &= !pages;
                    if by_program != 0 {
                        access(block, by_program.count_ones());
                    }
                    // The first write after a scan has cost the program time.
                    count += u64::from((by_program & block.protected).count_ones());
                    block.protected |= pages;
                });
            }
            count
        })
    }

    /// Pages to take out: one of each block in turn, of the slow tier and of those of the fast tier
    /// that nobody has written to for a while.
    fn choose(&mut self, engine: &Engine, count: usize) -> Vec<u64> {
        let mut chosen = Vec::with_capacity(count);
        for tier in [1, 0] {
            let want = match tier {
                1 => count / 2,
                _ => count - chosen.len(),
            };
            if want == 0 {
                continue;
            }
            let cursor = self.cursor[tier];
            let (mut last, mut found) = (0, 0);
            engine.each_block(cursor, |number, block| {
                let pages = match tier {
                    1 => block.present & block.slow,
                    _ if block.idle > 1 => block.present & !block.slow,
                    _ => 0,
                };
                if pages != 0 && !block.huge {
                    chosen.push(number * BLOCK + self.pick(pages) * PAGE);
                    found += 1;
                }
                last = number;
                found < want
            });
            self.cursor[tier] = match found < want {
                true => 0,
                false => last + 1,
            };
        }
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }

    /// One of the pages of a block, another one each interval.
    fn pick(&self, pages: u64) -> u64 {
        let from = self.interval.wrapping_mul(0x9e37_79b9) >> 26;
        let turned = pages.rotate_right(from);
        (u64::from(turned.trailing_zeros()) + u64::from(from)) % BLOCK_PAGES
    }
}

fn access(block: &mut crate::mechanism::Block, weight: u32) {
    block.touched |= 1;
    block.idle = 0;
    block.heat = block.heat.saturating_add(weight);
}

fn mark(engine: &Engine, touched: &[u64], untouched: &[u64]) {
    for page in touched {
        engine.with_blocks(*page, page + PAGE, |blocks| {
            blocks.change(block_of(*page), |block| {
                // A page of 64 was looked at.
                access(block, 8);
            });
        });
    }
    for page in untouched {
        engine.with_blocks(*page, page + PAGE, |blocks| {
            blocks.change(block_of(*page), |block| {
                block.idle = block.idle.saturating_add(UNTOUCHED);
            });
        });
    }
}

/// The range that moves as a whole with a block: its huge page, or itself.
pub(crate) fn unit(number: u64, huge: bool) -> (u64, u64) {
    let start = number * BLOCK;
    match huge {
        true => (start / HUGE * HUGE, HUGE),
        false => (start, BLOCK),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copier::Cores;
    use crate::mechanism::Config;
    use crate::sys::memory;

    #[test]
    fn no_more_hints_are_chosen_than_may_be() {
        const BLOCKS: u64 = 16;
        let engine = Engine::new(Config::default(), Box::new(Cores::new(1))).expect("Linux 6.8");
        let start = memory::reserve(BLOCKS * BLOCK, BLOCK).expect("memory");
        let end = start + BLOCKS * BLOCK;
        engine
            .register(start, end)
            .expect("memory that can be registered");
        engine.with_blocks(start, end, |blocks| {
            for number in 0..BLOCKS {
                blocks.change(block_of(start) + number, |block| {
                    block.present = u64::MAX;
                    block.idle = 2;
                    block.slow = if number % 2 == 0 { u64::MAX } else { 0 };
                });
            }
        });
        let mut tracker = Tracker::new().expect("/proc");
        let mut total = 0;
        for count in (0..=2 * BLOCKS as usize).chain([0, 1, 1]) {
            let chosen = tracker.choose(&engine, count);
            assert!(chosen.len() <= count, "{count}: {chosen:x?}");
            total += chosen.len();
        }
        assert!(total > 0);
        engine.stop();
        // SAFETY: this test's, and nothing uses it any more.
        unsafe { memory::unmap(start, end - start) };
    }
}
