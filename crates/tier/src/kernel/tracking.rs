//! Accesses of processes that are tiered from outside: the best way that there is, and which that is.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::idle::Frames;
use super::process::RemoteProcess;
use crate::TierError;
use crate::mechanism::{BLOCK, Blocks, block_of};
use crate::session::{Note, Value};
use crate::sys::damon::{self, DamonError, Interface, Target};
use crate::sys::pagemap::{PRESENT, PageMap, SOFT_DIRTY, Wanted};
use crate::sys::{PAGE, memory, thread_cpu_ns};
use crate::tracking::{Choice, DamonTracker, Tracking, access};

/// Processes that DAMON monitors at once, each by a thread of the kernel.
const MONITORS: u32 = 16;
/// Pages of a block that are asked about in a round, and what one that is accessed counts.
const ASKED: u32 = 4;
const WEIGHT: u32 = 64 / ASKED;
/// Time that the first write to a page takes after its bit was cleared.
const WRITE: Duration = Duration::from_nanos(1100);

/// Where the kernel has its ways of tracking.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) damon: PathBuf,
    pub(super) idle: PathBuf,
    pub(super) iomem: PathBuf,
}

impl Default for Places {
    fn default() -> Places {
        Places {
            damon: PathBuf::from(damon::DIRECTORY),
            idle: PathBuf::from("/sys/kernel/mm/page_idle/bitmap"),
            iomem: PathBuf::from("/proc/iomem"),
        }
    }
}

/// Tracks the processes of a session.
#[derive(Debug)]
pub(super) struct Trackers {
    how: How,
    /// Why each better way is not taken.
    pub(super) missing: Vec<String>,
    /// Time that may still be used; negative when more was.
    credit: i64,
    last: Instant,
    round: u32,
}

#[derive(Debug)]
enum How {
    Damon {
        interface: Arc<Interface>,
        trackers: HashMap<u32, DamonTracker>,
    },
    /// With what was armed: frame, slot, address.
    Frames(Frames, Vec<(u64, u32, u64)>),
    Writes,
    Nothing,
}

impl Trackers {
    /// The best that there is, or what is asked for.
    ///
    /// # Errors
    /// DAMON alone was asked for and cannot be had; hints, which work inside of a process alone.
    pub(super) fn choose(choice: Choice, places: &Places) -> Result<Trackers, TierError> {
        let mut missing = Vec::new();
        let how = match choice {
            Choice::Hints => return Err(TierError::Hints),
            Choice::Damon => How::damon(places).or_else(|cause| match cause {
                DamonError::NoVaddr => How::damon_physical(places),
                cause => Err(cause),
            }),
            Choice::Best => How::best(places, &mut missing),
        };
        Ok(Trackers {
            how: how.map_err(|cause| TierError::Damon { cause })?,
            missing,
            credit: 0,
            last: Instant::now(),
            round: 0,
        })
    }

    pub(super) fn tracking(&self) -> Tracking {
        match &self.how {
            How::Damon { .. } => Tracking::Damon,
            How::Frames(Frames::Idle(_), _) => Tracking::IdlePages,
            How::Frames(Frames::Damon(_), _) => Tracking::PhysicalDamon,
            How::Writes => Tracking::SoftDirty,
            How::Nothing => Tracking::Nothing,
        }
    }

    /// One interval, with `overhead` percent of a core.
    pub(super) fn step(&mut self, processes: &mut BTreeMap<u32, RemoteProcess>, overhead: u64) {
        let begin = Instant::now();
        let gained = (begin - self.last).as_nanos() as i64 * overhead as i64 / 100;
        self.last = begin;
        self.credit = (self.credit + gained).min(overhead as i64 * 10_000_000);
        if processes.is_empty() || overhead == 0 {
            return;
        }
        if let How::Damon { .. } = self.how {
            return self.step_damon(processes, overhead);
        }
        if self.credit <= 0 {
            return;
        }
        let before = thread_cpu_ns();
        let extra = match &mut self.how {
            How::Frames(frames, armed) => match frames.begin() {
                Ok(true) => {
                    self.round = self.round.wrapping_add(1);
                    ask(frames, armed, processes, self.round);
                    Duration::ZERO
                }
                Ok(false) => return,
                Err(error) => return self.fail(processes, &error),
            },
            How::Writes => processes.values_mut().map(written).sum(),
            _ => return,
        };
        let cost = Duration::from_nanos(thread_cpu_ns() - before) + extra;
        self.credit -= cost.as_nanos() as i64;
        let share = cost / processes.len() as u32;
        for process in processes.values() {
            process.counters.add(Value::Scans, 1);
            process
                .counters
                .add(Value::TrackingNs, share.as_nanos() as u64);
        }
    }

    fn fail(&mut self, processes: &BTreeMap<u32, RemoteProcess>, error: &DamonError) {
        self.how = How::Nothing;
        for process in processes.values() {
            process.counters.tracks(Tracking::Nothing);
            let text = format!("accesses are tracked no more: {error}");
            process.counters.note(Note::Tracking, &text);
        }
    }

