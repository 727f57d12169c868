//! What the driver keeps of a device, beside its registers.

use dray_device::{Function, Hardware, PciControls};
use dray_spec::registers::{Command, CommandError};

use super::{Bound, CommandStatus, Personality};

/// `IDXD_ENQCMDS_RETRIES` and `IDXD_ENQCMDS_MAX_RETRIES`.
const RETRIES: u32 = 32;
pub(super) const MAX_RETRIES: u32 = 64;
/// `WQ_DEFAULT_MAX_XFER` and `WQ_DEFAULT_MAX_BATCH`.
const MAX_TRANSFER_BYTES: u64 = 2 << 20;
const MAX_BATCH: u32 = 32;
/// `IDXD_EVL_SIZE_MIN` and `IDXD_EVL_SIZE_MAX`.
pub(super) const EVENT_LOG_ENTRIES: std::ops::RangeInclusive<u64> = 64..=65535;

/// One device that the driver finds when it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Number in `dsaN`. Linux counts all devices, IAA and DSA alike.
    pub id: u32,
    /// What the device is.
    pub hardware: Hardware,
    /// Place on PCI, as `0000:6a:01.0`.
    pub pci_address: String,
    /// Memory node; -1 for none.
    pub numa_node: i32,
    /// Shared virtual addressing: PASIDs and page requests are on.
    pub pasid_enabled: bool,
    /// DMA address of the event log, for a device that has one; without it the log stays off.
    pub event_log: Option<u64>,
}

impl Part {
    /// `dsa0`, `dsa2`, ... as on a machine with one IAA beside each DSA.
    pub fn new(id: u32, hardware: Hardware) -> Part {
        Part {
            id,
            hardware,
            pci_address: format!("0000:{:02x}:01.0", (0x6a + u64::from(id) * 5) & 0xff),
            numa_node: 0,
            pasid_enabled: true,
            event_log: None,
        }
    }

    /// The virtual device's function for this part, as PCI has set it up.
    pub(super) fn function(&self) -> Function {
        let pci = PciControls {
            pasid: self.pasid_enabled,
            page_requests: self.pasid_enabled,
            ..PciControls::default()
        };
        Function::new(self.hardware.clone(), pci)
    }

    /// The name in sysfs.
    pub fn name(&self) -> String {
        format!("dsa{}", self.id)
    }
}

/// What a work queue is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum WorkQueueType {
    #[default]
    None,
    Kernel,
    User,
}

impl WorkQueueType {
    pub(super) const NAMES: [(&'static str, WorkQueueType); 3] = [
        ("none", WorkQueueType::None),
        ("kernel", WorkQueueType::Kernel),
        ("user", WorkQueueType::User),
    ];

    pub(super) fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

/// `struct idxd_wq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) enabled: bool,
    pub(super) bound: Option<Bound>,
    pub(super) group: Option<u16>,
    pub(super) dedicated: bool,
    pub(super) size: u32,
    pub(super) priority: u8,
    pub(super) block_on_fault: bool,
    pub(super) threshold: u32,
    pub(super) kind: WorkQueueType,
    pub(super) name: Vec<u8>,
    pub(super) driver_name: Vec<u8>,
    pub(super) minor: Option<u32>,
    pub(super) max_transfer: u64,
    pub(super) max_batch: u32,
    pub(super) ats_disable: bool,
    pub(super) prs_disable: bool,
    pub(super) retries: u32,
    pub(super) operations: [u64; 4],
    pub(super) clients: Vec<super::ClientId>,
}

impl Queue {
    fn new(hardware: &Hardware) -> Queue {
        let mut queue = Queue {
            enabled: false,
            bound: None,
            group: None,
            dedicated: false,
            size: 0,
            priority: 0,
            block_on_fault: false,
            threshold: 0,
            kind: WorkQueueType::None,
            name: Vec::new(),
            driver_name: Vec::new(),
            minor: None,
            max_transfer: 0,
            max_batch: 0,
            ats_disable: false,
            prs_disable: false,
            retries: 0,
            operations: [0; 4],
            clients: Vec::new(),
        };
        queue.clear(hardware);
        queue
    }

    /// `idxd_wq_disable_cleanup`: all but size, group, `prs_disable` and `driver_name`.
    pub(super) fn clear(&mut self, hardware: &Hardware) {
        self.enabled = false;
        self.kind = WorkQueueType::None;
        self.threshold = 0;
        self.priority = 0;
        self.retries = RETRIES;
        self.dedicated = false;
        self.block_on_fault = false;
        self.ats_disable = false;
        self.name.clear();
        self.max_transfer = MAX_TRANSFER_BYTES.min(1 << hardware.gen_cap.max_transfer_shift());
        self.max_batch = MAX_BATCH.min(1 << hardware.gen_cap.max_batch_shift());
        self.operations = hardware.capabilities.op_cap;
    }
}

/// `struct idxd_group`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) use_limit: bool,
    pub(super) allowed: u32,
    pub(super) reserved: u32,
    /// -1 is the hardware's default.
    pub(super) traffic_classes: [i8; 2],
    pub(super) work_limit: u8,
    pub(super) batch_limit: u8,
}

