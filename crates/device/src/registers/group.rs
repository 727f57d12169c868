//! GRPCFG as stored.

use dray_spec::registers::{GroupFlags, GroupRegister};

use super::Hardware;
use super::bits::Bits;

/// One group's registers (spec 9.2.23).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupRegisters {
    pub(crate) work_queues: [u64; 4],
    pub(crate) engines: u64,
    pub(crate) flags: GroupFlags,
}

impl GroupRegisters {
    /// Power-on values (spec Table 9-3).
    pub(crate) fn new(hardware: &Hardware) -> GroupRegisters {
        let allowed = hardware.group_cap.read_buffers();
        GroupRegisters {
            work_queues: [0; 4],
            engines: 0,
            flags: GroupFlags::new().with_read_buffers_allowed(allowed),
        }
    }

    pub(crate) fn has_queue(&self, wq: usize) -> bool {
        self.work_queues[wq / 64 % 4] >> (wq % 64) & 1 == 1
    }

    pub(crate) fn read(&self, at: u64) -> u64 {
        match at {
            GroupRegister::WORK_QUEUES..GroupRegister::ENGINES => self.work_queues[at as usize / 8],
            GroupRegister::ENGINES => self.engines,
            GroupRegister::FLAGS => self.flags.into_bits(),
            _ => 0,
        }
    }

    /// Writes while the device is disabled. Bits of queues and engines that are not there are kept,
    /// for Enable Device to refuse.
    pub(crate) fn write(&mut self, at: u64, bits: Bits, hardware: &Hardware) {
        match at {
            GroupRegister::WORK_QUEUES..GroupRegister::ENGINES => {
                bits.store(&mut self.work_queues[at as usize / 8], u64::MAX);
            }
            GroupRegister::ENGINES => bits.store(&mut self.engines, u64::MAX),
            GroupRegister::FLAGS => {
                let mut flags = self.flags.into_bits();
                bits.store(&mut flags, Self::writable(hardware).into_bits());
                self.flags = GroupFlags::from_bits(flags);
            }
            _ => {}
        }
    }

    /// Flags that are there. The global limit's bit and the bandwidth limits are always, and refused
    /// by Enable Device where there is no such thing (spec 5.1).
    fn writable(hardware: &Hardware) -> GroupFlags {
        let cap = hardware.group_cap;
        let flags = GroupFlags::new()
            .with_traffic_class_a(7)
            .with_traffic_class_b(7)
            .with_use_global_read_buffer_limit(true)
            .with_read_bandwidth_limit(15)
            .with_write_bandwidth_limit(15);
        let flags = match cap.read_buffer_controls() {
            true => flags
                .with_read_buffers_reserved(u8::MAX)
                .with_read_buffers_allowed(u8::MAX),
            false => flags,
        };
        match cap.in_progress_limits() {
            true => flags
                .with_work_descriptor_limit(3)
                .with_batch_descriptor_limit(3),
            false => flags,
        }
    }
}
