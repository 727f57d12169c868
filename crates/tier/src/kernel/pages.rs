//! The back end that is the kernel: another process's pages, which move_pages(2) moves between nodes.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{CALL, failed, move_pages};
use crate::TierError;
use crate::back_end::BackEnd;
use crate::mechanism::{BLOCK, BLOCK_PAGES, Block, Blocks, Outcome, Report};
use crate::policy::{Room, units};
use crate::session::{Process, Reason, Session, Value};
use crate::sys::pagemap::{FILE, PRESENT, PageMap, Wanted, ZERO};
use crate::sys::{HUGE, PAGE, maps};
use crate::tracking::Books;

/// A process's anonymous memory on two nodes.
#[derive(Debug)]
pub struct KernelBackEnd {
    pid: i32,
    nodes: [u32; 2],
    session: Session,
    process: Option<&'static Process>,
    pagemap: PageMap,
    memory: RemoteMemory,
    text: Vec<u8>,
}

/// Where it is, and the books of it.
#[derive(Debug, Default)]
pub(crate) struct RemoteMemory {
    regions: Vec<(u64, u64)>,
    pub(crate) blocks: RefCell<Blocks>,
}

impl Books for RemoteMemory {
    fn regions(&self) -> Vec<(u64, u64)> {
        self.regions.clone()
    }

    fn change(&self, _: u64, _: u64, change: impl FnOnce(&mut Blocks)) {
        change(&mut self.blocks.borrow_mut());
    }
}

impl KernelBackEnd {
    /// Over a process, between the fast node and the slow one. What it does is recorded in the session, and
    /// counted for the process.
    ///
    /// # Errors
    /// No such process, or no right to look into it.
    pub fn new(
        pid: i32,
        nodes: [u32; 2],
        session: Session,
        process: Option<&'static Process>,
    ) -> Result<KernelBackEnd, TierError> {
        Ok(KernelBackEnd {
            pid,
            nodes,
            session,
            process,
            pagemap: PageMap::of(pid).map_err(failed(pid))?,
            memory: RemoteMemory::default(),
            text: Vec::new(),
        })
    }

    /// Reads the mappings, and on which node each page is.
    ///
    /// # Errors
    /// The process has ended; no right to look into it.
    pub fn look(&mut self) -> Result<(), TierError> {
        maps::read(&format!("/proc/{}/maps", self.pid), &mut self.text)
            .map_err(failed(self.pid))?;
        let regions = maps::anonymous(&String::from_utf8_lossy(&self.text));
        let wanted = Wanted {
            all: PRESENT,
            none: FILE | ZERO,
            report: PRESENT,
            protect: false,
        };
        let mut pages = Vec::new();
        for (start, end) in &regions {
            // A mapping that is gone meanwhile has no pages.
            let _ = self.pagemap.scan(*start, *end, wanted, |run| {
                pages.extend((run.start..run.end).step_by(PAGE as usize));
            });
        }
        let mut blocks = BTreeMap::new();
        let fast = self.nodes[0] as i32;
        for call in pages.chunks(16 * CALL) {
            for (page, node) in call.iter().zip(move_pages(self.pid, call, None)?) {
                let (present, slow): &mut (u64, u64) = blocks.entry(page / BLOCK).or_default();
                let bit = 1u64 << (page % BLOCK / PAGE);
                *present |= bit;
                if node >= 0 && node != fast {
                    *slow |= bit;
                }
            }
        }
        let mut books = self.memory.blocks.borrow_mut();
        let known: Vec<u64> = books.map.keys().copied().collect();
        for number in known.into_iter().filter(|n| !blocks.contains_key(n)) {
            books.forget(number * BLOCK, (number + 1) * BLOCK);
        }
        for (number, (present, slow)) in blocks {
            books.change(number, |block| {
                (block.present, block.slow) = (present, slow);
            });
        }
        drop(books);
        self.memory.regions = regions;
        Ok(())
    }

