//! The checks of Enable Device (spec 5.1) and of Enable WQ (spec 5.2).
//!
//! Hardware may make them in any order; here it is that of the codes.

use dray_spec::OpCap;
use dray_spec::registers::{CommandError, DeviceState, GroupFlags, IdBr, WorkQueueState};

use super::File;
use super::group::GroupRegisters;
use super::interrupts::{Interrupts, Source};
use super::pci::PciControls;
use super::queue::QueueRegisters;

type Checked = Result<(), CommandError>;

fn refuse(bad: bool, error: CommandError) -> Checked {
    match bad {
        true => Err(error),
        false => Ok(()),
    }
}

/// Whether the device can be enabled as it is configured.
pub(crate) fn check_device(file: &File, pci: &PciControls) -> Checked {
    let disabled = file.state == DeviceState::Disabled;
    refuse(!disabled, CommandError::DEVICE_NOT_DISABLED)?;
    refuse(!pci.bus_master, CommandError::BUS_MASTER)?;
    let requests = 1..=pci.page_request_capacity;
    refuse(
        pci.page_requests && !requests.contains(&pci.page_request_allocation),
        CommandError::PAGE_REQUEST_ALLOCATION,
    )?;
    let sizes: u32 = file.queues.iter().map(|queue| u32::from(queue.size)).sum();
    let total = file.hardware.wq_cap.total_entries();
    refuse(sizes > total.into(), CommandError::WQ_SIZES)?;
    for group in &file.groups {
        let lonely = (group.work_queues == [0; 4]) != (group.engines == 0);
        refuse(lonely, CommandError::GROUP)?;
    }
    check_memberships(file)?;
    refuse(!read_buffers_fit(file), CommandError::READ_BUFFERS)?;
    refuse(!event_log_fits(file), CommandError::EVENT_LOG)?;
    let ats = pci.config.ats;
    refuse(
        pci.platform_ats.is_some_and(|needed| needed != ats),
        CommandError::ADDRESS_TRANSLATION,
    )?;
    // Also where the log is off (spec 5.1, Table 5-8).
    let log = file.event_log;
    check_pasid(log.pasid_enable(), log.privileged(), pci)?;
    let bitmaps = IdBr::from(file.bitmap);
    check_pasid(bitmaps.pasid_enable(), bitmaps.privileged(), pci)
}

/// Each queue with entries is in one group, each other one in none; no engine is in two.
fn check_memberships(file: &File) -> Checked {
    let groups = &file.groups;
    for wq in 0..256 {
        let homes = groups.iter().filter(|group| group.has_queue(wq)).count();
        let expected = match file.queues.get(wq) {
            Some(queue) => usize::from(queue.size > 0),
            None => 0,
        };
        refuse(homes != expected, CommandError::GROUP_WQS)?;
    }
    let mut taken = !file.hardware.engine_mask();
    for group in groups {
        refuse(taken & group.engines != 0, CommandError::GROUP_ENGINES)?;
        taken |= group.engines;
    }
    Ok(())
}

fn read_buffers_fit(file: &File) -> bool {
    let cap = file.hardware.group_cap;
    let total = u32::from(cap.read_buffers());
    let active = || file.groups.iter().filter(|group| group.engines != 0);
    let limit = u32::from(file.gen_cfg.global_read_buffer_limit());
    let limited = |group: &&GroupRegisters| group.flags.use_global_read_buffer_limit();
    let limited_engines: u32 = file
        .groups
        .iter()
        .filter(limited)
        .map(|group| group.engines.count_ones())
        .sum();
    let global = match cap.global_read_buffer_limit() {
        true => limit <= total && (limited_engines == 0 || limit >= 4 * limited_engines),
        false => !file.groups.iter().any(|group| limited(&group)),
    };
    let bandwidth = |flags: GroupFlags| {
        let most = flags
            .read_bandwidth_limit()
            .max(flags.write_bandwidth_limit());
        most <= if cap.bandwidth_limits() { 3 } else { 0 }
    };
    let reserved: u32 = active()
        .map(|group| u32::from(group.flags.read_buffers_reserved()))
        .sum();
    let allowed = |group: &GroupRegisters| {
        let own = u32::from(group.flags.read_buffers_reserved());
        let least = own.max(4 * group.engines.count_ones());
        let most = own + (total - reserved);
        (least..=most).contains(&u32::from(group.flags.read_buffers_allowed()))
    };
    global
        && file.groups.iter().all(|group| bandwidth(group.flags))
        && (!cap.read_buffer_controls() || reserved <= total && active().all(allowed))
}

