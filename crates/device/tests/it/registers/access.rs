//! Every register: what it is after power-on, which bits can be written, and when.

use dray_device::{Bar, Capabilities, Effect, Function, Hardware, PciControls, Submission};
use dray_spec::Descriptor;
use dray_spec::registers::{self as at, Command, DUMMY_PORTAL};
use zerocopy::IntoBytes;

use super::driver::{Driver, config};
use crate::common::manual_runner::noop;
use crate::common::profile::capabilities;

/// A device that has everything.
fn everything() -> Hardware {
    let mut hardware = Hardware::new(Capabilities {
        version: 0x200,
        gen_cap: Capabilities::sapphire_rapids().gen_cap | 1 << 4 | 1 << 6 | 1 << 13,
        id_cap: 0x0000_0403,
        ..capabilities()
    });
    hardware.masks_vectors = true;
    hardware
}

/// Name, offset, value after power-on, bits that can be written while disabled and while enabled.
type Register = (&'static str, u64, u64, u64, u64);

fn table(function: &Function) -> Vec<Register> {
    let hardware = function.hardware();
    let offset = |shift: u32| {
        let low = function.read64(at::OFFSETS);
        (low >> shift & 0xffff) * 0x100
    };
    let (groups, queues, permissions, messages) = (offset(0), offset(16), offset(32), offset(48));
    let domains = (function.read64(at::OFFSETS + 8) >> 16 & 0xffff) * 0x100;
    let (vectors, pending) = (
        function.layout().msix_table(),
        function.layout().msix_pending(),
    );
    let all = u64::MAX;
    vec![
        ("VERSION", 0x00, 0x200, 0, 0),
        ("nothing", 0x08, 0, 0, 0),
        ("GENCAP", 0x10, hardware.gen_cap.into_bits(), 0, 0),
        ("WQCAP", 0x20, 0xff_0000_0108_0080, 0, 0),
        ("GRPCAP", 0x30, 0x7_6004, 0, 0),
        ("ENGCAP", 0x38, 0x10_8004, 0, 0),
        ("OPCAP 0", 0x40, 0x1_003f_03ff, 0, 0),
        ("OPCAP 3", 0x58, 0, 0, 0),
        ("OFFSETS", 0x60, 0x0100_0004_0008_0006, 0, 0),
        ("OFFSETS", 0x68, 0x0180_0000, 0, 0),
        ("GENCFG", 0x80, 96, 0x30ff, 0),
        ("GENCTRL", 0x88, 0, 7, 7),
        ("GENSTS", 0x90, 0, 0, 0),
        ("INTCAUSE", 0x98, 0, 0, 0),
        ("CMDSTATUS", 0xa8, 0, 0, 0),
        ("CMDCAP", 0xb0, 0x7ffe, 0, 0),
        ("SWERROR 0", 0xc0, 0, 0, 0),
        ("SWERROR 1", 0xc8, 0, 0, 0),
        ("SWERROR 2", 0xd0, 0, 0, 0),
        ("EVLCFG 0", 0xe0, 0, !0xffc, 0),
        ("EVLCFG 1", 0xe8, 0, 0xf_ffff_ffff, 0),
        ("EVLSTATUS", 0xf0, 0, 0xffff, 0xffff),
        ("IDCAP", 0x100, 0x403, 0, 0),
        ("IDBR", 0x108, 0, 0x0fff_ff1f, 0),
        ("DSACAP0", 0x180, 0, 0, 0),
        ("DSACAP2", 0x190, 0, 0, 0),
        ("GRPWQCFG 0", groups, 0, all, 0),
        ("GRPWQCFG 3", groups + 24, 0, all, 0),
        ("GRPENGCFG", groups + 32, 0, all, 0),
        ("GRPFLAGS", groups + 40, 0x600_0000, 0xff33_0ff0_ffbf, 0),
        (
            "GRPFLAGS 3",
            groups + 64 * 3 + 40,
            0x600_0000,
            0xff33_0ff0_ffbf,
            0,
        ),
        ("beyond the groups", groups + 64 * 4, 0, 0, 0),
        ("size, threshold", queues, 0, 0xffff_0000_ffff, 0xffff << 32),
        ("policy, limits", queues + 8, 0, 0x1ff_3fff_ffff, 0),
        (
            // The limit is locked while the interrupt is enabled, as after a write of ones.
            "interrupt, occupancy",
            queues + 16,
            0,
            0x1_0000_0001_ffff,
            1 << 48,
        ),
        ("status", queues + 24, 0, 0, 0),
        // All operations of version 2 but no others (spec 9.2.24).
        ("OPCFG 0", queues + 32, 0x1_003f_03ff, 0x7b_00bf_07ff, 0),
        ("OPCFG 3", queues + 56, 0, 0, 0),
        (
            "size of the last",
            queues + 64 * 7,
            0,
            0xffff_0000_ffff,
            0xffff << 32,
        ),
        ("beyond the queues", queues + 64 * 8, 0, 0, 0),
        ("MSIXPERM", permissions, 0, 0xffff_f00c, 0xffff_f00c),
        ("MSIXPERM 8", permissions + 64, 0, 0xffff_f00c, 0xffff_f00c),
        ("MSI-X address", vectors, 0, !3, !3),
        (
            "MSI-X data, control",
            vectors + 8,
            1 << 32,
            0x1_ffff_ffff,
            0x1_ffff_ffff,
        ),
        ("MSI-X pending", pending, 0, 0, 0),
        ("IMS address", messages, 0xfee0_0000, 0xf_fffc, 0xf_fffc),
        (
            "IMS data, control",
            messages + 8,
            1 << 32,
            0xffff_f00d_ffff_ffff,
            0xffff_f00d_ffff_ffff,
        ),
        ("IDPT 1", domains + 32 + 8, 0, all, all),
        ("IDPT 2", domains + 64 + 24, 0, !0xfff, !0xfff),
        ("CMDPARAM", 0xe000, 0, all, all),
        ("dummy portal", DUMMY_PORTAL, 0, 0, 0),
        ("dummy portal", DUMMY_PORTAL + 0xff8, 0, 0, 0),
    ]
}

/// Bits that a write of ones and one of zeros change, with what they were put back after.
fn changed_by_writes(function: &mut Function, offset: u64) -> u64 {
    let mut effects = Vec::new();
    let before = function.read64(offset);
    let mut write = |function: &mut Function, value: u64| {
        // The upper half of the interrupt message's address must stay what it is.
        function.write64(offset, value, &mut effects);
        function.read64(offset)
    };
    let ones = match before {
        0xfee0_0000 => write(function, 0xfeef_ffff),
        _ => write(function, u64::MAX),
    };
    let zeros = match before {
        0xfee0_0000 => write(function, 0xfee0_0000),
        _ => write(function, 0),
    };
    write(function, before);
    ones ^ zeros
}

#[test]
fn registers_have_their_values_and_change_where_and_when_they_may() {
    let mut driver = Driver::new(everything());
    let table = table(&driver.function);
    for (name, offset, reset, disabled, _) in &table {
        assert_eq!(
            driver.function.read64(*offset),
            *reset,
            "{name} after power-on"
        );
        let changed = changed_by_writes(&mut driver.function, *offset);
        assert_eq!(changed, *disabled, "{name} while disabled: {changed:#x}");
    }
    driver.configure(&config());
    assert_eq!(driver.command(Command::EnableDevice, 0), 0);
    // The last queue has no entries, and so is disabled; this one is not.
    assert_eq!(driver.command(Command::EnableWq, 0), 0);
    for (name, offset, _, _, enabled) in &table {
        let changed = changed_by_writes(&mut driver.function, *offset);
        assert_eq!(changed, *enabled, "{name} while enabled: {changed:#x}");
    }
}

#[test]
fn a_fixed_device_can_be_enabled_but_not_changed() {
    for (mode_support, policy) in [(false, 0), (true, 0x3fff_ff01)] {
        let mut hardware = everything();
        hardware.gen_cap.set_configurable(false);
        let pci = PciControls::default();
        let function = Function::fixed(hardware, pci, &config(), mode_support);
        let mut function = function.expect("a configuration that registers hold");
        let queues = (function.read64(at::OFFSETS) >> 16 & 0xffff) * 0x100;
        let groups = (function.read64(at::OFFSETS) & 0xffff) * 0x100;
        assert_eq!(changed_by_writes(&mut function, groups), 0);
        assert_eq!(changed_by_writes(&mut function, at::GENCFG), 1 << 13);
        assert_eq!(changed_by_writes(&mut function, queues + 8), policy);
        let threshold = if mode_support { 0xffff << 32 } else { 0 };
        assert_eq!(changed_by_writes(&mut function, queues), threshold);
        // It keeps that configuration through resets.
        let mut driver = Driver {
            function,
            effects: Vec::new(),
        };
        driver.command(Command::ResetDevice, 0);
        assert_eq!(driver.command(Command::EnableDevice, 0), 0);
        assert_eq!(driver.command(Command::EnableWq, 1), 0);
        driver.function.reset(&mut driver.effects);
        driver
            .function
            .set_pci(PciControls::default(), &mut driver.effects);
        assert_eq!(driver.command(Command::EnableDevice, 0), 0);
    }
}

#[test]
fn what_software_writes_to_a_fixed_queue_is_gone_after_a_reset() {
    let mut hardware = everything();
    hardware.gen_cap.set_configurable(false);
    let function = Function::fixed(hardware, PciControls::default(), &config(), true);
    let mut driver = Driver {
        function: function.expect("a configuration that registers hold"),
        effects: Vec::new(),
    };
    let base = (driver.read(at::OFFSETS) as u64 >> 16) * 0x100;
    let words = |driver: &Driver| [0, 8, 16, 24].map(|at| driver.function.read64(base + at));
    let came = words(&driver);
    let change = |driver: &mut Driver| {
        driver.write(base + 4, 5);
        let policy = driver.read(base + 8);
        driver.write(base + 8, policy & !(0xf_ffff << 8) | 0x1234 << 8 | 1 << 29);
        assert_eq!(driver.command(Command::RequestInterruptHandle, 3), 3 << 8);
        driver.write(base + 16, 3);
        driver.write(base + 20, 0x1_0007);
        assert_eq!(driver.command(Command::EnableDevice, 0), 0);
        assert_eq!(driver.command(Command::EnableWq, 0), 0);
        let now = words(driver);
        // The occupancy interrupt has been generated: the queue is empty.
        assert_eq!(now[2], 0x1_0007_0000_0003);
        assert_eq!(now[3] & 1 << 16, 1 << 16);
    };
    let resets: [fn(&mut Driver); 3] = [
        |d| assert_eq!(d.command(Command::ResetWq, 1), 0),
        |d| assert_eq!(d.command(Command::ResetDevice, 0), 0),
        |d| {
            d.function.begin_reset(&mut d.effects);
            d.function.reset(&mut d.effects);
            d.function.set_pci(PciControls::default(), &mut d.effects);
        },
    ];
    for (n, reset) in resets.iter().enumerate() {
        change(&mut driver);
        reset(&mut driver);
        assert_eq!(words(&driver), came, "reset {n}");
        driver.command(Command::ResetDevice, 0);
    }
}

#[test]
fn accesses_have_1_2_4_or_8_aligned_bytes() {
    let mut driver = Driver::new(everything());
    let offset = at::CMDPARAM;
    driver
        .function
        .write64(offset, 0x8877_6655_4433_2211, &mut driver.effects);
    let read = |function: &Function, offset: u64, size: usize| {
        let mut bytes = vec![0xaa; size];
        function.read(Bar::Registers, offset, &mut bytes);
        bytes
    };
    assert_eq!(read(&driver.function, offset + 3, 1), [0x44]);
    assert_eq!(read(&driver.function, offset + 6, 2), [0x77, 0x88]);
    assert_eq!(
        read(&driver.function, offset + 4, 4),
        [0x55, 0x66, 0x77, 0x88]
    );
    for (at, size) in [(1, 2), (2, 4), (4, 8), (0, 3), (0, 16), (0, 64)] {
        assert_eq!(read(&driver.function, offset + at, size), vec![0; size]);
        let ones = vec![0xff; size];
        driver
            .function
            .write(Bar::Registers, offset + at, &ones, &mut driver.effects);
    }
    assert_eq!(read(&driver.function, u64::MAX - 7, 8), [0; 8]);
    assert_eq!(driver.function.read64(offset), 0x8877_6655_4433_2211);
    driver
        .function
        .write(Bar::Registers, offset + 1, &[0], &mut driver.effects);
    assert_eq!(driver.function.read64(offset), 0x8877_6655_4433_0011);
    // Part of a command is none.
    driver
        .function
        .write(Bar::Registers, at::CMD + 2, &[0x10], &mut driver.effects);
    assert_eq!(driver.read(at::CMDSTATUS), 0);
}

#[test]
fn a_portal_takes_64_bytes_at_any_of_its_slots_and_nothing_else() {
    let mut driver = Driver::ready();
    let descriptor = noop(1);
    let bytes: &[u8; 64] = descriptor.as_bytes().try_into().expect("64 bytes");
    let count = |driver: &Driver| driver.function.read32(0x800 + 24) & 0xffff;
    let post = |driver: &mut Driver, offset: u64, bytes: &[u8]| {
        driver
            .function
            .write(Bar::Portals, offset, bytes, &mut Vec::<Effect>::new());
        count(driver)
    };
    assert_eq!(post(&mut driver, 0x1000, bytes), 1);
    assert_eq!(post(&mut driver, 0x1fc0, bytes), 2);
    assert_eq!(post(&mut driver, 0x0040, bytes), 3);
    // Interrupt message storage, which this device has.
    assert_eq!(post(&mut driver, 0x2000, bytes), 4);
    for (offset, bytes) in [
        (0x1008, &bytes[..]),
        (0x1000, &bytes[..32]),
        (0x1000, &[0; 128]),
    ] {
        assert_eq!(post(&mut driver, offset, bytes), 4);
    }
    for offset in [0x5000, 0x9000, 0x1_f000, 0x2_0000, !63] {
        assert_eq!(post(&mut driver, offset, bytes), 4);
    }
    let mut enqueue = |bar, offset| driver.function.enqueue(bar, offset, bytes);
    assert_eq!(enqueue(Bar::Portals, 0x5000), Submission::Accepted);
    assert_eq!(enqueue(Bar::Portals, 0x5008), Submission::Retry);
    assert_eq!(enqueue(Bar::Portals, 0x1000), Submission::Retry);
    assert_eq!(enqueue(Bar::Registers, DUMMY_PORTAL), Submission::Retry);
    let mut page = [0xaa; 64];
    driver.function.read(Bar::Portals, 0x1000, &mut page);
    assert_eq!(page, [0; 64]);
}

#[test]
fn interrupts_follow_their_tables() {
    let mut driver = Driver::new(everything());
    driver.configure(&config());
    driver.command(Command::EnableDevice, 0);
    driver.command(Command::EnableWq, 0);
    assert_eq!(driver.command(Command::RequestInterruptHandle, 2), 2 << 8);
    let table = driver.function.layout().msix_table() + 32;
    let permission = 0x400 + 16;
    let copy = |driver: &mut Driver, handle| {
        let copy = Descriptor::noop().with_interrupt(handle);
        driver.submit(0, &copy);
        let work = driver.take(0);
        let refused = matches!(work.kind, dray_device::WorkKind::Reject(_));
        if let dray_device::WorkKind::Reject(rejection) = work.kind {
            driver
                .function
                .done(work.id, &rejection.outcome(), &mut driver.effects);
        } else {
            driver.done(&work);
        }
        (refused, driver.vectors())
    };
    // The queue has a PASID (0), the entry none yet; others have no handle.
    assert_eq!(copy(&mut driver, 2), (true, vec![]));
    driver.write(permission, 1 << 3);
    assert_eq!(copy(&mut driver, 3), (true, vec![]));
    // Masked: it becomes pending, and is sent when the mask goes.
    assert_eq!(copy(&mut driver, 2), (false, vec![]));
    assert_eq!(
        driver
            .function
            .read64(driver.function.layout().msix_pending()),
        4
    );
    driver.write(table + 12, 0);
    assert_eq!(driver.vectors(), [2]);
    assert_eq!(
        driver
            .function
            .read64(driver.function.layout().msix_pending()),
        0
    );
    assert_eq!(copy(&mut driver, 2), (false, vec![2]));
    driver.write(permission, 1 << 3 | 1 << 2);
    assert_eq!(copy(&mut driver, 2), (false, vec![]));
    driver.write(permission, 1 << 3 | 7 << 12);
    assert_eq!(copy(&mut driver, 2), (true, vec![]));
    driver.write(permission, 1 << 3);
    driver.function.revoke_handles(&mut driver.effects);
    assert_eq!(driver.read(at::INTCAUSE), 1 << 31);
    assert_eq!(copy(&mut driver, 2), (true, vec![]));
}