    fn step_damon(&mut self, processes: &mut BTreeMap<u32, RemoteProcess>, overhead: u64) {
        let How::Damon {
            interface,
            trackers,
        } = &mut self.how
        else {
            return;
        };
        trackers.retain(|slot, _| processes.contains_key(slot));
        let share = processes.len().min(MONITORS as usize) as u32;
        // The largest are monitored first.
        let mut order: Vec<(u64, u32)> = processes
            .iter()
            .map(|(slot, process)| (process.used().iter().sum(), *slot))
            .collect();
        order.sort_unstable_by_key(|(pages, slot)| (std::cmp::Reverse(*pages), *slot));
        for (_, slot) in order {
            let Some(process) = processes.get_mut(&slot) else {
                continue;
            };
            let result = tracker_of(interface, trackers, process)
                .and_then(|tracker| tracker.step_on(&process.memory, overhead, share));
            match result {
                Ok(tracked) => {
                    process
                        .counters
                        .add(Value::Scans, u64::from(tracked.scanned));
                    let cost = tracked.cost.as_nanos() as u64;
                    process.counters.add(Value::TrackingNs, cost);
                }
                // Of a process that ends there is nothing to track.
                Err(_) if process.has_ended() || !process.has_memory() => {
                    trackers.remove(&slot);
                }
                Err(error) => {
                    trackers.remove(&slot);
                    process.counters.tracks(Tracking::Nothing);
                    let text = format!("its accesses are not tracked: {error}");
                    process.counters.note(Note::Tracking, &text);
                }
            }
        }
    }
}

fn tracker_of<'a>(
    interface: &Arc<Interface>,
    trackers: &'a mut HashMap<u32, DamonTracker>,
    process: &RemoteProcess,
) -> Result<&'a mut DamonTracker, DamonError> {
    use std::collections::hash_map::Entry;
    match trackers.entry(process.slot) {
        Entry::Occupied(entry) => Ok(entry.into_mut()),
        Entry::Vacant(entry) => {
            let damon = interface.monitor(Target::Process(process.pid.unsigned_abs()))?;
            let pagemap = PageMap::of(process.pid).map_err(|source| DamonError::File {
                path: format!("/proc/{}/pagemap", process.pid),
                source,
            })?;
            Ok(entry.insert(DamonTracker::with(damon, pagemap)))
        }
    }
}

impl How {
    /// DAMON has a file for each process, and so it is taken for as many as it monitors.
    fn damon(places: &Places) -> Result<How, DamonError> {
        // Which process is asked for later: none has this number.
        let interface = Interface::take(&places.damon, MONITORS, Target::Process(u32::MAX))?;
        Ok(How::Damon {
            interface,
            trackers: HashMap::new(),
        })
    }

    fn damon_physical(places: &Places) -> Result<How, DamonError> {
        let interface = Interface::take(&places.damon, 1, Target::Memory)?;
        let iomem = std::fs::read_to_string(&places.iomem).unwrap_or_default();
        let frames = Frames::damon(interface.monitor(Target::Memory)?, &iomem)?;
        Ok(How::Frames(frames, Vec::new()))
    }

    fn best(places: &Places, missing: &mut Vec<String>) -> Result<How, DamonError> {
        let virtual_ = match Self::damon(places) {
            Ok(how) => return Ok(how),
            Err(cause) => cause,
        };
        missing.push(virtual_.to_string());
        // Frame numbers are shown to root alone.
        match (shows_frames(), Frames::idle(&places.idle)) {
            (true, Ok(frames)) => return Ok(How::Frames(frames, Vec::new())),
            (false, _) => missing.push("frames of pages are shown to root alone".to_owned()),
            (true, Err(error)) => missing.push(match error.kind() {
                std::io::ErrorKind::NotFound => {
                    "this kernel is built without CONFIG_IDLE_PAGE_TRACKING".to_owned()
                }
                _ => format!("{}: {error}", places.idle.display()),
            }),
        }
        if let (true, DamonError::NoVaddr) = (shows_frames(), &virtual_) {
            match Self::damon_physical(places) {
                Ok(how) => return Ok(how),
                Err(cause) => missing.push(cause.to_string()),
            }
        }
        if has_soft_dirty() {
            return Ok(How::Writes);
        }
        missing.push("this kernel is built without CONFIG_MEM_SOFT_DIRTY".to_owned());
        Ok(How::Nothing)
    }
}

/// Whether page maps name frames to this process.
pub(super) fn shows_frames() -> bool {
    own_page(|map, page| {
        let mut shown = false;
        let read = map.entries(page, page + PAGE, |_, entry| {
            shown = entry.frame().is_some()
        });
        read.is_ok() && shown
    })
}

/// Whether the kernel marks pages that are written: a page that was just written is marked.
fn has_soft_dirty() -> bool {
    own_page(|map, page| {
        let mut marked = false;
        let wanted = Wanted {
            all: PRESENT | SOFT_DIRTY,
            report: SOFT_DIRTY,
            ..Wanted::default()
        };
        let scan = map.scan(page, page + PAGE, wanted, |_| marked = true);
        scan.is_ok() && marked
    })
}