fn event_log_fits(file: &File) -> bool {
    let log = file.event_log;
    let entry = u128::from(file.hardware.gen_cap.event_log_entry_bytes());
    let end = u128::from(log.base()) + u128::from(log.entries()) * entry;
    let fits = entry > 0 && log.entries() >= 64 && end <= 1 << 64;
    !file.gen_cfg.event_log_enable() || fits
}

fn check_pasid(pasid_enable: bool, privileged: bool, pci: &PciControls) -> Checked {
    let without = pasid_enable && !pci.pasid;
    let above = privileged && !(pasid_enable && pci.config.privileged_mode);
    refuse(without || above, CommandError::PASID)
}

/// Whether a work queue can be enabled as it is configured.
pub(crate) fn check_queue(
    file: &File,
    interrupts: &Interrupts,
    pci: &PciControls,
    wq: usize,
) -> Checked {
    let queue = file.queues.get(wq).ok_or(CommandError::WQ_INDEX)?;
    let (hardware, policy) = (&file.hardware, queue.policy);
    let enabled = file.state == DeviceState::Enabled;
    refuse(!enabled, CommandError::DEVICE_NOT_ENABLED)?;
    let disabled = queue.state == WorkQueueState::Disabled;
    refuse(!disabled, CommandError::WQ_NOT_DISABLED)?;
    refuse(queue.size == 0, CommandError::WQ_SIZE)?;
    let ranked = policy.priority() > 0 || !hardware.wq_cap.priority();
    refuse(!ranked, CommandError::WQ_PRIORITY)?;
    let supported = match policy.dedicated() {
        true => hardware.wq_cap.dedicated_mode(),
        false => hardware.wq_cap.shared_mode(),
    };
    refuse(!supported, CommandError::WQ_MODE)?;
    let blocks = hardware.gen_cap.block_on_fault() && pci.page_requests;
    refuse(
        policy.block_on_fault() && !blocks,
        CommandError::WQ_BLOCK_ON_FAULT,
    )?;
    let pasid = policy.pasid_enable();
    refuse(
        !pasid && !policy.dedicated() || pasid && !pci.pasid,
        CommandError::WQ_PASID_ENABLE,
    )?;
    check_limits(file, queue)?;
    let privileged = policy.dedicated() && pasid && policy.privileged();
    refuse(
        privileged && !pci.config.privileged_mode,
        CommandError::WQ_PRIVILEGE,
    )?;
    if hardware.wq_cap.occupancy_interrupt() {
        let interrupt = queue.interrupt;
        let source = Source::of(interrupt.message_storage());
        // Where handles are requested, one that was never written (0) is no mistake until the
        // interrupt is asked for: Linux enables its queues so.
        let unused = interrupt.into_bits() == 0 && !queue.occupancy.interrupt_enable();
        let valid = unused || interrupts.is_valid(source, interrupt.handle());
        refuse(!valid, CommandError::WQ_OCCUPANCY_INTERRUPT)?;
    }
    refuse(
        policy.ats_disable() && !hardware.wq_cap.ats_disable(),
        CommandError::WQ_ATS_DISABLE,
    )?;
    let device = OpCap(hardware.capabilities.op_cap);
    let operations =
        !hardware.wq_cap.operation_config() || device.contains(&OpCap(queue.operations));
    refuse(!operations, CommandError::WQ_OPERATIONS)?;
    let without_prs = hardware.wq_cap.prs_disable()
        && file.gen_cfg.event_log_enable()
        && !policy.block_on_fault();
    refuse(
        policy.prs_disable() && !without_prs,
        CommandError::WQ_PRS_DISABLE,
    )
}

fn check_limits(file: &File, queue: &QueueRegisters) -> Checked {
    let gen_cap = file.hardware.gen_cap;
    let batch = queue.limits.max_batch_shift();
    // A batch of one needs a limit of 2^0; without such batches the field is not 0 (spec 9.2.2).
    let least = u8::from(!gen_cap.batch_of_one());
    let batches = OpCap(file.hardware.capabilities.op_cap).supports(1);
    refuse(
        batches && !(least..=gen_cap.max_batch_shift()).contains(&batch),
        CommandError::WQ_MAX_BATCH,
    )?;
    let lists = file.hardware.max_scatter_gather_shift();
    refuse(
        queue.limits.max_scatter_gather_shift() > lists,
        CommandError::WQ_MAX_BATCH,
    )?;
    refuse(
        queue.limits.max_transfer_shift() > gen_cap.max_transfer_shift(),
        CommandError::WQ_MAX_TRANSFER,
    )
}
