//! Every command and every error that it can end with (spec Table 5-8).

use dray_device::{Action, Bar, Capabilities, DeviceConfig, Hardware, WorkKind};
use dray_spec::registers::{
    self as at, Command, CommandError, CommandRegister, GroupFlags, WorkQueueInterrupt,
    WorkQueuePolicy,
};
use dray_spec::{Descriptor, OpCap, Opcode, Status};

use super::driver::{Driver, config, hardware};
use crate::common::profile::capabilities;

const GROUPS: u64 = 0x600;
const QUEUES: u64 = 0x800;

/// Version 2 with an event log, whose queues are 64 bytes apart.
fn version_2() -> Hardware {
    Hardware {
        masks_vectors: false,
        ..Hardware::new(Capabilities {
            version: 0x200,
            gen_cap: Capabilities::sapphire_rapids().gen_cap | 1 << 13,
            ..capabilities()
        })
    }
}

fn configured(hardware: Hardware, config: &DeviceConfig) -> Driver {
    let mut driver = Driver::new(hardware);
    driver.configure(config);
    driver
}

type Break = fn(&mut Driver);

fn write64(driver: &mut Driver, offset: u64, value: u64) {
    driver.function.write64(offset, value, &mut driver.effects);
}

fn set(driver: &mut Driver, offset: u64, bits: u64) {
    let value = driver.function.read64(offset) | bits;
    write64(driver, offset, value);
}

#[test]
fn a_device_is_not_enabled_with_what_is_wrong() {
    let breaks: &[(CommandError, Break)] = &[
        (CommandError::DEVICE_NOT_DISABLED, |d| {
            d.command(Command::EnableDevice, 0);
        }),
        (CommandError::BUS_MASTER, |d| {
            let mut pci = d.function.pci().clone();
            pci.bus_master = false;
            d.function.set_pci(pci, &mut d.effects);
        }),
        (CommandError::PAGE_REQUEST_ALLOCATION, |d| {
            let mut pci = d.function.pci().clone();
            pci.page_request_allocation = 0;
            d.function.set_pci(pci, &mut d.effects);
        }),
        (CommandError::PAGE_REQUEST_ALLOCATION, |d| {
            let mut pci = d.function.pci().clone();
            pci.page_request_allocation = 513;
            d.function.set_pci(pci, &mut d.effects);
        }),
        (CommandError::WQ_SIZES, |d| d.write(QUEUES, 121)),
        (CommandError::GROUP, |d| write64(d, GROUPS + 32, 0)),
        (CommandError::GROUP, |d| write64(d, GROUPS + 64 + 32, 4)),
        (CommandError::GROUP_WQS, |d| write64(d, GROUPS, 1)),
        (CommandError::GROUP_WQS, |d| write64(d, GROUPS, 7)),
        (CommandError::GROUP_WQS, |d| {
            write64(d, GROUPS + 24, 1 << 63)
        }),
        (CommandError::GROUP_WQS, |d| {
            write64(d, GROUPS + 64, 1);
            write64(d, GROUPS + 64 + 32, 4);
        }),
        (CommandError::GROUP_ENGINES, |d| set(d, GROUPS + 32, 1 << 4)),
        (CommandError::READ_BUFFERS, |d| {
            let flags = GroupFlags::new().with_read_buffers_allowed(7);
            write64(d, GROUPS + 40, flags.into_bits());
        }),
        (CommandError::READ_BUFFERS, |d| {
            let flags = GroupFlags::new()
                .with_read_buffers_allowed(96)
                .with_read_buffers_reserved(97);
            write64(d, GROUPS + 40, flags.into_bits());
        }),
        (CommandError::READ_BUFFERS, |d| d.write(at::GENCFG, 97)),
        (CommandError::READ_BUFFERS, |d| {
            set(d, GROUPS + 40, 1 << 7);
            d.write(at::GENCFG, 7);
        }),
        (CommandError::READ_BUFFERS, |d| set(d, GROUPS + 40, 1 << 40)),
        (CommandError::EVENT_LOG, |d| d.write(at::GENCFG, 1 << 13)),
        (CommandError::EVENT_LOG, |d| {
            d.write(at::GENCFG, 1 << 13);
            write64(d, at::EVLCFG, !0xfff);
            write64(d, at::EVLCFG + 8, 65);
        }),
        (CommandError::ADDRESS_TRANSLATION, |d| {
            let mut pci = d.function.pci().clone();
            pci.platform_ats = Some(false);
            d.function.set_pci(pci, &mut d.effects);
        }),
        (CommandError::PASID, |d| {
            d.write(at::GENCFG, 1 << 13);
            write64(d, at::EVLCFG, 0x10_0002);
            write64(d, at::EVLCFG + 8, 64);
        }),
        // Also with the log off (spec 5.1).
        (CommandError::PASID, |d| write64(d, at::EVLCFG, 0x10_0002)),
        (CommandError::PASID, |d| {
            let mut pci = d.function.pci().clone();
            pci.pasid = false;
            d.function.set_pci(pci, &mut d.effects);
            write64(d, at::EVLCFG, 0x10_0001);
        }),
    ];
    for (n, (error, broken)) in breaks.iter().enumerate() {
        let mut driver = configured(version_2(), &config());
        broken(&mut driver);
        let status = driver.command(Command::EnableDevice, 0);
        assert_eq!(status, u32::from(error.0), "break {n}: {error}");
    }
    let mut driver = configured(version_2(), &config());
    assert_eq!(driver.command(Command::EnableDevice, 0), 0);
}

