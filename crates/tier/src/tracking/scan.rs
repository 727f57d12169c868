//! Writes by `PAGEMAP_SCAN`, and reads by hints if they are asked for: what every machine has.
//!
//! Both cost the program time: a write to a page that a scan has protected some 1.1 us, a touched
//! hint some 16 us. So both are as frequent as the overhead knob allows, and each has half of it.
//!
//! What a block's history counts is rounds: in one, each block of the slow tier has had a hint, and so have those of the
//! fast tier without writes. With little overhead or much memory a round takes many intervals; were it intervals that
//! are counted, nothing would ever be touched twice in few of them, and all that is only read would be idle.
//!
//! A hint is out for a whole interval, in which the kernel itself may need the page: see `dray tier --help`. Without
//! hints a round is a scan, and what is only read is idle.

use std::time::{Duration, Instant};

use super::{Tracked, Tracker, Tracking, access, enter_present, stretches, unit};
use crate::mechanism::{BLOCK, BLOCK_PAGES, Block, Engine, HUGE_HINTS, Order, block_of};
use crate::sys::damon::DamonError;
use crate::sys::pagemap::{FILE, HUGE_PAGE, PRESENT, PageMap, Run, WRITTEN, Wanted, ZERO};
use crate::sys::{HUGE, PAGE, thread_cpu_ns};

/// Time that the first write to a page takes after a scan.
const WRITE: Duration = Duration::from_nanos(1100);
/// Time to take a hint out and put it back, and what it costs a thread that touches it.
const HINT: Duration = Duration::from_nanos(3200);
const TOUCH: Duration = Duration::from_micros(16);
/// Where a scan finds a quarter of all pages written, nothing tells hot ones from others: from then on pages are protected
/// for this time alone, until one of 64 is written in it.
const WINDOW: Duration = Duration::from_millis(10);
const MANY: u64 = 4;
const FEW: u64 = 64;
/// A block whose hint was not touched counts as idle for so many rounds.
const UNTOUCHED: u16 = 8;

/// Scans for writes, and takes single pages out for reads.
#[derive(Debug)]
pub struct ScanTracker {
    order: Order,
    hints: bool,
    /// Pages are protected for [`WINDOW`] alone.
    short: bool,
    pagemap: PageMap,
    /// Time that scans and hints may still use; negative when more was.
    credit: [i64; 2],
    /// Whether all blocks of a tier have had their turn in this round, and all huge pages.
    turned: [bool; 3],
    last: Instant,
    cursor: [u64; 2],
    cursor_huge: u64,
    interval: u32,
}

impl ScanTracker {
    /// With this process's page map, for an engine of this order.
    pub fn new(pagemap: PageMap, order: Order, hints: bool) -> ScanTracker {
        ScanTracker {
            order,
            hints,
            short: false,
            pagemap,
            credit: [0; 2],
            turned: [false; 3],
            last: Instant::now(),
            cursor: [0; 2],
            cursor_huge: 0,
            interval: 0,
        }
    }

    /// Scans, and pays for it.
    fn timed_scan(&mut self, engine: &Engine, tracked: &mut Tracked) {
        tracked.scanned = true;
        // Core time: on a busy machine this thread waits for a core, which costs nobody anything.
        let begin = thread_cpu_ns();
        if self.short {
            self.protect(engine);
            std::thread::sleep(WINDOW);
        }
        let counted = self.scan(engine);
        // Hints tell what is read besides, and their rounds are those of the scans.
        let short = !self.hints && counted.are_many(self.short);
        match (self.short, short) {
            (true, true) => {
                stretches(engine, |start, end| engine.release_protection(start, end));
            }
            // The next scan tells what is written from now on.
            (true, false) => self.protect(engine),
            (false, _) => {}
        }
        self.short = short;
        let used = Duration::from_nanos(thread_cpu_ns() - begin);
        tracked.cost = WRITE * counted.first as u32 + used;
        self.credit[0] -= tracked.cost.as_nanos() as i64;
    }

