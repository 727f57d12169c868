//! A process that is tiered from outside: where its pages are, and their moves.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

use super::call::{MovePages, move_to, nodes};
use super::failed;
use super::shared::SharedPages;
use crate::TierError;
use crate::mechanism::{BLOCK, BLOCK_PAGES, Block, Blocks, Outcome, Report};
use crate::nodes::Tiers;
use crate::session::{Process, Value};
use crate::sys::pagemap::{HUGE_PAGE, PRESENT, PageMap, Wanted, ZERO};
use crate::sys::{HUGE, PAGE, errno, maps, thread_cpu_ns};
use crate::tracking::Books;

/// Pages whose nodes are asked for at once.
const ASKED: usize = 1024;

/// What a back end has to move pages with.
#[derive(Debug)]
pub(super) struct Means {
    pub(super) calls: Box<dyn MovePages>,
    pub(super) tiers: Tiers,
    /// Pages that several processes map are counted and moved, too.
    pub(super) shared: bool,
}

/// A process and what is known of its memory.
#[derive(Debug)]
pub(super) struct RemoteProcess {
    pub(super) pid: i32,
    pub(super) slot: u32,
    /// Readable once the process has ended, even if its number is in use again.
    alive: File,
    pub(super) counters: &'static Process,
    pub(super) pagemap: PageMap,
    pub(super) memory: RemoteMemory,
    text: Vec<u8>,
    /// Pages that others map, too, and that stay for that.
    pub(super) left_shared: u64,
}

/// Where a process's memory is, and the books of it.
#[derive(Debug, Default)]
pub(crate) struct RemoteMemory {
    regions: Vec<(u64, u64)>,
    pub(crate) blocks: RefCell<Blocks>,
}

impl Books for RemoteMemory {
    const COUNTS_PAGES: bool = true;

    fn regions(&self) -> Vec<(u64, u64)> {
        self.regions.clone()
    }

    fn change(&self, _: u64, _: u64, change: impl FnOnce(&mut Blocks)) {
        change(&mut self.blocks.borrow_mut());
    }
}

/// The pages of a block.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    present: u64,
    slow: u64,
    huge: bool,
}

impl RemoteProcess {
    /// Holds a process by a descriptor, as long as it lives.
    ///
    /// # Errors
    /// It has ended; no right to look into it.
    pub(super) fn open(
        pid: i32,
        slot: u32,
        counters: &'static Process,
    ) -> Result<RemoteProcess, TierError> {
        let alive = pidfd(pid).map_err(failed(pid))?;
        Ok(RemoteProcess {
            pid,
            slot,
            alive,
            counters,
            pagemap: PageMap::of(pid).map_err(failed(pid))?,
            memory: RemoteMemory::default(),
            text: Vec::new(),
            left_shared: 0,
        })
    }