#[test]
fn a_queue_is_not_enabled_with_what_is_wrong() {
    let policy = |d: &mut Driver, change: fn(WorkQueuePolicy) -> WorkQueuePolicy| {
        let policy = WorkQueuePolicy::from_bits(d.read(QUEUES + 8));
        d.write(QUEUES + 8, change(policy).into_bits());
    };
    // Each before Enable Device, and then Enable WQ 0.
    let same: fn(&mut Hardware) = |_| ();
    type Change = (CommandError, fn(&mut Hardware), Box<dyn Fn(&mut Driver)>);
    let changes: Vec<Change> = vec![
        (
            CommandError::WQ_PRIORITY,
            same,
            Box::new(move |d| policy(d, |p| p.with_priority(0))),
        ),
        (
            CommandError::WQ_MODE,
            |h| h.wq_cap.set_dedicated_mode(false),
            Box::new(|_| ()),
        ),
        (
            CommandError::WQ_BLOCK_ON_FAULT,
            |h| h.gen_cap.set_block_on_fault(false),
            Box::new(move |d| policy(d, |p| p.with_block_on_fault(true))),
        ),
        (
            CommandError::WQ_PASID_ENABLE,
            same,
            Box::new(move |d| policy(d, |p| p.with_dedicated(false).with_pasid_enable(false))),
        ),
        (
            CommandError::WQ_PASID_ENABLE,
            same,
            Box::new(|d| {
                let mut pci = d.function.pci().clone();
                pci.pasid = false;
                d.function.set_pci(pci, &mut d.effects);
            }),
        ),
        (
            CommandError::WQ_MAX_BATCH,
            same,
            Box::new(|d| d.write(QUEUES + 12, 21)),
        ),
        (
            CommandError::WQ_MAX_BATCH,
            same,
            Box::new(|d| d.write(QUEUES + 12, 11 << 5 | 21)),
        ),
        (
            CommandError::WQ_MAX_TRANSFER,
            |h| h.gen_cap.set_max_transfer_shift(20),
            Box::new(|_| ()),
        ),
        (
            CommandError::WQ_PRIVILEGE,
            same,
            Box::new(move |d| {
                policy(d, |p| p.with_privileged(true));
                let mut pci = d.function.pci().clone();
                pci.config.privileged_mode = false;
                d.function.set_pci(pci, &mut d.effects);
            }),
        ),
        (
            CommandError::WQ_OCCUPANCY_INTERRUPT,
            same,
            Box::new(|d| {
                let interrupt = WorkQueueInterrupt::new().with_handle(9);
                d.write(QUEUES + 16, interrupt.into_bits());
            }),
        ),
        (
            CommandError::WQ_ATS_DISABLE,
            |h| h.wq_cap.set_ats_disable(false),
            Box::new(move |d| policy(d, |p| p.with_ats_disable(true))),
        ),
        (
            CommandError::WQ_OPERATIONS,
            same,
            Box::new(|d| set(d, QUEUES + 32, 1 << 0x17)),
        ),
        (
            CommandError::WQ_PRS_DISABLE,
            same,
            Box::new(move |d| policy(d, |p| p.with_prs_disable(true))),
        ),
        (CommandError(0), same, Box::new(|_| ())),
    ];
    for (error, part, change) in changes {
        let mut hardware = version_2();
        part(&mut hardware);
        let mut driver = configured(hardware, &config());
        change(&mut driver);
        assert_eq!(driver.command(Command::EnableDevice, 0), 0, "{error}");
        assert_eq!(driver.command(Command::EnableWq, 0), error.0.into());
    }
    let mut driver = configured(hardware(), &config());
    assert_eq!(driver.command(Command::EnableWq, 0), 0x20);
    driver.command(Command::EnableDevice, 0);
    for (wq, error) in [(8, 2), (255, 2), (2, 0x22), (0, 0), (0, 0x21)] {
        assert_eq!(driver.command(Command::EnableWq, wq), error, "queue {wq}");
    }
}

