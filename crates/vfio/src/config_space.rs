//! PCI configuration space of the function (spec appendix C).

use dray_device::{Layout, PciConfig, PciControls};

/// Bytes of the configuration space of a PCI Express function.
pub(crate) const CONFIG_BYTES: usize = 4096;

/// What the function says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
}

impl Default for Identity {
    /// DSA of the fourth and fifth generation of Xeon.
    fn default() -> Identity {
        Identity {
            vendor: 0x8086,
            device: 0x0b25,
        }
    }
}

/// Offsets. The capabilities are where the specification's example has them.
mod at {
    pub(super) const COMMAND: usize = 0x04;
    pub(super) const STATUS: usize = 0x06;
    pub(super) const CLASS: usize = 0x09;
    pub(super) const BAR0: usize = 0x10;
    pub(super) const BAR2: usize = 0x18;
    pub(super) const SUBSYSTEM: usize = 0x2c;
    pub(super) const CAPABILITIES: usize = 0x34;
    pub(super) const INTERRUPT_LINE: usize = 0x3c;
    pub(super) const EXPRESS: usize = 0x40;
    pub(super) const DEVICE_CONTROL: usize = EXPRESS + 8;
    pub(super) const MSIX: usize = 0x80;
    pub(super) const POWER: usize = 0x90;
    pub(super) const VENDOR_SPECIFIC: usize = 0x100;
    pub(super) const REQUESTER: usize = VENDOR_SPECIFIC + 0xc;
    pub(super) const ROOT_TABLE: usize = VENDOR_SPECIFIC + 0x10;
    pub(super) const ATS: usize = 0x220;
    pub(super) const PASID: usize = 0x230;
}

/// What a write to configuration space did, beyond the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Written {
    /// Function level reset was initiated.
    pub(crate) reset: bool,
    /// A control that the device depends on has changed.
    pub(crate) controls: bool,
    /// The guest has said where its root table is.
    pub(crate) root: bool,
}

/// Configuration space: its bytes, and which bits software can write.
#[derive(Debug, Clone)]
pub(crate) struct ConfigSpace {
    bytes: Vec<u8>,
    writable: Vec<u8>,
    initial: Vec<u8>,
}

impl ConfigSpace {
    /// That of a function with these BARs and so many MSI-X vectors.
    pub(crate) fn new(
        identity: Identity,
        layout: &Layout,
        bar_bytes: [u64; 2],
        vectors: u16,
    ) -> ConfigSpace {
        let mut space = ConfigSpace {
            bytes: vec![0; CONFIG_BYTES],
            writable: vec![0; CONFIG_BYTES],
            initial: Vec::new(),
        };
        space.put(0, &identity.vendor.to_le_bytes());
        space.put(2, &identity.device.to_le_bytes());
        // Memory space, bus master, parity, SERR, INTx disable.
        space.let_write(at::COMMAND, &0x0546_u16.to_le_bytes());
        // There is a list of capabilities.
        space.put(at::STATUS, &0x0010_u16.to_le_bytes());
        // Class 08 80 00: a system peripheral.
        space.put(at::CLASS, &[0x00, 0x80, 0x08]);
        for (at, bytes) in [at::BAR0, at::BAR2].into_iter().zip(bar_bytes) {
            // 64 bits wide, prefetchable.
            space.put(at, &0xc_u32.to_le_bytes());
            space.let_write(at, &(!(bytes - 1)).to_le_bytes());
        }
        space.put(at::SUBSYSTEM, &identity.vendor.to_le_bytes());
        space.put(at::CAPABILITIES, &[at::EXPRESS as u8]);
        space.let_write(at::INTERRUPT_LINE, &[0xff]);
        space.express();
        space.msix(layout, vectors);
        // Version 3; no reset from D3hot to D0.
        space.put(at::POWER, &[0x01, 0, 0x03, 0, 0x08]);
        space.let_write(at::POWER + 4, &[0x03]);
        space.vendor_specific();
        // ATS: pages are aligned, invalidation queue of 32; enable and smallest translation unit.
        space.extended(at::ATS, 0x0f, 1, at::PASID);
        space.put(at::ATS + 4, &0x20_u16.to_le_bytes());
        space.let_write(at::ATS + 6, &0x801f_u16.to_le_bytes());
        // PASID: 20 bits, privileged mode.
        space.extended(at::PASID, 0x1b, 1, 0);
        space.put(at::PASID + 4, &(20 << 8 | 1_u16 << 2).to_le_bytes());
        space.let_write(at::PASID + 6, &0x0005_u16.to_le_bytes());
        space.initial.clone_from(&space.bytes);
        space
    }