fn own_page(ask: impl FnOnce(&mut PageMap, u64) -> bool) -> bool {
    let Ok(mut map) = PageMap::own_for_few_runs() else {
        return false;
    };
    let Ok(page) = memory::reserve(PAGE, PAGE) else {
        return false;
    };
    // SAFETY: a page of this function's own.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(page as usize).write_volatile(1) };
    let answer = ask(&mut map, page);
    // SAFETY: this function's, and nothing uses it any more.
    unsafe { memory::unmap(page, PAGE) };
    answer
}

/// Enters which of the armed pages have been accessed, and arms others.
fn ask(
    frames: &Frames,
    armed: &mut Vec<(u64, u32, u64)>,
    processes: &BTreeMap<u32, RemoteProcess>,
    round: u32,
) {
    let numbers: Vec<u64> = armed.iter().map(|(frame, _, _)| *frame).collect();
    let accessed = frames.accessed(&numbers);
    for process in processes.values() {
        change_all(process, |blocks| {
            blocks.map.values_mut().for_each(|block| {
                block.idle = block.idle.saturating_add(1);
                block.touched <<= 1;
            });
        });
    }
    for ((frame, slot, page), accessed) in armed.iter().zip(accessed) {
        if let (true, Some(process)) = (accessed, processes.get(slot))
            && frame_of(&process.pagemap, *page) == Some(*frame)
        {
            change_all(process, |blocks| {
                if let Some(block) = blocks.map.get_mut(&block_of(*page)) {
                    access(block, WEIGHT);
                }
            });
        }
    }
    armed.clear();
    for (slot, process) in processes {
        let pages: Vec<u64> = {
            let books = process.memory.blocks.borrow();
            let of = |number: &u64, block: &crate::mechanism::Block| match block.huge {
                true => vec![number * BLOCK],
                false => picked(*number, block.present, round),
            };
            let blocks = books.map.iter();
            blocks
                .flat_map(|(number, block)| of(number, block))
                .collect()
        };
        let known = pages
            .into_iter()
            .filter_map(|page| Some((frame_of(&process.pagemap, page)?, *slot, page)));
        armed.extend(known);
    }
    armed.sort_unstable();
    let numbers: Vec<u64> = armed.iter().map(|(frame, _, _)| *frame).collect();
    let able = frames.arm(&numbers);
    armed.retain(|(frame, _, _)| able.binary_search(frame).is_ok());
}

fn change_all(process: &RemoteProcess, change: impl FnOnce(&mut Blocks)) {
    change(&mut process.memory.blocks.borrow_mut());
}

/// Some of the pages of a block, others in each round.
fn picked(number: u64, present: u64, round: u32) -> Vec<u64> {
    let from = round.wrapping_mul(0x9e37_79b9) >> 26;
    let mut left = present.rotate_right(from);
    let mut pages = Vec::with_capacity(ASKED as usize);
    while left != 0 && pages.len() < ASKED as usize {
        let bit = (left.trailing_zeros() + from) % 64;
        pages.push(number * BLOCK + u64::from(bit) * PAGE);
        left &= left - 1;
    }
    pages
}

fn frame_of(map: &PageMap, page: u64) -> Option<u64> {
    let mut frame = None;
    map.entries(page, page + PAGE, |_, entry| frame = entry.frame())
        .ok()?;
    frame
}

/// Enters which pages of a process have been written since the last time; the time that this costs the program.
fn written(process: &mut RemoteProcess) -> Duration {
    let wanted = Wanted {
        all: PRESENT | SOFT_DIRTY,
        report: SOFT_DIRTY,
        ..Wanted::default()
    };
    let mut runs = Vec::new();
    for (start, end) in crate::tracking::Books::regions(&process.memory) {
        let _ = process
            .pagemap
            .scan(start, end, wanted, |run| runs.push(run));
    }
    let clear = format!("/proc/{}/clear_refs", process.pid);
    if let Err(error) = std::fs::write(clear, "4") {
        if !process.has_ended() {
            let text = format!("its writes are not tracked: {error}");
            process.counters.note(Note::Tracking, &text);
        }
        return Duration::ZERO;
    }
    let mut pages = 0;
    change_all(process, |blocks| {
        blocks.map.values_mut().for_each(|block| {
            block.idle = block.idle.saturating_add(1);
            block.touched <<= 1;
        });
        for run in &runs {
            blocks.change_known(run.start, run.end, |block, bits| {
                let written = (bits & block.present).count_ones();
                if written > 0 {
                    access(block, written);
                    pages += written;
                }
            });
        }
    });
    WRITE * pages
}

/// Says what is tracked, and how.
pub(super) fn describe(trackers: &Trackers) -> String {
    let why = match &trackers.missing[..] {
        [] => String::new(),
        missing => format!(" ({})", missing.join("; ")),
    };
    format!("accesses tracked: {}{why}", trackers.tracking().name())
}

#[cfg(test)]
pub(super) fn nowhere(root: &std::path::Path) -> Places {
    Places {
        damon: root.join("kdamonds"),
        idle: root.join("bitmap"),
        iomem: root.join("iomem"),
    }
}
