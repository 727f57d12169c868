//! The inter-domain permissions table: who may reach into which address space (spec 3.14, 5.6).

mod access;
mod handles;
mod window;

use dray_spec::registers::{IdBr, IdCap, IdptAccess, IdptControl};
use dray_spec::{Descriptor, Flags, Opcode, Status};

use crate::check::fits;
use crate::job::Submitter;

pub use access::{AddressSpace, Domain, Domains};
pub(crate) use handles::Handles;

/// An entry of the table, as its 32 bytes have it (spec 9.2.29).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IdptEntry {
    /// Bytes 0 to 3: usable, type, submitter.
    pub control: IdptControl,
    /// Bytes 4 to 7: permissions, window flags, access PASID.
    pub access: IdptAccess,
    /// Bytes 8 to 15.
    pub window_base: u64,
    /// Bytes 16 to 23.
    pub window_size: u64,
    /// Bytes 24 to 31: where the submitter bitmap is, for type 1.
    pub bitmap: u64,
}

impl IdptEntry {
    /// Whether reserved fields are 0, the type is supported and the window is one (spec 5.6).
    fn is_sound(&self, cap: IdCap) -> bool {
        const CONTROL: u32 = 0x0000_0ff0;
        const ACCESS: u32 = 0x0000_0fe0;
        const BITMAP: u64 = 0xfff;
        let kind = self.control.kind();
        let reserved = self.control.into_bits() & CONTROL != 0
            || self.access.into_bits() & ACCESS != 0
            || self.bitmap & BITMAP != 0;
        let other_kind = match kind {
            0 => self.bitmap != 0,
            _ => self.control.submitter_pasid() != 0,
        };
        let supported = kind < 2 && cap.types() >> kind & 1 == 1;
        let window = match self.access.window_enable() {
            true => self.window_size != 0 && fits(self.window_base, self.window_size),
            false => self.window_base | self.window_size == 0,
        };
        let mode = self.access.offset_mode();
        let mode = !mode || (self.access.window_enable() && cap.offset_mode());
        !reserved && !other_kind && supported && window && mode
    }

    /// Address of the first byte in the access address space, if the range is in the window.
    fn place(&self, address: u64, size: u64) -> Option<u64> {
        let within = |offset: u64| offset < self.window_size && size <= self.window_size - offset;
        if !self.access.window_enable() {
            return Some(address);
        }
        if self.access.offset_mode() {
            return within(address).then(|| self.window_base.wrapping_add(address));
        }
        let offset = address.checked_sub(self.window_base)?;
        within(offset).then_some(address)
    }
}

/// The table, and what says how it is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdptConfig {
    /// The entries, by handle.
    pub entries: Vec<IdptEntry>,
    /// IDBR: the address space of submitter bitmaps (spec 9.2.19).
    pub bitmaps: IdBr,
}

/// The table in use.
#[derive(Debug, Clone)]
pub(crate) struct Idpt {
    cap: IdCap,
    config: IdptConfig,
    handles: Handles,
}

impl Idpt {
    /// As many entries as IDCAP says; those that the configuration does not have are 0.
    pub(crate) fn new(id_cap: u64, mut config: IdptConfig) -> Idpt {
        let cap = IdCap::from(id_cap);
        let count = cap.entries().into();
        config.entries.resize(count, IdptEntry::default());
        Idpt {
            cap,
            config,
            handles: Handles::Indexes,
        }
    }

    /// All entries 0, and no handle out.
    pub(crate) fn clear(&mut self) {
        let handles = self.handles.cleared();
        *self = Idpt {
            handles,
            ..Idpt::new(self.cap.into_bits(), IdptConfig::default())
        };
    }

    /// Handles are given out and taken back.
    pub(crate) fn handles(&mut self) -> &mut Handles {
        &mut self.handles
    }

    /// Changes how submitter bitmaps are read.
    pub(crate) fn set_bitmaps(&mut self, bitmaps: IdBr) {
        self.config.bitmaps = bitmaps;
    }

