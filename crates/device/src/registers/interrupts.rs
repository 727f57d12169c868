//! The interrupt tables: who may use an entry, and what becomes of an interrupt.

mod entry;

use dray_spec::registers::MsixPermission;
use dray_spec::{Descriptor, Flags};

use crate::Effect;
use entry::{Message, Vector};

use super::Hardware;
use super::bits::Bits;

/// Which of the two tables an interrupt is of (spec 3.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Msix,
    Storage,
}

impl Source {
    pub(crate) fn of(message_storage: bool) -> Source {
        match message_storage {
            false => Source::Msix,
            true => Source::Storage,
        }
    }
}

/// In whose name an interrupt is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// PASID enable of the queue.
    pub(crate) pasid_enable: bool,
    pub(crate) pasid: u32,
}

/// MSI-X table with its permissions, interrupt message storage, and the handles that are out.
///
/// Handles are the indexes of their entries: software that gives back the handle (Linux) and one
/// that gives back the index (spec 9.2.12) mean the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interrupts {
    vectors: Vec<Vector>,
    messages: Vec<Message>,
    masks_vectors: bool,
    /// Every handle is good: see [`Hardware::without_driver`].
    unchecked: bool,
    /// Entries may only be used with a handle.
    needs_handle: bool,
    handles_left: u16,
}

impl Interrupts {
    pub(crate) fn new(hardware: &Hardware) -> Interrupts {
        let vectors = hardware.interrupt_vectors.clamp(1, 2048);
        let messages = hardware.gen_cap.ims_entries();
        Interrupts {
            vectors: vec![Vector::default(); vectors.into()],
            messages: vec![Message::default(); messages as usize],
            masks_vectors: hardware.masks_vectors,
            unchecked: hardware.without_driver,
            needs_handle: hardware.uses_handles(),
            handles_left: hardware.interrupt_handles,
        }
    }

    /// Reset Device: all but the MSI-X table itself is as after power-on (spec Table 9-3).
    pub(crate) fn reset(&mut self, hardware: &Hardware) {
        let fresh = Interrupts::new(hardware);
        for vector in &mut self.vectors {
            *vector = vector.kept();
        }
        self.messages = fresh.messages;
        self.handles_left = fresh.handles_left;
    }

    /// Whether a descriptor asks for no interrupt, or for one that it may have.
    #[inline]
    pub(crate) fn allow(&self, descriptor: &Descriptor, source: Source, claim: Claim) -> bool {
        let asks = descriptor
            .flags()
            .contains(Flags::REQUEST_COMPLETION_INTERRUPT);
        !asks || self.unchecked || self.may_use(source, descriptor.interrupt_handle, claim)
    }

    /// Spec 5.4, Table 5-2.
    fn may_use(&self, source: Source, handle: u16, claim: Claim) -> bool {
        let index = usize::from(handle);
        let entry = match source {
            Source::Msix => self
                .vectors
                .get(index)
                .map(|v| (v.permission, v.has_handle)),
            Source::Storage => {
                let message = self.messages.get(index);
                message.map(|m| (m.control.permission(), m.has_handle))
            }
        };
        let Some((permission, has_handle)) = entry else {
            return false;
        };
        (has_handle || !self.needs_handle)
            && permission.pasid_enable() == claim.pasid_enable
            && (!claim.pasid_enable || permission.pasid() == claim.pasid)
    }

    /// Whether an occupancy interrupt can be configured with this handle (spec 5.2).
    pub(crate) fn is_valid(&self, source: Source, handle: u16) -> bool {
        let index = usize::from(handle);
        let has_handle = match source {
            _ if self.unchecked => return true,
            Source::Msix => self.vectors.get(index).map(|v| v.has_handle),
            Source::Storage => self.messages.get(index).map(|m| m.has_handle),
        };
        has_handle.is_some_and(|has| has || !self.needs_handle)
    }

    /// A completion interrupts, unless its entry ignores completions.
    pub(crate) fn complete(&mut self, source: Source, handle: u16) -> Option<Effect> {
        let index = usize::from(handle);
        let ignored = match source {
            _ if self.unchecked => return Some(Effect::Interrupt { handle }),
            Source::Msix => self.vectors.get(index)?.permission.ignore(),
            Source::Storage => self.messages.get(index)?.control.ignore(),
        };
        match ignored {
            true => None,
            false => self.raise(source, handle),
        }
    }