    /// Protects all pages from unseen writes; those before are forgotten.
    fn protect(&mut self, engine: &Engine) {
        stretches(engine, |start, end| {
            let wanted = Wanted {
                all: PRESENT | WRITTEN,
                none: FILE | ZERO | HUGE_PAGE,
                report: WRITTEN,
                protect: true,
            };
            let _ = self.pagemap.scan(start, end, wanted, |_| {});
            engine.with_blocks(start, end, |blocks| {
                blocks.change_known(start, end, |block, pages| {
                    block.protected |= block.present & pages;
                    block.fresh &= !pages;
                });
            });
        });
    }

    /// Pages that were written since the last scan, or in the window.
    fn scan(&mut self, engine: &Engine) -> Counted {
        let round = !self.hints || self.turned == [true; 3];
        if round {
            self.turned = [false; 3];
        }
        let mut counted = Counted::default();
        stretches(engine, |start, end| {
            self.scan_stretch(engine, (start, end), round, &mut counted);
        });
        counted
    }

    fn scan_stretch(
        &mut self,
        engine: &Engine,
        (start, end): (u64, u64),
        round: bool,
        counted: &mut Counted,
    ) {
        let mut written: Vec<Run> = Vec::new();
        let tracks_writes = self.order == Order::Strict;
        if tracks_writes {
            let wanted = Wanted {
                all: PRESENT | WRITTEN,
                none: FILE | ZERO | HUGE_PAGE,
                report: WRITTEN,
                protect: !self.short,
            };
            let _ = self
                .pagemap
                .scan(start, end, wanted, |run| written.push(run));
        }
        enter_present(&mut self.pagemap, engine, start, end, round, |blocks| {
            blocks.change_known(start, end, |block, pages| {
                counted.present += u64::from((block.present & pages).count_ones());
            });
            for run in &written {
                blocks.change_range(run.start, run.end, |block, pages| {
                    // Migration has written those, and perhaps nothing else.
                    let by_program = pages & !block.fresh;
                    block.fresh &= !pages;
                    if by_program != 0 {
                        access(block, by_program.count_ones());
                    }
                    // The first write after a scan has cost the program time.
                    let first = by_program & block.protected;
                    counted.first += u64::from(first.count_ones());
                    counted.written += u64::from(by_program.count_ones());
                    block.protected |= pages;
                });
            }
        });
    }

    /// Pages to take out: one of each block in turn, of the slow tier and of those of the fast tier
    /// without writes for a while.
    fn choose(&mut self, engine: &Engine, count: usize) -> Vec<u64> {
        let mut chosen = Vec::with_capacity(count);
        for tier in [1, 0] {
            let want = match tier {
                1 => (count + self.interval as usize % 2) / 2,
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
                true => {
                    self.turned[tier] = true;
                    0
                }
                false => last + 1,
            };
        }
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }

    /// Huge pages to take out, in turn: of the slow tier, and of those of the fast tier that no thread has
    /// touched for a while.
    fn choose_huge(&mut self, engine: &Engine, count: usize) -> Vec<u64> {
        let mut chosen: Vec<u64> = Vec::with_capacity(count);
        if count == 0 {
            self.turned[2] = true;
            return chosen;
        }
        let mut last = 0;
        engine.each_block(self.cursor_huge, |number, block| {
            let page = number * BLOCK / HUGE * HUGE;
            let wanted = block.huge && (block.slow != 0 || block.idle > 1);
            if wanted && chosen.last() != Some(&page) {
                chosen.push(page);
            }
            last = page / BLOCK + HUGE / BLOCK;
            chosen.len() < count
        });
        self.cursor_huge = match chosen.len() < count {
            true => {
                self.turned[2] = true;
                0
            }
            false => last,
        };
        chosen
    }

    /// One of the pages of a block, another one each interval.
    fn pick(&self, pages: u64) -> u64 {
        let from = self.interval.wrapping_mul(0x9e37_79b9) >> 26;
        let turned = pages.rotate_right(from);
        (u64::from(turned.trailing_zeros()) + u64::from(from)) % BLOCK_PAGES
    }
}

/// Pages that a scan has counted.
#[derive(Debug, Default)]
struct Counted {
    present: u64,
    written: u64,
    /// Those whose write has cost the program time.
    first: u64,
}

