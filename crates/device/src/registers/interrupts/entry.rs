//! One entry of an interrupt table.

use dray_spec::registers::{ImsControl, MsixPermission};

use crate::Effect;
use crate::registers::bits::Bits;

/// Where messages go that software has given no address (spec 9.2.28).
const MESSAGE_ADDRESS: u64 = 0xfee0_0000;

/// An entry of the MSI-X table and of the permissions beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vector {
    pub(super) address: u64,
    pub(super) data: u32,
    pub(super) masked: bool,
    pub(super) pending: bool,
    pub(super) permission: MsixPermission,
    pub(super) has_handle: bool,
}

impl Default for Vector {
    fn default() -> Vector {
        Vector {
            address: 0,
            data: 0,
            masked: true,
            pending: false,
            permission: MsixPermission::new(),
            has_handle: false,
        }
    }
}

impl Vector {
    /// What a Reset Device command leaves.
    pub(super) fn kept(self) -> Vector {
        Vector {
            address: self.address,
            data: self.data,
            masked: self.masked,
            ..Vector::default()
        }
    }

    pub(super) fn read(&self, at: u64) -> u64 {
        match at {
            0 => self.address,
            _ => u64::from(self.data) | u64::from(self.masked) << 32,
        }
    }

    /// True if an interrupt that was pending is due now.
    pub(super) fn write(&mut self, at: u64, bits: Bits) -> bool {
        if at == 0 {
            bits.store(&mut self.address, !3);
            return false;
        }
        let mut control = self.masked.into();
        bits.store32(&mut self.data, 0, u32::MAX);
        bits.store32(&mut control, 4, 1);
        self.masked = control == 1;
        !self.masked && std::mem::take(&mut self.pending)
    }
}

/// An entry of the interrupt message storage (spec 9.2.28).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    address: u64,
    data: u32,
    pub(super) control: ImsControl,
    pub(super) has_handle: bool,
}

impl Default for Message {
    fn default() -> Message {
        Message {
            address: MESSAGE_ADDRESS,
            data: 0,
            control: ImsControl::new().with_mask(true),
            has_handle: false,
        }
    }
}

impl Message {
    pub(super) fn raise(&mut self) -> Option<Effect> {
        self.control.set_pending(self.control.mask());
        (!self.control.mask()).then_some(Effect::Message {
            address: self.address,
            data: self.data,
        })
    }

    pub(super) fn read(&self, at: u64) -> u64 {
        match at {
            0 => self.address,
            _ => u64::from(self.data) | u64::from(self.control.into_bits()) << 32,
        }
    }

    /// The interrupt that was pending, if it is due now.
    pub(super) fn write(&mut self, at: u64, bits: Bits) -> Option<Effect> {
        if at == 0 {
            let mut address = self.address;
            bits.store(&mut address, !3);
            // Anything but an interrupt address is not taken.
            if address >> 20 == MESSAGE_ADDRESS >> 20 {
                self.address = address;
            }
            return None;
        }
        let mut control = self.control.into_bits();
        bits.store32(&mut self.data, 0, u32::MAX);
        bits.store32(&mut control, 4, 0xffff_f00d);
        self.control = ImsControl::from_bits(control);
        match self.control.pending() && !self.control.mask() {
            true => self.raise(),
            false => None,
        }
    }
}