    pub(super) fn has_ended(&self) -> bool {
        let mut polled = libc::pollfd {
            fd: self.alive.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: there is one.
        unsafe { libc::poll(&raw mut polled, 1, 0) == 1 }
    }

    /// Whether the process has memory. One that ends has none a moment before it has ended.
    pub(super) fn has_memory(&mut self) -> bool {
        let read = maps::read(&format!("/proc/{}/maps", self.pid), &mut self.text);
        read.is_ok() && !self.text.is_empty()
    }

    /// Reads the mappings, and on which node each page is.
    ///
    /// # Errors
    /// The process has ended; no right to look into it.
    pub(super) fn look(
        &mut self,
        means: &Means,
        shared: &mut SharedPages,
    ) -> Result<(), TierError> {
        let before = thread_cpu_ns();
        maps::read(&format!("/proc/{}/maps", self.pid), &mut self.text)
            .map_err(failed(self.pid))?;
        // A program that was executed meanwhile has other memory.
        self.pagemap = PageMap::of(self.pid).map_err(failed(self.pid))?;
        let ranges = maps::migratable(&String::from_utf8_lossy(&self.text));
        let mut pages = Vec::new();
        self.left_shared = 0;
        for (start, end, library) in &ranges {
            let may = means.shared && !library;
            self.pages_of(*start, *end, may, shared, &mut pages)?;
        }
        let seen = seen(means, self.pid, &pages)?;
        self.enter(&seen);
        self.memory.regions = join(ranges, &seen);
        let cost = thread_cpu_ns() - before;
        self.counters.add(Value::AgentCpuNs, cost);
        Ok(())
    }

    /// Pages of a range that may move, each with whether it is huge.
    fn pages_of(
        &mut self,
        start: u64,
        end: u64,
        may_be_shared: bool,
        shared: &mut SharedPages,
        pages: &mut Vec<(u64, bool)>,
    ) -> Result<(), TierError> {
        let wanted = Wanted {
            all: PRESENT,
            none: ZERO,
            report: HUGE_PAGE,
            protect: false,
        };
        let mut runs = Vec::new();
        let scanned = self.pagemap.scan(start, end, wanted, |run| runs.push(run));
        // A mapping that is gone meanwhile has no pages.
        if scanned == Err(libc::ENOTTY) {
            return Err(TierError::OldKernel {
                feature: "PAGEMAP_SCAN (Linux 6.7)",
            });
        }
        let (slot, mut left) = (self.slot, 0);
        for run in runs {
            let huge = run.categories & HUGE_PAGE != 0;
            let read = self.pagemap.entries(run.start, run.end, |page, entry| {
                if huge && !page.is_multiple_of(HUGE) {
                    return;
                }
                let ours = entry.exclusive()
                    || may_be_shared && entry.frame().is_some_and(|f| shared.claim(f, slot));
                match ours {
                    true => pages.push((page, huge)),
                    false => left += 1,
                }
            });
            read.map_err(failed(self.pid))?;
        }
        self.left_shared += left;
        Ok(())
    }

    fn enter(&mut self, seen: &BTreeMap<u64, Seen>) {
        let mut books = self.memory.blocks.borrow_mut();
        let known: Vec<u64> = books.map.keys().copied().collect();
        for number in known.into_iter().filter(|n| !seen.contains_key(n)) {
            books.forget(number * BLOCK, (number + 1) * BLOCK);
        }
        for (number, seen) in seen {
            books.change(*number, |block| {
                (block.present, block.slow, block.huge) = (seen.present, seen.slow, seen.huge);
            });
        }
    }

    /// Pages in each tier.
    pub(super) fn used(&self) -> [u64; 2] {
        let books = self.memory.blocks.borrow();
        books.map.values().fold([0; 2], |[fast, slow], block| {
            let bits = |bits: u64| u64::from(bits.count_ones());
            [
                fast + bits(block.present & !block.slow),
                slow + bits(block.present & block.slow),
            ]
        })
    }

    /// Halves all access counts.
    pub(super) fn cool(&self) {
        for block in self.memory.blocks.borrow_mut().map.values_mut() {
            block.heat /= 2;
        }
    }

    /// Moves a block, or the blocks of its huge page, to a tier.
    ///
    /// # Errors
    /// As [`move_to`].
    pub(super) fn move_unit(
        &self,
        means: &Means,
        number: u64,
        to: usize,
        report: &mut Report,
    ) -> Result<(), TierError> {
        let mut books = self.memory.blocks.borrow_mut();
        let Some(block) = books.map.get(&number).copied() else {
            return Ok(());
        };
        let here = match to {
            1 => block.present & !block.slow,
            _ => block.present & block.slow,
        };
        let (mut pages, weight): (Vec<u64>, u64) = match block.huge {
            true => (vec![number * BLOCK], HUGE / PAGE),
            false => {
                let bits = (0..BLOCK_PAGES).filter(|bit| here >> bit & 1 == 1);
                (bits.map(|bit| number * BLOCK + bit * PAGE).collect(), 1)
            }
        };
        pages.truncate(if here == 0 { 0 } else { pages.len() });
        let Some(first) = pages.first() else {
            return Ok(());
        };
        report.pages += pages.len() as u64 * weight;
        let mut moved = 0u64;
        for node in targets(means, self.pid, *first, to)? {
            let outcomes = move_to(&*means.calls, self.pid, &pages, node, means.shared)?;
            let mut left = Vec::new();
            for (page, outcome) in pages.iter().zip(outcomes) {
                match outcome {
                    // The next node may have room.
                    Outcome::NoFrame => left.push(*page),
                    Outcome::Moved => moved |= 1 << (page % BLOCK / PAGE),
                    _ => {}
                }
                if outcome != Outcome::NoFrame {
                    report.outcomes.add(outcome, weight);
                }
            }
            pages = left;
            if pages.is_empty() {
                break;
            }
        }
        let none = match block.huge {
            true => Outcome::NoHugeFrame,
            false => Outcome::NoFrame,
        };
        report.outcomes.add(none, pages.len() as u64 * weight);
        if block.huge && moved != 0 {
            for number in number..number + HUGE / BLOCK {
                books.change(number, |block| {
                    block.slow = if to == 1 { block.present } else { 0 }
                });
            }
        } else {
            books.change(number, |block| match to {
                1 => block.slow |= moved,
                _ => block.slow &= !moved,
            });
        }
        Ok(())
    }

    /// The interval in which a unit moved; whether it came back soon.
    pub(super) fn enter_move(&self, number: u64, demoted: bool, interval: u32, soon: u32) -> bool {
        let mut books = self.memory.blocks.borrow_mut();
        let block = books.map.get_mut(&number);
        block.is_some_and(|block: &mut Block| block.enter_move(demoted, interval, soon))
    }
}

/// Nodes of a tier for a page, the nearest first.
fn targets(means: &Means, pid: i32, page: u64, to: usize) -> Result<Vec<u32>, TierError> {
    let tiers = &means.tiers;
    let from = match tiers.nodes[1 - to][..] {
        [only] => only,
        _ => match nodes(&*means.calls, pid, &[page])?[0] {
            node if node >= 0 && tiers.tier_of(node as u32) == Some(1 - to) => node as u32,
            // It has moved, or is gone: so the kernel will say.
            _ => tiers.nodes[1 - to][0],
        },
    };
    Ok(tiers.others(from).to_vec())
}

/// Blocks of pages, by the nodes that the kernel names. Pages on nodes of neither tier are not among them.
fn seen(means: &Means, pid: i32, pages: &[(u64, bool)]) -> Result<BTreeMap<u64, Seen>, TierError> {
    let mut blocks: BTreeMap<u64, Seen> = BTreeMap::new();
    for call in pages.chunks(ASKED) {
        let addresses: Vec<u64> = call.iter().map(|(page, _)| *page).collect();
        let nodes = nodes(&*means.calls, pid, &addresses)?;
        for ((page, huge), node) in call.iter().zip(nodes) {
            let tier = u32::try_from(node)
                .ok()
                .and_then(|n| means.tiers.tier_of(n));
            let Some(tier) = tier else { continue };
            let (count, bits) = match huge {
                true => (HUGE / BLOCK, u64::MAX),
                false => (1, 1u64 << (page % BLOCK / PAGE)),
            };
            for number in page / BLOCK..page / BLOCK + count {
                let seen = blocks.entry(number).or_default();
                seen.present |= bits;
                seen.huge |= huge;
                if tier == 1 {
                    seen.slow |= bits;
                }
            }
        }
    }
    Ok(blocks)
}

/// Ranges in which there are pages to move, without those between.
fn join(ranges: Vec<(u64, u64, bool)>, seen: &BTreeMap<u64, Seen>) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end, _) in ranges {
        if seen
            .range(start / BLOCK..end.div_ceil(BLOCK))
            .next()
            .is_none()
        {
            continue;
        }
        match joined.last_mut() {
            Some((_, until)) if *until == start => *until = end,
            _ => joined.push((start, end)),
        }
    }
    joined
}

fn pidfd(pid: i32) -> std::io::Result<File> {
    // SAFETY: it takes a number and flags.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(std::io::Error::from_raw_os_error(errno()));
    }
    // SAFETY: the kernel has just given it to us.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}