impl Group {
    fn new(fixed_classes: bool, allowed: u32) -> Group {
        Group {
            use_limit: false,
            allowed,
            reserved: 0,
            traffic_classes: if fixed_classes { [1, 1] } else { [-1, -1] },
            work_limit: 0,
            batch_limit: 0,
        }
    }
}

/// `struct idxd_device`.
#[derive(Debug, Clone)]
pub(super) struct Device<R> {
    pub(super) part: Part,
    pub(super) registers: R,
    /// The function is bound to the driver on PCI.
    pub(super) present: bool,
    pub(super) enabled: bool,
    pub(super) bound: bool,
    pub(super) status: CommandStatus,
    pub(super) read_buffer_limit: u32,
    /// Read buffers that no group reserves (`nr_rdbufs`).
    pub(super) free_buffers: u32,
    pub(super) event_log_size: u32,
    pub(super) queues: Vec<Queue>,
    pub(super) groups: Vec<Group>,
    /// Group of each engine.
    pub(super) engines: Vec<Option<u16>>,
    /// A command, with its operand, that was issued and whose end was not seen yet.
    pub(super) unfinished: Option<(Command, u32)>,
    /// Commands whose end was seen by who issued the next one, for those who still wait for it.
    pub(super) ended: Vec<((Command, u32), CommandError)>,
    pub(super) next_client: u64,
    fixed_classes: bool,
    fresh_allowed: u32,
}

impl<R> Device<R> {
    /// What the driver knows after it has probed a function.
    pub(super) fn new(
        part: Part,
        registers: R,
        personality: Personality,
        tc_override: bool,
    ) -> Device<R> {
        let hardware = &part.hardware;
        let version = hardware.capabilities.version;
        let fixed_classes = version <= personality.fixed_traffic_classes() && !tc_override;
        let fresh_allowed = match personality.allows_all_buffers() {
            true => hardware.group_cap.read_buffers().into(),
            false => 0,
        };
        Device {
            registers,
            present: true,
            enabled: false,
            bound: false,
            status: CommandStatus::default(),
            read_buffer_limit: 0,
            free_buffers: hardware.group_cap.read_buffers().into(),
            event_log_size: 64,
            queues: vec![Queue::new(hardware); hardware.wq_cap.work_queues().into()],
            groups: vec![
                Group::new(fixed_classes, fresh_allowed);
                hardware.group_cap.groups().into()
            ],
            engines: vec![None; hardware.engine_cap.engines().into()],
            unfinished: None,
            ended: Vec::new(),
            next_client: 0,
            part,
            fixed_classes,
            fresh_allowed,
        }
    }

    /// The same device behind other registers.
    pub(super) fn with_registers<S, E>(
        self,
        replace: impl FnOnce(&Part, R) -> Result<S, E>,
    ) -> Result<Device<S>, E> {
        Ok(Device {
            registers: replace(&self.part, self.registers)?,
            part: self.part,
            present: self.present,
            enabled: self.enabled,
            bound: self.bound,
            status: self.status,
            read_buffer_limit: self.read_buffer_limit,
            free_buffers: self.free_buffers,
            event_log_size: self.event_log_size,
            queues: self.queues,
            groups: self.groups,
            engines: self.engines,
            unfinished: self.unfinished,
            ended: self.ended,
            next_client: self.next_client,
            fixed_classes: self.fixed_classes,
            fresh_allowed: self.fresh_allowed,
        })
    }

    pub(super) fn configurable(&self) -> bool {
        self.part.hardware.gen_cap.configurable()
    }

    pub(super) fn fixed_classes(&self) -> bool {
        self.fixed_classes
    }

    /// Engines of a group.
    pub(super) fn engines_of(&self, group: u16) -> usize {
        let mine = self.engines.iter().filter(|home| **home == Some(group));
        mine.count()
    }

    /// `idxd_device_clear_state`. The read buffer limit and the event log's size stay, and so does
    /// the count of free read buffers, until a reservation is written.
    pub(super) fn clear(&mut self) {
        self.enabled = false;
        if !self.configurable() {
            return;
        }
        for queue in &mut self.queues {
            queue.clear(&self.part.hardware);
            queue.size = 0;
            queue.group = None;
        }
        self.groups
            .fill(Group::new(self.fixed_classes, self.fresh_allowed));
        self.engines.fill(None);
    }

    /// `idxd_set_free_rdbufs`.
    pub(super) fn count_free_buffers(&mut self) {
        let reserved: u32 = self.groups.iter().map(|group| group.reserved).sum();
        let total = u32::from(self.part.hardware.group_cap.read_buffers());
        self.free_buffers = total.saturating_sub(reserved);
    }
}
