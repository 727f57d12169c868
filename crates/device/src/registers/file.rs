//! The register file: what software reads, and which writes change it.

mod write;

use dray_spec::registers::{
    self as at, CommandStatus, DeviceState, EvlCfg, EvlStatus, GenCfg, GenCtrl, GenSts, IntCause,
    ResetType, SoftwareErrorRegister,
};
use zerocopy::transmute_ref;

use super::Hardware;
use super::group::GroupRegisters;
use super::layout::{Layout, Spot};
use super::queue::QueueRegisters;

pub(crate) use write::Written;

/// Registers of BAR0 but for the interrupt tables and the inter-domain permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) hardware: Hardware,
    pub(crate) layout: Layout,
    pub(crate) state: DeviceState,
    pub(crate) reset_type: ResetType,
    pub(crate) gen_cfg: GenCfg,
    pub(crate) gen_ctrl: GenCtrl,
    pub(crate) cause: IntCause,
    pub(crate) command_status: CommandStatus,
    pub(crate) command_parameter: u64,
    pub(crate) software_error: SoftwareErrorRegister,
    pub(crate) event_log: EvlCfg,
    pub(crate) event_status: EvlStatus,
    /// IDBR.
    pub(crate) bitmap: u32,
    pub(crate) groups: Vec<GroupRegisters>,
    pub(crate) queues: Vec<QueueRegisters>,
    /// The occupancy interrupt of some queue is enabled.
    pub(crate) watches_occupancy: bool,
    /// Of a device that is not configurable: what these registers are after a reset.
    fixed: Option<Box<Fixed>>,
}

/// A configuration that software does not make (GENCAP bit 31 is 0).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fixed {
    gen_cfg: GenCfg,
    groups: Vec<GroupRegisters>,
    queues: Vec<QueueRegisters>,
}

impl File {
    /// Power-on values (spec Table 9-3).
    pub(crate) fn new(hardware: Hardware) -> File {
        let limit = match hardware.group_cap.global_read_buffer_limit() {
            true => hardware.group_cap.read_buffers(),
            false => 0,
        };
        File {
            layout: Layout::new(&hardware),
            state: DeviceState::Disabled,
            reset_type: ResetType::Command,
            gen_cfg: GenCfg::new().with_global_read_buffer_limit(limit),
            gen_ctrl: GenCtrl::new(),
            cause: IntCause::new(),
            command_status: CommandStatus::new(),
            command_parameter: 0,
            software_error: SoftwareErrorRegister::default(),
            event_log: EvlCfg::new(),
            event_status: EvlStatus::new(),
            bitmap: 0,
            groups: vec![GroupRegisters::new(&hardware); hardware.groups()],
            queues: vec![QueueRegisters::new(&hardware); hardware.queues()],
            watches_occupancy: false,
            fixed: None,
            hardware,
        }
    }

    /// Reset Device: power-on values but for command status, software error and event log status
    /// (spec 3.15).
    pub(crate) fn reset(&mut self) {
        let initial = self.initial();
        let old = std::mem::replace(self, initial);
        self.command_status = old.command_status;
        self.software_error = old.software_error;
        self.event_status = old.event_status;
    }

    /// Power-on values of this device, which has come with a configuration if it is not configurable.
    pub(crate) fn initial(&self) -> File {
        let mut file = File::new(self.hardware.clone());
        if let Some(fixed) = &self.fixed {
            file.gen_cfg = fixed.gen_cfg;
            file.groups.clone_from(&fixed.groups);
            file.queues.clone_from(&fixed.queues);
            file.fixed.clone_from(&self.fixed);
        }
        file
    }

    /// From here on, the configuration is the one with which the device has come.
    pub(crate) fn fix(&mut self, mode_support: bool) {
        self.hardware.gen_cap.set_configurable(false);
        for queue in &mut self.queues {
            queue.mode_support = mode_support;
        }
        self.fixed = Some(Box::new(Fixed {
            gen_cfg: self.gen_cfg,
            groups: self.groups.clone(),
            queues: self.queues.clone(),
        }));
    }

    /// Queues may have become such whose occupancy matters, or not.
    pub(crate) fn watch_occupancy(&mut self) {
        let watches = |queue: &QueueRegisters| queue.occupancy.interrupt_enable();
        self.watches_occupancy = self.queues.iter().any(watches);
    }

    /// Reset WQ gives the registers of a queue their initial values, but for its size.
    pub(crate) fn reset_queue(&mut self, wq: usize) {
        let initial = match &self.fixed {
            Some(fixed) => fixed.queues[wq].clone(),
            None => QueueRegisters::new(&self.hardware),
        };
        self.queues[wq].reset(initial);
        self.watch_occupancy();
    }

    /// The aligned qword at an address. `occupancy` is asked for that of a work queue.
    pub(crate) fn read(&self, address: u64, occupancy: impl Fn(usize) -> u16) -> u64 {
        match self.layout.find(address) {
            Spot::Group(index, at) => self.groups[index].read(at),
            Spot::Queue(index, at) => self.queues[index].read(at, occupancy(index), &self.hardware),
            _ => self.read_fixed(address),
        }
    }

    fn read_fixed(&self, address: u64) -> u64 {
        let hardware = &self.hardware;
        let if_so = |condition: bool, value: u64| if condition { value } else { 0 };
        let offsets = self.layout.offsets().into_bits();
        let event_log = self.event_log.into_bits();
        match address {
            at::VERSION => hardware.capabilities.version.into(),
            at::GENCAP => hardware.gen_cap.into_bits(),
            at::WQCAP => hardware.wq_cap.into_bits(),
            at::GRPCAP => hardware.group_cap.into_bits(),
            at::ENGCAP => hardware.engine_cap.into_bits(),
            at::OPCAP..at::OFFSETS => {
                hardware.capabilities.op_cap[(address - at::OPCAP) as usize / 8]
            }
            at::OFFSETS => offsets as u64,
            0x68 => (offsets >> 64) as u64,
            at::GENCFG => self.gen_cfg.into_bits().into(),
            at::GENCTRL => self.gen_ctrl.into_bits().into(),
            at::GENSTS => {
                let status = GenSts::new()
                    .with_state(self.state)
                    .with_reset_type(self.reset_type);
                status.into_bits().into()
            }
            at::INTCAUSE => self.cause.into_bits().into(),
            at::CMDSTATUS => self.command_status.into_bits().into(),
            at::CMDCAP => if_so(hardware.gen_cap.command_capability(), hardware.command_cap),
            at::SWERROR..at::EVLCFG => {
                let words: &[u64; 4] = transmute_ref!(&self.software_error);
                words[(address - at::SWERROR) as usize / 8]
            }
            at::EVLCFG => event_log as u64,
            0xe8 => (event_log >> 64) as u64,
            at::EVLSTATUS => self.event_status.into_bits(),
            at::IDCAP => if_so(
                hardware.gen_cap.inter_domain(),
                hardware.capabilities.id_cap,
            ),
            at::IDBR => self.bitmap.into(),
            at::DSACAP0..=at::DSACAP2 => {
                let word = hardware.dsa_cap[(address - at::DSACAP0) as usize / 8];
                if_so(hardware.capabilities.version >= 0x300, word)
            }
            at::CMDPARAM => self.command_parameter,
            _ => 0,
        }
    }
}
