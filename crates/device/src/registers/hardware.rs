//! What a part is: its capability registers and the size of its interrupt table.

use dray_spec::registers::{Command, CommandRegister, DsaCap0};
use dray_spec::{EngineCap, GenCap, GroupCap, WqCap};

use crate::Capabilities;

/// What a device can do, register by register (spec 9.2.1 to 9.2.6, 9.2.14, 9.2.30).
///
/// [`Hardware::new`] derives what [`Capabilities`] leave open; every field can be changed before a
/// [`Function`](super::Function) is made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hardware {
    /// VERSION, OPCAP, IDCAP and what the other registers are derived from.
    pub capabilities: Capabilities,
    /// GENCAP.
    pub gen_cap: GenCap,
    /// WQCAP.
    pub wq_cap: WqCap,
    /// GRPCAP.
    pub group_cap: GroupCap,
    /// ENGCAP.
    pub engine_cap: EngineCap,
    /// CMDCAP. Without GENCAP bit 4 the register is not there, and commands 1 to 12 are.
    pub command_cap: u64,
    /// DSACAP0 to 2, which are there from version 3 on.
    pub dsa_cap: [u64; 3],
    /// Entries of the MSI-X table, 1 to 2048: one for events of the device, and those that
    /// completions use.
    pub interrupt_vectors: u16,
    /// Interrupt handles that may be out at a time, where they are requested.
    pub interrupt_handles: u16,
    /// The MSI-X table of BAR0 masks vectors. A door whose other side keeps that table itself (vfio)
    /// clears this, and gets every vector as it comes.
    pub masks_vectors: bool,
    /// No driver: every interrupt handle is good and goes to the runner as it is, and errors come as
    /// effects, beside their registers.
    pub without_driver: bool,
}

impl Hardware {
    /// A part with these capabilities. What they do not say is as on a fourth generation Xeon for
    /// version 1; version 2 has per-queue operations, ATS and PRS disable and limits of work in
    /// progress.
    pub fn new(capabilities: Capabilities) -> Hardware {
        let version_2 = capabilities.version >= 0x200;
        let narrow = |n: u16| u8::try_from(n).unwrap_or(u8::MAX);
        let gen_cap = GenCap::from(capabilities.gen_cap)
            .with_max_transfer_shift(shift(capabilities.max_transfer_size, 31))
            .with_max_batch_shift(shift(capabilities.max_batch_size.into(), 15));
        let wq_cap = WqCap::new()
            .with_total_entries(capabilities.work_queue_size)
            .with_work_queues(narrow(capabilities.max_work_queues))
            .with_config_shift(u8::from(version_2))
            .with_shared_mode(true)
            .with_dedicated_mode(true)
            .with_ats_disable(version_2)
            .with_priority(true)
            .with_occupancy(true)
            .with_occupancy_interrupt(true)
            .with_operation_config(version_2)
            .with_prs_disable(version_2);
        let group_cap = GroupCap::new()
            .with_groups(narrow(capabilities.max_groups))
            .with_read_buffers(narrow(capabilities.max_read_buffers))
            .with_read_buffer_controls(true)
            .with_global_read_buffer_limit(true)
            .with_in_progress_limits(version_2);
        let engines = capabilities.max_engines.min(64);
        // As in the example of spec 7.5.8. An eighth of it, the lowest limit that a group can set, is
        // more than engines in real time have in progress by default.
        let (work, batches) = if version_2 { (128, 16) } else { (0, 0) };
        Hardware {
            gen_cap,
            wq_cap,
            group_cap,
            engine_cap: EngineCap::new()
                .with_engines(narrow(engines))
                .with_max_work_descriptors(work)
                .with_max_batch_descriptors(batches),
            command_cap: match gen_cap.command_capability() {
                true => {
                    Command::DEFAULT
                        | Command::RequestInterruptHandle.bit()
                        | Command::ReleaseInterruptHandle.bit()
                }
                false => 0,
            },
            dsa_cap: [0; 3],
            interrupt_vectors: 1 + capabilities.max_work_queues.min(2047),
            interrupt_handles: u16::MAX,
            masks_vectors: true,
            without_driver: false,
            capabilities,
        }
    }

    /// Number of work queues.
    pub(crate) fn queues(&self) -> usize {
        self.wq_cap.work_queues().into()
    }

    /// Number of groups.
    pub(crate) fn groups(&self) -> usize {
        self.group_cap.groups().into()
    }

    /// Bits of the engines that there are.
    pub(crate) fn engine_mask(&self) -> u64 {
        match self.engine_cap.engines() {
            engines @ 0..64 => (1 << engines) - 1,
            _ => u64::MAX,
        }
    }

    /// Commands that there are, a bit each.
    pub(crate) fn commands(&self) -> u64 {
        match self.gen_cap.command_capability() {
            true => self.command_cap,
            false => Command::DEFAULT,
        }
    }

    /// The command that a register value issues, if there is such a command here.
    pub(crate) fn command(&self, register: CommandRegister) -> Option<Command> {
        Command::from_code(register.code()).filter(|c| self.commands() & c.bit() != 0)
    }

    /// Whether interrupts are asked for by handles that a command has given out (spec 3.7).
    pub(crate) fn uses_handles(&self) -> bool {
        self.commands() & Command::RequestInterruptHandle.bit() != 0
    }

    /// Whether entries of the inter-domain permissions table are named by handles that a command has
    /// given out (spec 3.14.1).
    pub(crate) fn uses_domain_handles(&self) -> bool {
        self.commands() & Command::RequestIdptHandle.bit() != 0
    }

    /// Base-2 logarithm of the longest scatter-gather list; 0 before version 3.
    pub(crate) fn max_scatter_gather_shift(&self) -> u8 {
        match self.capabilities.version >= 0x300 {
            true => DsaCap0::from(self.dsa_cap[0]).max_scatter_gather_shift(),
            false => 0,
        }
    }

    pub(crate) fn has_event_log(&self) -> bool {
        self.gen_cap.event_log_entry() != 0
    }
}

/// Base-2 logarithm of a limit, rounded down, as far as its field goes.
fn shift(limit: u64, most: u8) -> u8 {
    (limit.max(1).ilog2() as u8).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_follow_the_capabilities() {
        let one = Hardware::new(Capabilities::sapphire_rapids());
        assert_eq!(one.gen_cap.into_bits(), 0x40_915f_0107);
        assert_eq!(one.group_cap.into_bits(), 0x3_6004);
        assert_eq!(one.engine_cap.into_bits(), 4);
        assert_eq!(one.wq_cap.into_bits(), 0x3b_0000_0008_0080);
        assert_eq!(one.wq_cap.config_stride_bytes(), 32);
        assert_eq!((one.commands(), one.uses_handles()), (0x1ffe, false));
        assert_eq!((one.interrupt_vectors, one.engine_mask()), (9, 0xf));
    }
}
