//! Whose address space a PASID stands for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::SpaceError;
use crate::process::Process;
use crate::transfer;

/// Processes by PASID. The side that gives PASIDs adds and removes them while devices work.
#[derive(Debug, Default)]
pub struct Spaces {
    by_pasid: RwLock<HashMap<u32, Arc<Process>>>,
    changes: AtomicU64,
}

impl Spaces {
    /// None yet.
    pub fn new() -> Spaces {
        Spaces::default()
    }

    /// From now on `pasid` stands for the memory of process `pid`, as the program that it executes
    /// now has it. 0 stands for requests without a PASID.
    ///
    /// # Errors
    /// There is no such process, its memory may not be accessed, or there is no such PASID.
    pub fn add(&self, pasid: u32, pid: u32) -> Result<(), SpaceError> {
        if pasid >> 20 != 0 {
            return Err(SpaceError::Pasid { pasid });
        }
        let process = Arc::new(Process::open(pid)?);
        self.change(|spaces| spaces.insert(pasid, process));
        Ok(())
    }

    /// From now on accesses with `pasid` fault. False if they have before. A descriptor that an engine
    /// is at may still end: drain the PASID first where that matters.
    pub fn remove(&self, pasid: u32) -> bool {
        self.change(|spaces| spaces.remove(&pasid)).is_some()
    }

    /// Whether the address space that `pasid` stands for is still there: its process has neither ended
    /// nor executed another program.
    pub fn is_there(&self, pasid: u32) -> bool {
        self.get(pasid).is_some_and(|process| process.is_there())
    }

    /// A byte of the memory that `pasid` stands for; `None` if the process could not read it itself, or has ended.
    pub fn read_byte(&self, pasid: u32, address: u64) -> Option<u8> {
        let mut byte = [0];
        transfer::read(&self.get(pasid)?.target, address, &mut byte).ok()?;
        Some(byte[0])
    }

    /// Bytes of the memory that `pasid` stands for, up to the first page that the process could not read itself.
    pub fn read_up_to(&self, pasid: u32, address: u64, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let read = self
            .get(pasid)
            .map(|process| transfer::read(&process.target, address, &mut bytes));
        bytes.truncate(match read {
            None => 0,
            Some(Ok(())) => most,
            Some(Err(short)) => short.done,
        });
        bytes
    }

    pub(crate) fn get(&self, pasid: u32) -> Option<Arc<Process>> {
        let spaces = self.by_pasid.read().unwrap_or_else(PoisonError::into_inner);
        spaces.get(&pasid).cloned()
    }

    /// Another number after each change.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    fn change<R>(&self, change: impl FnOnce(&mut HashMap<u32, Arc<Process>>) -> R) -> R {
        let spaces = self.by_pasid.write();
        let result = change(&mut spaces.unwrap_or_else(PoisonError::into_inner));
        self.changes.fetch_add(1, Ordering::Release);
        result
    }
}