#[test]
fn commands_say_what_is_wrong_with_them() {
    let mut driver = Driver::new(hardware());
    let raw = |driver: &mut Driver, value: u32| {
        driver.write(at::CMD, value);
        driver.read(at::CMDSTATUS)
    };
    // Codes that are none, or none of a device without CMDCAP.
    for code in [0, 13, 14, 15, 16, 17, 18, 31] {
        assert_eq!(raw(&mut driver, code << 20), 1, "code {code}");
    }
    for bit in 25..31 {
        assert_eq!(raw(&mut driver, 3 << 20 | 1 << bit), 4, "bit {bit}");
    }
    for command in [
        Command::EnableDevice,
        Command::DisableDevice,
        Command::DrainAll,
        Command::AbortAll,
        Command::ResetDevice,
    ] {
        assert_eq!(driver.command(command, 1), 4, "{command:?}");
    }
    assert_eq!(driver.command(Command::EnableWq, 0x100), 4);
    assert_eq!(driver.command(Command::DisableDevice, 0), 0x31);
    for command in [Command::DisableWq, Command::DrainWq, Command::AbortWq] {
        assert_eq!(driver.command(command, 1), 0x32, "{command:?}");
        assert_eq!(driver.command(command, 0x100), 2, "{command:?}");
        assert_eq!(driver.command(command, 0x1_0001), 2, "{command:?}");
        assert_eq!(driver.command(command, 0), 0, "{command:?}");
    }
    assert_eq!(driver.command(Command::ResetWq, 1), 0);
    assert_eq!(driver.command(Command::ResetWq, 0x100), 2);
    // No errors are defined for these.
    for command in [
        Command::DrainAll,
        Command::AbortAll,
        Command::ResetDevice,
        Command::DrainPasid,
        Command::AbortPasid,
    ] {
        assert_eq!(driver.command(command, 0), 0, "{command:?}");
    }
}

#[test]
fn handles_are_given_out_taken_back_and_run_out() {
    let mut capabilities = capabilities();
    capabilities.gen_cap |= 1 << 4;
    let mut hardware = Hardware::new(capabilities);
    hardware.interrupt_handles = 2;
    let mut driver = Driver::new(hardware);
    let request = Command::RequestInterruptHandle;
    let release = Command::ReleaseInterruptHandle;
    assert_eq!(driver.command(request, 9), 0x41);
    assert_eq!(driver.command(request, 0x1_0800), 0x41);
    assert_eq!(driver.command(request, 0x2_0000), 4);
    assert_eq!(driver.command(request, 8), 8 << 8);
    assert_eq!(driver.command(request, 8), 8 << 8);
    assert_eq!(driver.command(request, 0x1_07ff), 0x7ff << 8);
    assert_eq!(driver.command(request, 1), 0x42);
    assert_eq!(driver.command(release, 1), 0x41);
    assert_eq!(driver.command(release, 8), 0);
    assert_eq!(driver.command(release, 8), 0x41);
    assert_eq!(driver.command(request, 1), 1 << 8);
    assert_eq!(driver.command(Command::ResetDevice, 0), 0);
    assert_eq!(driver.command(release, 1), 0x41);
}

#[test]
fn idpt_handles_are_indexes() {
    let mut hardware = Hardware::new(Capabilities {
        version: 0x200,
        gen_cap: Capabilities::sapphire_rapids().gen_cap | 1 << 4 | 1 << 6,
        id_cap: 0x403,
        ..capabilities()
    });
    hardware.command_cap = 0x3_fffe;
    let mut driver = Driver::new(hardware);
    assert_eq!(driver.command(Command::RequestIdptHandle, 3), 3 << 8);
    assert_eq!(driver.command(Command::RequestIdptHandle, 4), 0x51);
    assert_eq!(driver.command(Command::RequestIdptHandle, 0x1_0000), 4);
    assert_eq!(driver.command(Command::ReleaseIdptHandle, 3), 0);
    for index in [2, 3, 4] {
        assert_eq!(driver.command(Command::ReleaseIdptHandle, index), 0x51);
    }
    assert_eq!(driver.command(Command::InvalidateBitmapCache, 0x1_0000), 0);
    assert_eq!(driver.command(Command::InvalidateBitmapCache, 0x2_0000), 4);
}

