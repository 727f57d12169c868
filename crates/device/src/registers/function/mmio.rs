//! Reads and writes of BAR0.

use super::Function;
use crate::Effect;
use crate::registers::bits::Bits;
use crate::registers::domains;
use crate::registers::file::Written;
use crate::registers::layout::Spot;

/// A base address register (spec 9.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bar {
    /// BAR0: registers.
    Registers,
    /// BAR2: portals.
    Portals,
}

impl Function {
    /// Bytes of a BAR, a power of two.
    pub fn bar_bytes(&self, bar: Bar) -> u64 {
        use dray_spec::registers::PortalAddress;
        match bar {
            Bar::Registers => self.layout().bar0_bytes(),
            Bar::Portals => PortalAddress::bar_bytes(self.hardware().queues() as u16),
        }
    }

    /// Software reads. Registers are read with 1, 2, 4 or 8 bytes, aligned; of anything else, of what
    /// is not there and of portals the bytes are 0 (spec 9.2, 9.3).
    pub fn read(&self, bar: Bar, offset: u64, bytes: &mut [u8]) {
        bytes.fill(0);
        if bar == Bar::Registers && is_access(offset, bytes.len()) {
            let qword = self.read_qword(offset & !7).to_le_bytes();
            let at = (offset % 8) as usize;
            let end = at + bytes.len();
            bytes.copy_from_slice(&qword[at..end]);
        }
    }

    /// Reads 4 bytes of BAR0.
    pub fn read32(&self, offset: u64) -> u32 {
        let mut bytes = [0; 4];
        self.read(Bar::Registers, offset, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    /// Reads 8 bytes of BAR0.
    pub fn read64(&self, offset: u64) -> u64 {
        let mut bytes = [0; 8];
        self.read(Bar::Registers, offset, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Software writes, posted. Registers take 1, 2, 4 or 8 bytes, aligned; portals 64, aligned.
    /// Other writes are ignored, and so are bits that cannot be written, or not now.
    pub fn write(&mut self, bar: Bar, offset: u64, bytes: &[u8], effects: &mut Vec<Effect>) {
        match bar {
            Bar::Portals => {
                if let Ok(bytes) = bytes.try_into() {
                    self.post(offset, bytes, effects);
                }
            }
            Bar::Registers if is_access(offset, bytes.len()) => {
                let at = (offset % 8) as usize;
                let (mut value, mut mask) = ([0; 8], [0; 8]);
                value[at..at + bytes.len()].copy_from_slice(bytes);
                mask[at..at + bytes.len()].fill(0xff);
                let bits = Bits {
                    value: u64::from_le_bytes(value),
                    mask: u64::from_le_bytes(mask),
                };
                self.write_qword(offset & !7, bits, effects);
            }
            Bar::Registers => {}
        }
    }

    /// Writes 4 bytes of BAR0.
    pub fn write32(&mut self, offset: u64, value: u32, effects: &mut Vec<Effect>) {
        self.write(Bar::Registers, offset, &value.to_le_bytes(), effects);
    }

    /// Writes 8 bytes of BAR0.
    pub fn write64(&mut self, offset: u64, value: u64, effects: &mut Vec<Effect>) {
        self.write(Bar::Registers, offset, &value.to_le_bytes(), effects);
    }

    fn read_qword(&self, address: u64) -> u64 {
        let Some(interrupts) = self.device.interrupts_ref() else {
            return 0;
        };
        match self.file.layout.find(address) {
            Spot::Permission(index, _) => interrupts.read_permission(index),
            Spot::Vector(index, at) => interrupts.read_vector(index, at),
            Spot::Pending(qword) => interrupts.read_pending(qword),
            Spot::Message(index, at) => interrupts.read_message(index, at),
            Spot::Domain(index, at) => {
                let entry = self.device.idpt_entry(index as u16);
                entry.map_or(0, |entry| domains::read(entry, at))
            }
            _ => {
                let occupancy = |wq| self.device.occupancy(wq as u16).unwrap_or(0);
                self.file.read(address, occupancy)
            }
        }
    }

    fn write_qword(&mut self, address: u64, bits: Bits, effects: &mut Vec<Effect>) {
        let spot = self.file.layout.find(address);
        if let Some(interrupts) = self.device.interrupts() {
            match spot {
                Spot::Permission(index, _) => interrupts.write_permission(index, bits),
                Spot::Vector(index, at) => effects.extend(interrupts.write_vector(index, at, bits)),
                Spot::Message(index, at) => {
                    effects.extend(interrupts.write_message(index, at, bits));
                }
                _ => {}
            }
        }
        if let Spot::Domain(index, at) = spot
            && let Some(mut entry) = self.device.idpt_entry(index as u16).copied()
        {
            domains::write(&mut entry, at, bits);
            self.device.set_idpt_entry(index as u16, entry);
        }
        match self.file.write(address, bits) {
            Written::Register => {}
            Written::Command(value) => self.issue(value.into(), effects),
            Written::Threshold(wq) => {
                let threshold = self.file.queues[wq].threshold;
                self.device.set_threshold(wq as u16, threshold);
            }
            Written::Occupancy(wq) => self.check_occupancy(wq, effects),
            Written::EventLogHead => {
                if let Some(interrupts) = self.device.interrupts() {
                    self.file
                        .write_backlog(&mut self.backlog, interrupts, effects);
                }
                self.settle(effects);
            }
        }
    }
}

fn is_access(offset: u64, bytes: usize) -> bool {
    matches!(bytes, 1 | 2 | 4 | 8) && offset.is_multiple_of(bytes as u64)
}