impl Counted {
    /// Whether so many are written that a short window is to tell more.
    fn are_many(&self, short: bool) -> bool {
        let part = if short { FEW } else { MANY };
        self.written * part > self.present
    }
}

fn mark(engine: &Engine, touched: &[u64], untouched: &[u64]) {
    // A hint on a huge page counts for all its blocks.
    let change = |page: u64, change: fn(&mut Block)| {
        let number = block_of(page);
        engine.with_blocks(page, page + PAGE, |blocks| {
            let huge = blocks.map.get(&number).is_some_and(|block| block.huge);
            let (start, len) = unit(number, huge);
            for number in block_of(start)..block_of(start + len) {
                blocks.change(number, change);
            }
        });
    };
    for page in touched {
        // A page of 64 was looked at.
        change(*page, |block| access(block, 8));
    }
    for page in untouched {
        change(*page, |block| {
            block.idle = block.idle.saturating_add(UNTOUCHED)
        });
    }
}

impl Tracker for ScanTracker {
    fn tracking(&self) -> Tracking {
        match (self.order, self.hints) {
            (Order::Strict, true) => Tracking::ScanAndHints,
            (Order::SharedRead, true) => Tracking::Hints,
            (Order::Strict, false) => Tracking::Writes,
            (Order::SharedRead, false) => Tracking::Nothing,
        }
    }