#[test]
fn idpt_handles_are_good_from_their_request_to_their_release() {
    let all = Opcode::ALL
        .iter()
        .fold(OpCap::default(), |all, opcode| all.with(*opcode));
    let part = |commands: u64| {
        let mut hardware = Hardware::new(Capabilities {
            version: 0x200,
            gen_cap: Capabilities::sapphire_rapids().gen_cap | 1 << 4 | 1 << 6,
            op_cap: all.0,
            id_cap: 0x403,
            ..capabilities()
        });
        hardware.command_cap |= commands;
        let mut driver = configured(hardware, &config());
        let writes = DeviceConfig {
            capabilities: driver.function.hardware().capabilities.clone(),
            ..config()
        }
        .register_writes(driver.function.hardware());
        for write in writes.expect("registers") {
            let bytes = &write.value.to_le_bytes()[..usize::from(write.size)];
            let effects = &mut driver.effects;
            driver
                .function
                .write(Bar::Registers, write.offset, bytes, effects);
        }
        // Entry 2: usable and open to updates, for submitter 0, who may write; its own memory.
        let entry = (u64::from(driver.function.read32(at::OFFSETS + 8)) >> 16) * 0x100 + 64;
        write64(&mut driver, entry, 2 << 32 | 3);
        assert_eq!(driver.command(Command::EnableDevice, 0), 0);
        assert_eq!(driver.command(Command::EnableWq, 0), 0);
        driver
    };
    let uses = |driver: &mut Driver| {
        let mut update = Descriptor::noop();
        update.pasid_priv = 0;
        let bytes: &mut [u8; 64] = zerocopy::transmute_mut!(&mut update);
        bytes[7] = Opcode::UpdateWindow as u8;
        // Flags that leave the entry as it is: write permission alone.
        bytes[61] = 2;
        bytes[62] = 2;
        let fill = Descriptor::inter_domain_fill(0, 0x2000, 64).with_destination_handle(2);
        driver.submit(0, &update.with_completion(64));
        driver.submit(0, &fill.with_completion(32));
        let update = driver.take(0);
        let fill = driver.take(0);
        let updated = match update.kind {
            WorkKind::Reject(rejection) => {
                assert_eq!(rejection.status, Status::UPDATE_WINDOW_ENTRY);
                false
            }
            kind => kind == WorkKind::Execute(Opcode::UpdateWindow),
        };
        let fill_task = driver.function.start(&fill).expect("work under way");
        if let Action::End(outcome) = fill_task.action {
            assert_eq!(outcome.record.status(), Status::IDPT_HANDLE);
            assert_eq!(outcome.record.idpt_handle(), 2);
        }
        driver.done(&update);
        driver.done(&fill);
        (fill_task.domains.is_some(), updated)
    };
    let mut without = part(0);
    assert_eq!(uses(&mut without), (true, true));
    let request = Command::RequestIdptHandle;
    let mut driver = part(request.bit() | Command::ReleaseIdptHandle.bit());
    assert_eq!(uses(&mut driver), (false, false));
    assert_eq!(driver.command(request, 1), 1 << 8);
    assert_eq!(uses(&mut driver), (false, false));
    assert_eq!(driver.command(request, 2), 2 << 8);
    assert_eq!(driver.command(request, 2), 2 << 8);
    assert_eq!(uses(&mut driver), (true, true));
    assert_eq!(driver.command(Command::ReleaseIdptHandle, 2), 0);
    assert_eq!(uses(&mut driver), (false, false));
    // A reset takes all of them back.
    driver.command(request, 2);
    assert_eq!(driver.command(Command::ResetDevice, 0), 0);
    assert_eq!(driver.command(Command::ReleaseIdptHandle, 2), 0x51);
}

#[test]
fn what_is_written_is_what_the_device_is_enabled_with() {
    let mut config = config();
    config.read_buffer_limit = 48;
    config.groups[0].read_buffers_allowed = 96;
    config.groups[0].use_read_buffer_limit = true;
    config.groups[0].traffic_classes = [1, 2];
    config.work_queues[0].pasid = Some(0xabcde);
    config.work_queues[0].privileged = true;
    config.work_queues[1].block_on_fault = true;
    config.work_queues[1].threshold = 3;
    let mut driver = configured(hardware(), &config);
    driver.command(Command::EnableDevice, 0);
    driver.command(Command::EnableWq, 1);
    driver.command(Command::EnableWq, 0);
    assert_eq!(*driver.function.config(), config);
    let disable = CommandRegister::queue(0);
    assert_eq!(driver.command(Command::DisableWq, disable), 0);
    assert_eq!(
        driver.function.config().work_queues,
        config.work_queues[1..]
    );
    // The threshold follows at any time.
    driver.write(QUEUES + 32 + 4, 1);
    driver.submit(1, &crate::common::manual_runner::noop(1));
    let retry = driver.submit(1, &crate::common::manual_runner::noop(2));
    assert_eq!(retry, dray_device::Submission::Retry);
}