    pub(crate) fn get(&self, index: u16) -> Option<&IdptEntry> {
        self.config.entries.get(usize::from(index))
    }

    pub(crate) fn get_mut(&mut self, index: u16) -> Option<&mut IdptEntry> {
        self.config.entries.get_mut(usize::from(index))
    }

    /// The index of the entry that a descriptor means, if there is one (spec 5.4).
    fn index(&self, handle: u16) -> Option<u16> {
        let there = usize::from(handle) < self.config.entries.len();
        (there && self.handles.are_good(handle)).then_some(handle)
    }

    /// The address spaces of an inter-domain descriptor, or the status and the handle at fault.
    pub(crate) fn domains(
        &self,
        opcode: Opcode,
        d: &Descriptor,
        submitter: Submitter,
    ) -> Result<Domains, (Status, u16)> {
        let flags = d.flags();
        // What the operation does at address 1 and at address 2.
        let (first, second) = match opcode {
            Opcode::InterDomainCopy => (Some(Need::Read), Some(Need::Write)),
            Opcode::InterDomainFill => (None, Some(Need::Write)),
            Opcode::InterDomainCompare => (Some(Need::Read), Some(Need::Read)),
            _ => (Some(Need::Read), None),
        };
        let size = d.size.into();
        let place = |flag, need: Option<Need>, handle, address| match need {
            Some(need) if flags.contains(flag) => self
                .domain(handle, need, submitter, address, size)
                .map(Some),
            _ => Ok(None),
        };
        let source = Flags::INTER_DOMAIN_ALTERNATE_SOURCE;
        let destination = Flags::INTER_DOMAIN_ALTERNATE_DESTINATION;
        Ok(Domains {
            first: place(source, first, d.source_handle(), d.address1)?,
            second: place(destination, second, d.destination_handle(), d.address2)?,
        })
    }

    fn domain(
        &self,
        handle: u16,
        need: Need,
        submitter: Submitter,
        address: u64,
        size: u64,
    ) -> Result<Domain, (Status, u16)> {
        let invalid = (Status::IDPT_HANDLE, handle);
        let entry = self.index(handle).and_then(|index| self.get(index));
        let entry = entry.ok_or(invalid)?;
        let single = entry.control.kind() == 0;
        let refused = single && entry.control.submitter_pasid() != submitter.pasid;
        if !entry.control.usable() || !entry.is_sound(self.cap) || refused {
            return Err(invalid);
        }
        let permitted = match need {
            Need::Read => entry.access.read(),
            Need::Write => entry.access.write(),
        };
        if !permitted {
            return Err((Status::IDPT_PERMISSION, handle));
        }
        let place = entry.place(address, size);
        Ok(Domain {
            handle,
            address: place.ok_or((Status::IDPT_WINDOW, handle))?,
            space: AddressSpace {
                pasid: Some(entry.access.access_pasid()),
                privileged: entry.access.keep_privilege() && submitter.privileged,
            },
            hidden: entry.access.offset_mode(),
            submitter_bit: (!single).then(|| self.submitter_bit(entry, submitter)),
        })
    }

    /// Where a bitmap says whether the submitter may use the entry (spec 3.14.2).
    fn submitter_bit(&self, entry: &IdptEntry, submitter: Submitter) -> (AddressSpace, u64, u8) {
        let bitmaps = self.config.bitmaps;
        let space = AddressSpace {
            pasid: bitmaps.pasid_enable().then_some(bitmaps.pasid()),
            privileged: bitmaps.privileged(),
        };
        let byte = entry.bitmap.wrapping_add(u64::from(submitter.pasid >> 3));
        (space, byte, 1 << (submitter.pasid & 7))
    }
}

/// What an operand needs of its entry.
#[derive(Debug, Clone, Copy)]
enum Need {
    Read,
    Write,
}

#[cfg(test)]
mod tests;
