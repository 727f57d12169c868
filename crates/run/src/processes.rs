//! Processes that have a work queue open, and their PASIDs.

use std::collections::HashMap;
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Process numbers as the launcher sees them.
pub(crate) type Pid = u32;

/// PASIDs have 20 bits (PCIe 6.20); Linux gives them out from 1.
const PASIDS: std::ops::Range<u32> = 1..1 << 20;

/// A PASID for each address space that has one, for as long as it needs it. A process has one address
/// space after the other: executing a program gives it another.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    table: Mutex<HashMap<u32, Holder>>,
}

/// Who has a PASID.
#[derive(Debug, Clone, Copy)]
struct Holder {
    pid: Pid,
    holds: usize,
}

impl Processes {
    fn table(&self) -> MutexGuard<'_, HashMap<u32, Holder>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The PASID of a process's present address space, and whether it is new; `None` if all are in use.
    /// `is_there` says whether the address space of a PASID is one still.
    pub(crate) fn hold(&self, pid: Pid, is_there: impl Fn(u32) -> bool) -> Option<(u32, bool)> {
        let mut table = self.table();
        let mut known = table.iter_mut();
        let present = known.find(|(pasid, holder)| holder.pid == pid && is_there(**pasid));
        if let Some((pasid, holder)) = present {
            holder.holds += 1;
            return Some((*pasid, false));
        }
        let pasid = PASIDS
            .into_iter()
            .find(|pasid| !table.contains_key(pasid))?;
        table.insert(pasid, Holder { pid, holds: 1 });
        Some((pasid, true))
    }

    /// One need less; the process, if it was the last and no other has the PASID.
    pub(crate) fn let_go(&self, pasid: u32) -> Option<Pid> {
        let mut table = self.table();
        let holder = table.get_mut(&pasid)?;
        holder.holds -= 1;
        match holder.holds {
            0 => table.remove(&pasid).map(|holder| holder.pid),
            _ => None,
        }
    }
}

/// The process of a thread: FUSE names threads.
pub(crate) fn process_of(thread: u32) -> Option<Pid> {
    field(thread, "Tgid:")?.parse().ok()
}

/// Whether a process has a capability, by its effective ones in `/proc`.
pub(crate) fn is_capable(pid: Pid, capability: u32) -> bool {
    let bits = field(pid, "CapEff:").and_then(|bits| u64::from_str_radix(&bits, 16).ok());
    bits.is_some_and(|bits| bits >> capability & 1 == 1)
}

/// What `/proc` has of a thread under this name, which ends with a colon.
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
    fn a_process_keeps_its_pasid_while_it_holds_it() {
        let processes = Processes::default();
        let hold = |pid| processes.hold(pid, |_| true);
        assert_eq!(hold(10), Some((1, true)));
        assert_eq!(hold(11), Some((2, true)));
        assert_eq!(hold(10), Some((1, false)));
        assert_eq!(processes.let_go(1), None);
        assert_eq!(processes.let_go(1), Some(10));
        assert_eq!(processes.let_go(1), None);
        assert_eq!(hold(12), Some((1, true)));
    }

    #[test]
    fn a_new_address_space_of_a_process_gets_a_new_pasid() {
        let processes = Processes::default();
        assert_eq!(processes.hold(10, |_| true), Some((1, true)));
        // It has executed a program, and what it had open is open still.
        assert_eq!(processes.hold(10, |pasid| pasid != 1), Some((2, true)));
        assert_eq!(processes.hold(10, |pasid| pasid != 1), Some((2, false)));
        assert_eq!(processes.let_go(1), Some(10));
        assert_eq!(processes.let_go(2), None);
        assert_eq!(processes.let_go(2), Some(10));
    }

    #[test]
    fn a_thread_id_is_resolved_to_its_process() {
        let thread = std::thread::spawn(|| rustix::thread::gettid().as_raw_nonzero().get());
        let ours = std::process::id();
        assert_eq!(process_of(ours), Some(ours));
        // It may have ended; while it runs, it is of this process.
        let ended = process_of(thread.join().unwrap() as u32);
        assert!(ended.is_none() || ended == Some(ours));
        assert_eq!(process_of(u32::MAX), None);
    }
}