    /// An interrupt of any cause: sent, or pending if its entry is masked.
    pub(crate) fn raise(&mut self, source: Source, index: u16) -> Option<Effect> {
        match source {
            _ if self.unchecked => Some(Effect::Interrupt { handle: index }),
            Source::Msix => {
                let masks = self.masks_vectors;
                let vector = self.vectors.get_mut(usize::from(index))?;
                vector.pending = masks && vector.masked;
                (!vector.pending).then_some(Effect::Interrupt { handle: index })
            }
            Source::Storage => self.messages.get_mut(usize::from(index))?.raise(),
        }
    }

    /// Gives out the handle of an entry; `None` if no more may be out.
    ///
    /// # Errors
    /// Where there is no such entry.
    pub(crate) fn request(&mut self, source: Source, index: u16) -> Result<Option<u16>, NoEntry> {
        let left = self.handles_left;
        let has_handle = self.handle(source, index).ok_or(NoEntry)?;
        match (*has_handle, left) {
            (true, _) => Ok(Some(index)),
            (false, 0) => Ok(None),
            (false, _) => {
                *has_handle = true;
                self.handles_left -= 1;
                Ok(Some(index))
            }
        }
    }

    /// Takes a handle back.
    ///
    /// # Errors
    /// Where there is no such entry, or its handle is not out.
    pub(crate) fn release(&mut self, source: Source, index: u16) -> Result<(), NoEntry> {
        let has_handle = self.handle(source, index).ok_or(NoEntry)?;
        match std::mem::take(has_handle) {
            true => {
                self.handles_left += 1;
                Ok(())
            }
            false => Err(NoEntry),
        }
    }

    /// Makes all handles worthless. True if any was out.
    pub(crate) fn revoke(&mut self) -> bool {
        let vectors = self.vectors.iter_mut().map(|v| &mut v.has_handle);
        let messages = self.messages.iter_mut().map(|m| &mut m.has_handle);
        let mut count = 0;
        for has_handle in vectors.chain(messages) {
            count += u16::from(std::mem::take(has_handle));
        }
        self.handles_left += count;
        count > 0
    }

    /// Address and data of a vector, as software has written them to the table.
    pub(crate) fn message(&self, vector: u16) -> Option<(u64, u32)> {
        let vector = self.vectors.get(usize::from(vector))?;
        Some((vector.address, vector.data))
    }

    fn handle(&mut self, source: Source, index: u16) -> Option<&mut bool> {
        let index = usize::from(index);
        match source {
            Source::Msix => self.vectors.get_mut(index).map(|v| &mut v.has_handle),
            Source::Storage => self.messages.get_mut(index).map(|m| &mut m.has_handle),
        }
    }
}

/// Registers.
impl Interrupts {
    pub(crate) fn read_permission(&self, index: usize) -> u64 {
        self.vectors[index].permission.into_bits().into()
    }

    pub(crate) fn write_permission(&mut self, index: usize, bits: Bits) {
        let mut permission = self.vectors[index].permission.into_bits();
        bits.store32(&mut permission, 0, 0xffff_f00c);
        self.vectors[index].permission = MsixPermission::from_bits(permission);
    }

    pub(crate) fn read_vector(&self, index: usize, at: u64) -> u64 {
        self.vectors[index].read(at)
    }

    pub(crate) fn write_vector(&mut self, index: usize, at: u64, bits: Bits) -> Option<Effect> {
        let due = self.vectors[index].write(at, bits);
        due.then_some(Effect::Interrupt {
            handle: index as u16,
        })
    }

    pub(crate) fn read_pending(&self, qword: usize) -> u64 {
        let vectors = self.vectors.iter().skip(qword * 64).take(64);
        let bits = vectors.enumerate();
        bits.fold(0, |bits, (n, vector)| bits | u64::from(vector.pending) << n)
    }

    pub(crate) fn read_message(&self, index: usize, at: u64) -> u64 {
        self.messages[index].read(at)
    }

    pub(crate) fn write_message(&mut self, index: usize, at: u64, bits: Bits) -> Option<Effect> {
        self.messages[index].write(at, bits)
    }
}

/// No such entry in the interrupt table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoEntry;