    fn express(&mut self) {
        let at = at::EXPRESS;
        // Version 2 of the capability, root complex integrated endpoint.
        self.put(at, &[0x10, at::MSIX as u8, 0x92, 0x00]);
        // Extended tags, role-based errors, function level reset.
        self.put(at + 4, &(1_u32 << 5 | 1 << 15 | 1 << 28).to_le_bytes());
        self.let_write(at::DEVICE_CONTROL, &0x7fff_u16.to_le_bytes());
        // Completion timeout disable, end-to-end TLP prefixes, two of them: without these Linux leaves
        // PASID off.
        self.put(at + 0x24, &(0x10_u32 | 1 << 21 | 2 << 22).to_le_bytes());
        self.let_write(at + 0x28, &0x0410_u16.to_le_bytes());
    }

    fn msix(&mut self, layout: &Layout, vectors: u16) {
        let at = at::MSIX;
        self.put(at, &[0x11, at::POWER as u8]);
        self.put(at + 2, &(vectors - 1).to_le_bytes());
        self.let_write(at + 2, &0xc000_u16.to_le_bytes());
        self.put(at + 4, &(layout.msix_table() as u32).to_le_bytes());
        self.put(at + 8, &(layout.msix_pending() as u32).to_le_bytes());
    }

    /// Where a guest's helper module says how PASIDs are translated: `dray`, then the requester (bits
    /// 15:0, bit 31: valid) and RTADDR. A function on a bus would see that in the IOMMU; over vfio-user
    /// it does not.
    fn vendor_specific(&mut self) {
        let at = at::VENDOR_SPECIFIC;
        self.extended(at, 0x0b, 1, at::ATS);
        // ID of our own, revision 1, 0x18 bytes.
        self.put(at + 4, &(0xdaa7_u32 | 1 << 16 | 0x18 << 20).to_le_bytes());
        self.put(at + 8, b"dray");
        self.let_write(at::REQUESTER, &0x8000_ffff_u32.to_le_bytes());
        self.let_write(at::ROOT_TABLE, &u64::MAX.to_le_bytes());
    }

    fn extended(&mut self, at: usize, id: u32, version: u32, next: usize) {
        let header = id | version << 16 | (next as u32) << 20;
        self.put(at, &header.to_le_bytes());
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn let_write(&mut self, at: usize, mask: &[u8]) {
        self.writable[at..at + mask.len()].copy_from_slice(mask);
    }

    /// Reads; beyond the end the bytes are 0.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        into.fill(0);
        let there = usize::try_from(offset)
            .ok()
            .and_then(|at| self.bytes.get(at..));
        for (byte, value) in into.iter_mut().zip(there.unwrap_or_default()) {
            *byte = *value;
        }
    }

    /// Writes what can be written.
    pub(crate) fn write(&mut self, offset: u64, from: &[u8]) -> Written {
        let before = (self.controls(), self.root());
        let mut reset = false;
        for (at, value) in (offset..).zip(from) {
            let Ok(at) = usize::try_from(at) else { break };
            let Some(mask) = self.writable.get(at) else {
                break;
            };
            self.bytes[at] = self.bytes[at] & !mask | value & mask;
            reset |= at == at::DEVICE_CONTROL + 1 && value & 0x80 != 0;
        }
        Written {
            reset,
            controls: before.0 != self.controls(),
            root: before.1 != self.root(),
        }
    }

    /// Function level reset: as after power-on, but for what the guest has said of its IOMMU, which is
    /// no state of the function.
    pub(crate) fn reset(&mut self) {
        let kept = at::REQUESTER..at::ROOT_TABLE + 8;
        let said = self.bytes[kept.clone()].to_vec();
        self.bytes.clone_from(&self.initial);
        self.bytes[kept].copy_from_slice(&said);
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn dword(&self, at: usize) -> u32 {
        u32::from(self.word(at)) | u32::from(self.word(at + 2)) << 16
    }

    /// What the device depends on. Page requests have no way to the guest.
    pub(crate) fn controls(&self) -> PciControls {
        let pasid = self.word(at::PASID + 6);
        PciControls {
            bus_master: self.word(at::COMMAND) & 1 << 2 != 0,
            pasid: pasid & 1 != 0,
            page_requests: false,
            page_request_allocation: 0,
            page_request_capacity: 0,
            platform_ats: None,
            config: PciConfig {
                ats: self.word(at::ATS + 6) & 1 << 15 != 0,
                privileged_mode: pasid & 5 == 5,
                ..PciConfig::default()
            },
        }
    }

    /// RTADDR and requester, as the guest's helper module has written them.
    pub(crate) fn root(&self) -> (u64, u32) {
        let table = u64::from(self.dword(at::ROOT_TABLE));
        let upper = u64::from(self.dword(at::ROOT_TABLE + 4)) << 32;
        (upper | table, self.dword(at::REQUESTER))
    }
}
