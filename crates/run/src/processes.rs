//! Processes that have a work queue open, and their PASIDs.

use std::collections::HashMap;
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Process numbers as the launcher sees them.
pub(crate) type Pid = u32;

/// PASIDs have 20 bits (PCIe 6.20); Linux gives them out from 1.
const PASIDS: std::ops::Range<u32> = 1..1 << 20;

/// A PASID for each process that has one, for as long as it needs it.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    table: Mutex<HashMap<Pid, Entry>>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    pasid: u32,
    holds: usize,
}

impl Processes {
    fn table(&self) -> MutexGuard<'_, HashMap<Pid, Entry>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The PASID of a process, and whether it is new; `None` if all are in use.
    pub(crate) fn hold(&self, pid: Pid) -> Option<(u32, bool)> {
        let mut table = self.table();
        if let Some(entry) = table.get_mut(&pid) {
            entry.holds += 1;
            return Some((entry.pasid, false));
        }
        let used: std::collections::HashSet<u32> = table.values().map(|e| e.pasid).collect();
        let pasid = PASIDS.into_iter().find(|pasid| !used.contains(pasid))?;
        table.insert(pid, Entry { pasid, holds: 1 });
        Some((pasid, true))
    }

    /// One need less; the PASID, if it was the last and nobody has it any more.
    pub(crate) fn let_go(&self, pid: Pid) -> Option<u32> {
        let mut table = self.table();
        let entry = table.get_mut(&pid)?;
        entry.holds -= 1;
        let last = (entry.holds == 0).then_some(entry.pasid);
        if last.is_some() {
            table.remove(&pid);
        }
        last
    }
}

/// The process of a thread: FUSE tells of threads.
pub(crate) fn process_of(thread: u32) -> Option<Pid> {
    field(thread, "Tgid:")?.parse().ok()
}

/// Whether a process has a capability, as `/proc` tells of its effective ones.
pub(crate) fn is_capable(pid: Pid, capability: u32) -> bool {
    let bits = field(pid, "CapEff:").and_then(|bits| u64::from_str_radix(&bits, 16).ok());
    bits.is_some_and(|bits| bits >> capability & 1 == 1)
}

/// What `/proc` tells of a thread by this name, which ends with a colon.
pub(crate) fn field(pid: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix(name))?;
    Some(value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_keeps_its_pasid_as_long_as_it_needs_it() {
        let processes = Processes::default();
        assert_eq!(processes.hold(10), Some((1, true)));
        assert_eq!(processes.hold(11), Some((2, true)));
        assert_eq!(processes.hold(10), Some((1, false)));
        assert_eq!(processes.let_go(10), None);
        assert_eq!(processes.let_go(10), Some(1));
        assert_eq!(processes.let_go(10), None);
        assert_eq!(processes.hold(12), Some((1, true)));
    }

    #[test]
    fn a_thread_is_of_its_process() {
        let thread = std::thread::spawn(|| rustix::thread::gettid().as_raw_nonzero().get());
        let ours = std::process::id();
        assert_eq!(process_of(ours), Some(ours));
        // It may have ended; while it runs, it is of this process.
        let ended = process_of(thread.join().unwrap() as u32);
        assert!(ended.is_none() || ended == Some(ours));
        assert_eq!(process_of(u32::MAX), None);
    }
}