    /// Takes in what was touched, scans if it may, and puts out new hints.
    fn step(&mut self, engine: &Engine, overhead: u64) -> Result<Tracked, DamonError> {
        let start = Instant::now();
        let gained = (start - self.last).as_nanos() as i64 * overhead as i64 / 100;
        self.last = start;
        self.interval += 1;
        // Unused credit is kept for at most one second.
        let most = (overhead as i64 * 10_000_000).max(1);
        let share = if self.hints { 2 } else { 1 };
        for credit in &mut self.credit {
            *credit = (*credit + gained / share).min(most);
        }
        let mut tracked = Tracked::default();
        if !self.hints {
            if self.credit[0] > 0 {
                self.timed_scan(engine, &mut tracked);
            }
            return Ok(tracked);
        }
        let (touched, untouched) = engine.collect_hints();
        tracked.touched = touched.len() as u64;
        mark(engine, &touched, &untouched);
        let mut hints_cost = TOUCH * touched.len() as u32 + start.elapsed();
        if self.credit[0] > 0 {
            self.timed_scan(engine, &mut tracked);
        }
        let begin = Instant::now();
        let left = self.credit[1] - hints_cost.as_nanos() as i64;
        if left > 0 {
            let each = (HINT + TOUCH).as_nanos() as i64;
            let count = (left / each).clamp(0, 1024) as usize;
            // A huge page is one hint, whatever is in it.
            let huge = self.choose_huge(engine, (count / 4).min(HUGE_HINTS as usize));
            let hints = self.choose(engine, count - huge.len());
            tracked.armed = engine.arm_huge_hints(&huge) + engine.arm_hints(&hints);
        }
        hints_cost += begin.elapsed();
        self.credit[1] -= hints_cost.as_nanos() as i64;
        tracked.cost += hints_cost;
        Ok(tracked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copier::Cores;
    use crate::mechanism::Config;
    use crate::sys::memory;

    /// Blocks of memory that an engine manages, until the end of a test.
    struct Managed {
        engine: Engine,
        start: u64,
        end: u64,
    }

    impl Managed {
        /// The first byte of each page of `written` is written before the engine has them.
        fn new(blocks: u64, written: u64) -> Managed {
            let engine = Engine::new(Config::default(), Box::new(Cores::new(1)));
            let engine = engine.expect("Linux 6.8");
            let start = memory::reserve(blocks * BLOCK, BLOCK).expect("memory");
            let end = start + blocks * BLOCK;
            for page in 0..written {
                // SAFETY: reserved above, readable and writable.
                unsafe { ((start + page * PAGE) as *mut u8).write_volatile(1) };
            }
            engine
                .register(start, end)
                .expect("memory that can be registered");
            Managed { engine, start, end }
        }

        /// What is known of the blocks.
        fn blocks(&self) -> Vec<Block> {
            let ours = block_of(self.start)..block_of(self.end);
            let all = self.engine.blocks().into_iter();
            all.filter(|(number, _)| ours.contains(number))
                .map(|(_, block)| block)
                .collect()
        }
    }

    impl Drop for Managed {
        fn drop(&mut self) {
            self.engine.stop();
            // SAFETY: this test's, and nothing uses it any more.
            unsafe { memory::unmap(self.start, self.end - self.start) };
        }
    }

    fn tracker(hints: bool) -> ScanTracker {
        ScanTracker::new(PageMap::own().expect("/proc"), Order::Strict, hints)
    }

    /// Without hints no page is out, and a block that is not written grows idle.
    #[test]
    fn without_hints_scans_alone_make_rounds() {
        let memory = Managed::new(2, BLOCK_PAGES);
        let mut tracker = tracker(false);
        assert_eq!(tracker.tracking(), Tracking::Writes);
        for _ in 0..5 {
            tracker.credit = [1_000_000_000; 2];
            let tracked = tracker.step(&memory.engine, 100).expect("a scan");
            assert!(tracked.scanned && tracked.armed == 0);
            assert_eq!(memory.engine.collect_hints(), (vec![], vec![]));
        }
        let blocks = memory.blocks();
        assert_eq!(blocks.len(), 1, "one has pages");
        assert!(blocks[0].idle >= 4, "{:?}", blocks[0]);
    }

    #[test]
    fn the_number_of_hints_is_limited() {
        const BLOCKS: u64 = 16;
        let memory = Managed::new(BLOCKS, 0);
        let Managed { engine, start, end } = &memory;
        engine.with_blocks(*start, *end, |blocks| {
            for number in 0..BLOCKS {
                blocks.change(block_of(*start) + number, |block| {
                    block.present = u64::MAX;
                    block.idle = 2;
                    block.slow = if number % 2 == 0 { u64::MAX } else { 0 };
                });
            }
        });
        let mut tracker = tracker(true);
        let mut total = 0;
        for count in (0..=2 * BLOCKS as usize).chain([0, 1, 1]) {
            let chosen = tracker.choose(engine, count);
            assert!(chosen.len() <= count, "{count}: {chosen:x?}");
            total += chosen.len();
        }
        assert!(total > 0);
    }

    /// A page that was out as a hint and has come back is no page that the program has written.
    #[test]
    fn untouched_blocks_grow_idle_after_any_number_of_hints() {
        const BLOCKS: u64 = 8;
        let memory = Managed::new(BLOCKS, BLOCKS * BLOCK_PAGES);
        let Managed { engine, start, end } = &memory;
        engine.with_blocks(*start, *end, |blocks| {
            blocks.change_range(*start, *end, |block, _| block.slow = u64::MAX);
        });
        let mut tracker = tracker(true);
        let mut armed = 0;
        for _ in 0..8 {
            tracker.credit = [1_000_000_000; 2];
            armed += tracker.step(engine, 100).expect("a scan").armed;
        }
        assert!(armed >= 4 * BLOCKS, "{armed}");
        let blocks = memory.blocks();
        assert_eq!(blocks.len() as u64, BLOCKS);
        for block in blocks {
            // The first scan sees the writes from before.
            assert_eq!(block.touched & 0b11_1111, 0, "{block:?}");
            assert!(block.idle >= 6, "{block:?}");
        }
    }

    /// A block that had no hint may be read all the time: it does not grow idle, and no touch of it is forgotten.
    #[test]
    fn blocks_without_hints_do_not_grow_idle() {
        let memory = Managed::new(1, 1);
        let mut tracker = tracker(true);
        for _ in 0..5 {
            tracker.credit = [1_000_000_000, i64::MIN / 2];
            let tracked = tracker.step(&memory.engine, 100).expect("a scan");
            assert!(tracked.scanned && tracked.armed == 0);
        }
        let blocks = memory.blocks();
        assert_eq!(blocks.len(), 1);
        assert_eq!((blocks[0].touched, blocks[0].idle), (1, 0), "{blocks:?}");
    }
}
