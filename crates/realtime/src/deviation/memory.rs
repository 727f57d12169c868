//! Memory to which something else is written, or later.

use dray_device::{Access, AddressSpace, Memory, View};

use crate::SharedMemory;

/// A write that waits for a completion record.
#[derive(Debug, Clone)]
pub(crate) struct HeldWrite {
    /// Address of the record.
    pub(super) record: u64,
    pub(super) view: View,
    pub(super) address: u64,
    pub(super) bytes: Vec<u8>,
}

/// The memory of one descriptor.
pub(super) struct AlteredMemory<'a, M> {
    inner: &'a mut M,
    /// The record that all writes wait for.
    holds: Option<u64>,
    /// The last byte of each write is wrong.
    is_wrong: bool,
    view: View,
    held: Vec<HeldWrite>,
}

impl<'a, M: SharedMemory> AlteredMemory<'a, M> {
    pub(super) fn new(inner: &'a mut M, holds: Option<u64>, is_wrong: bool) -> Self {
        AlteredMemory {
            inner,
            holds,
            is_wrong,
            view: View::default(),
            held: Vec::new(),
        }
    }

    pub(super) fn enter(&mut self, view: View) {
        self.view = view;
        self.inner.enter(view);
    }

    pub(super) fn into_held(self) -> Vec<HeldWrite> {
        self.held
    }
}

impl<M: SharedMemory> Memory for AlteredMemory<'_, M> {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        self.inner.accessible(addr, len, access)
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        self.inner.read(addr, into);
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        let mut bytes = from.to_vec();
        if let Some(last) = bytes.last_mut().filter(|_| self.is_wrong) {
            *last ^= 0x80;
        }
        match self.holds {
            None => self.inner.write(addr, &bytes),
            Some(record) => self.held.push(HeldWrite {
                record,
                view: self.view,
                address: addr,
                bytes,
            }),
        }
    }

    fn flush(&mut self, addr: u64, len: u64) {
        self.inner.flush(addr, len);
    }

    fn alternate(&mut self, space: AddressSpace) -> Option<&mut dyn Memory> {
        self.inner.alternate(space)
    }
}
