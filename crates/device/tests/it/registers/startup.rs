//! The way of the stock Linux driver through the registers (6.1: probe, enable, submit, disable).

use dray_spec::registers::{
    self as at, Command, CommandRegister, DeviceState, GroupFlags, TableOffsets, WorkQueueLimits,
    WorkQueuePolicy, WorkQueueState,
};
use dray_spec::{Descriptor, Flags, GenCap};

use super::driver::{Driver, hardware};
use crate::common::manual_runner::noop;

/// As `idxd_cmd_exec`: with an interrupt.
fn execute(driver: &mut Driver, command: Command, operand: u32) {
    let register = CommandRegister::of(command, operand).with_request_interrupt(true);
    driver.write(at::CMD, register.into_bits());
    assert_eq!(driver.vectors(), [0], "{command:?} ends");
    // `idxd_misc_thread`: reads the cause, clears it, reads the status.
    let cause = driver.read(at::INTCAUSE);
    assert_eq!(cause, 2);
    driver.write(at::INTCAUSE, cause);
    assert_eq!(driver.read(at::INTCAUSE), 0);
    assert_eq!(driver.read(at::CMDSTATUS), 0);
}

#[test]
fn the_stock_driver_starts_up_works_and_leaves() {
    let mut driver = Driver::new(hardware());
    // `idxd_probe`: state, then a reset that is polled.
    assert_eq!(driver.read(at::GENSTS), 0);
    assert_eq!(driver.command(Command::ResetDevice, 0), 0);
    // `idxd_read_caps`, `idxd_read_table_offsets`.
    assert_eq!(driver.read(at::VERSION), 0x100);
    let gen_cap = GenCap::from(driver.function.read64(at::GENCAP));
    assert!(gen_cap.configurable() && !gen_cap.command_capability());
    assert_eq!(driver.function.read64(at::CMDCAP), 0);
    assert_eq!(driver.function.read64(at::GRPCAP) & 0xff, 4);
    assert_eq!(driver.function.read64(at::ENGCAP), 4);
    let wq_cap = dray_spec::WqCap::from(driver.function.read64(at::WQCAP));
    assert_eq!((wq_cap.total_entries(), wq_cap.work_queues()), (128, 8));
    let operations: Vec<u64> = (0..4)
        .map(|n| driver.function.read64(at::OPCAP + 8 * n))
        .collect();
    assert_eq!(operations, [0x1_003f_03ff, 0, 0, 0]);
    let low = u128::from(driver.function.read64(at::OFFSETS));
    let high = u128::from(driver.function.read64(at::OFFSETS + 8));
    let offsets = TableOffsets::from_bits(high << 64 | low);
    assert_eq!(offsets.perfmon(), 0);
    let groups = u64::from(offsets.group_config()) * TableOffsets::UNIT;
    let queues = u64::from(offsets.work_queue_config()) * TableOffsets::UNIT;
    let permissions = u64::from(offsets.msix_permissions()) * TableOffsets::UNIT;
    let stride = u64::from(wq_cap.config_stride_bytes());
    // `idxd_setup_interrupts`, `idxd_mask_error_interrupts`: errors and halts interrupt.
    for vector in 0..9 {
        driver.write(permissions + 8 * vector, 0);
    }
    driver.write(at::GENCTRL, 3);
    assert_eq!(driver.read(at::GENCTRL), 3);

    // `idxd_device_config`: all groups, then every double word of every queue is read, changed and
    // written back, also those that are read only.
    for group in 0..4 {
        let base = groups + 64 * group;
        let queue = u64::from(group == 0);
        for word in 0..4 {
            let bits = if word == 0 { queue } else { 0 };
            driver
                .function
                .write64(base + 8 * word, bits, &mut driver.effects);
        }
        driver
            .function
            .write64(base + 32, queue, &mut driver.effects);
        let flags = GroupFlags::new()
            .with_traffic_class_a(1)
            .with_traffic_class_b(1)
            .with_read_buffers_allowed(96);
        driver
            .function
            .write64(base + 40, flags.into_bits(), &mut driver.effects);
        assert_eq!(driver.function.read64(base + 40), flags.into_bits());
    }
    let policy = WorkQueuePolicy::new()
        .with_dedicated(true)
        .with_priority(10);
    let limits = WorkQueueLimits::new()
        .with_max_transfer_shift(21)
        .with_max_batch_shift(5);
    for wq in 0..8 {
        let base = queues + stride * wq;
        let mut words: Vec<u32> = (0..8).map(|n| driver.read(base + 4 * n)).collect();
        if wq == 0 {
            words[0] |= 16;
            words[2] |= policy.into_bits();
            words[3] |= limits.into_bits();
        }
        for (n, word) in (0..).zip(&words) {
            driver.write(base + 4 * n, *word);
        }
        let read: Vec<u32> = (0..8).map(|n| driver.read(base + 4 * n)).collect();
        assert_eq!(read, words);
    }
    driver.write(at::GENCFG, 0x1060);
    execute(&mut driver, Command::EnableDevice, 0);
    assert_eq!(driver.read(at::GENSTS), DeviceState::Enabled as u32);
    execute(&mut driver, Command::EnableWq, 0);
    let state = |driver: &Driver| driver.read(queues + 24) >> 30;
    assert_eq!(state(&driver), WorkQueueState::Enabled as u32);

    // A dmaengine copy: its record, then the interrupt of the queue's vector.
    let copy = Descriptor::memmove(0x10_0000, 0x20_0000, 4096)
        .with_completion(32 * 7)
        .with_flags(Flags::REQUEST_COMPLETION_INTERRUPT);
    let copy = Descriptor {
        interrupt_handle: 1,
        ..copy
    };
    driver.submit(0, &copy);
    let work = driver.take(0);
    driver.done(&work);
    assert_eq!(driver.effects.len(), 2);
    assert_eq!(driver.vectors(), [1]);

    // `drv_disable_wq`: drain, reset.
    execute(&mut driver, Command::DrainWq, 1);
    execute(&mut driver, Command::ResetWq, 1);
    assert_eq!(state(&driver), WorkQueueState::Disabled as u32);
    assert_eq!((driver.read(queues), driver.read(queues + 8)), (16, 0));
    driver.submit(0, &noop(1));
    assert_eq!(driver.function.take(0, &mut driver.effects), None);
    execute(&mut driver, Command::DisableDevice, 0);
    execute(&mut driver, Command::ResetDevice, 0);
    assert_eq!((driver.read(at::GENSTS), driver.read(queues)), (0, 0));
    // The masks of errors are the driver's to write again.
    assert_eq!(driver.read(at::GENCTRL), 0);
}