    /// Whether the process has memory. One that ends has none a moment before it has ended.
    pub(super) fn has_memory(&mut self) -> bool {
        let read = maps::read(&format!("/proc/{}/maps", self.pid), &mut self.text);
        read.is_ok() && !self.text.is_empty()
    }

    /// What trackers enter accesses in, and the process's page map.
    pub(crate) fn tracked(&mut self) -> (&RemoteMemory, &mut PageMap) {
        (&self.memory, &mut self.pagemap)
    }

    /// Halves all access counts.
    pub(super) fn cool(&self) {
        for block in self.memory.blocks.borrow_mut().map.values_mut() {
            block.heat /= 2;
        }
    }

    /// Moves a block, or the blocks of its huge page.
    fn move_unit(&self, number: u64, to: usize, report: &mut Report) -> Result<(), TierError> {
        let mut books = self.memory.blocks.borrow_mut();
        let huge = books.map.get(&number).is_some_and(|block| block.huge);
        let count = if huge { HUGE / BLOCK } else { 1 };
        for number in number..number + count {
            let Some(block) = books.map.get(&number).copied() else {
                continue;
            };
            let here = match to {
                1 => block.present & !block.slow,
                _ => block.present & block.slow,
            };
            let bits = (0..BLOCK_PAGES).filter(|bit| here >> bit & 1 == 1);
            let pages: Vec<u64> = bits.map(|bit| number * BLOCK + bit * PAGE).collect();
            if pages.is_empty() {
                continue;
            }
            let node = self.nodes[to];
            let mut moved = 0;
            for (page, found) in pages.iter().zip(move_pages(self.pid, &pages, Some(node))?) {
                let outcome = match found {
                    found if found == node as i32 => Outcome::Moved,
                    0.. => Outcome::Other,
                    error => Outcome::of_errno(-error),
                };
                report.outcomes.add(outcome, 1);
                if outcome == Outcome::Moved {
                    moved |= 1 << (page % BLOCK / PAGE);
                }
            }
            report.pages += pages.len() as u64;
            // The kernel copies with the core that calls.
            report.copied.core += u64::from(u64::count_ones(moved)) * PAGE;
            books.change(number, |block| match to {
                1 => block.slow |= moved,
                _ => block.slow &= !moved,
            });
        }
        Ok(())
    }
}

impl BackEnd for KernelBackEnd {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn used(&self) -> [u64; 2] {
        let books = self.memory.blocks.borrow();
        books.map.values().fold([0; 2], |[fast, slow], block| {
            let bits = |bits: u64| u64::from(bits.count_ones());
            [
                fast + bits(block.present & !block.slow),
                slow + bits(block.present & block.slow),
            ]
        })
    }

    fn units(&mut self) -> Cow<'_, [(u64, Block)]> {
        let books = self.memory.blocks.borrow();
        let all: Vec<_> = books
            .map
            .iter()
            .map(|(number, block)| (*number, *block))
            .collect();
        Cow::Owned(units(&all))
    }

    fn migrate(&mut self, reason: Reason, numbers: &[u64], room: &Room) -> Result<(), TierError> {
        let to = usize::from(reason == Reason::Demotion);
        for number in numbers {
            let mut report = Report::default();
            let start = std::time::Instant::now();
            let moved = self.move_unit(*number, to, &mut report);
            // The kernel does not report its phases.
            report.copy = start.elapsed();
            self.session.record(reason, &report);
            if let Some(process) = self.process {
                process.moved(reason, &report.outcomes);
            }
            moved?;
            let mut books = self.memory.blocks.borrow_mut();
            if let Some(block) = books.map.get_mut(number) {
                let back = block.enter_move(to == 1, room.interval, room.ping_pong);
                if let Some(process) = self.process {
                    process.add(Value::PingPongs, u64::from(back));
                }
            }
        }
        Ok(())
    }
}
