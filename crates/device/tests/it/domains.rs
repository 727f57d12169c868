//! Updates of windows beside the descriptors that use them (spec 3.14.5).

use crate::common::manual_runner::{ManualRunner, noop, records};
use crate::common::profile::{one_group, queue};
use dray_device::{
    Action, DescriptorResult, DeviceConfig, Effect, Function, IdptEntry, Portal, Submission, Work,
    WorkKind, WorkQueueMode,
};
use dray_spec::registers::{
    CMD, CMDSTATUS, Command, CommandRegister, IdCap, IdptAccess, IdptControl,
};
use dray_spec::{Descriptor, Flags, GenCap, OpCap, Opcode, Status, WindowFlags};

/// Two entries that belong to PASID 0, which the queue has, and may be used by it.
fn runner() -> ManualRunner {
    ManualRunner::new(config())
}

fn config() -> DeviceConfig {
    let mut config = one_group(2, vec![queue(0, WorkQueueMode::Dedicated, 8)]);
    let capabilities = &mut config.capabilities;
    capabilities.gen_cap = GenCap::from(capabilities.gen_cap)
        .with_inter_domain(true)
        .into();
    capabilities.op_cap = OpCap(capabilities.op_cap)
        .with(Opcode::UpdateWindow)
        .with(Opcode::InterDomainFill)
        .0;
    capabilities.id_cap = IdCap::new()
        .with_types(1)
        .with_entries(2)
        .with_suppress_drain(true)
        .into();
    let own = IdptEntry {
        control: IdptControl::new().with_usable(true).with_allow_update(true),
        access: IdptAccess::new().with_write(true),
        ..IdptEntry::default()
    };
    config.idpt.entries = vec![own; 2];
    config
}

fn fill(n: u64, handle: u16) -> Descriptor {
    let fill = Descriptor::inter_domain_fill(1, 0x5000, 8);
    fill.with_destination_handle(handle).with_completion(32 * n)
}

fn update(n: u64, handle: u16) -> Descriptor {
    let window = WindowFlags::new().with_write(true).with_window_enable(true);
    Descriptor::update_window(0x9000, 0x1000, window, handle).with_completion(32 * n)
}

/// A fill that has begun.
fn begin(runner: &mut ManualRunner, n: u64, handle: u16) -> Work {
    runner.write(0, &fill(n, handle));
    let work = runner.take(0);
    let task = runner.device.start(&work).expect("work under way");
    assert_eq!(task.action, Action::Execute(Opcode::InterDomainFill));
    assert!(task.domains.is_some());
    work
}

/// How work ends that the table does not let start.
fn refusal(runner: &mut ManualRunner, work: &Work) -> DescriptorResult {
    let task = runner.device.start(work).expect("work under way");
    match task.action {
        Action::End(outcome) => outcome,
        other => panic!("{other:?} where a refusal was expected"),
    }
}

#[test]
fn an_update_waits_for_what_began_under_the_old_window() {
    let mut runner = runner();
    let (first, second) = (begin(&mut runner, 1, 0), begin(&mut runner, 2, 0));
    let other = begin(&mut runner, 3, 1);
    runner.write(0, &update(4, 0));
    assert_eq!(runner.device.take(0), None);
    // The new window holds at once for what comes later.
    runner.write(0, &fill(5, 0));
    let late = runner.take(0);
    let refused = refusal(&mut runner, &late);
    assert_eq!(refused.record.status(), Status::IDPT_WINDOW);
    assert_eq!(
        records(&runner.effects(&late, &refused)),
        [(5, Status::IDPT_WINDOW)]
    );
    assert_eq!(runner.done(&second), [(2, Status::SUCCESS)]);
    assert_eq!(
        runner.done(&first),
        [(1, Status::SUCCESS), (4, Status::SUCCESS)]
    );
    assert_eq!(runner.done(&other), [(3, Status::SUCCESS)]);
}

#[test]
fn an_update_of_what_nobody_uses_or_without_its_drain_waits_for_nobody() {
    let mut runner = runner();
    let user = begin(&mut runner, 1, 0);
    runner.write(0, &update(2, 1));
    let unused = runner.take(1);
    assert_eq!(runner.done(&unused), [(2, Status::SUCCESS)]);
    let hasty = update(3, 0).with_flags(Flags::UPDATE_WINDOW_SUPPRESS_DRAIN);
    runner.write(0, &hasty);
    let hasty = runner.take(1);
    assert_eq!(runner.done(&hasty), [(3, Status::SUCCESS)]);
    assert_eq!(runner.done(&user), [(1, Status::SUCCESS)]);
}

#[test]
fn a_drain_waits_for_an_update_that_waits() {
    let mut runner = runner();
    let user = begin(&mut runner, 1, 0);
    runner.write(0, &update(2, 0));
    runner.write(0, &Descriptor::drain().with_completion(32 * 3));
    runner.write(0, &noop(4));
    let late = runner.take(1);
    assert_eq!(runner.done(&late), [(4, Status::SUCCESS)]);
    let all = [1, 2, 3].map(|n| (n, Status::SUCCESS));
    assert_eq!(runner.done(&user), all);
}

#[test]
fn software_replaces_entries_while_the_device_runs() {
    let mut runner = runner();
    assert_eq!(runner.device.idpt_entry(2), None);
    assert!(!runner.device.set_idpt_entry(2, IdptEntry::default()));
    assert!(runner.device.set_idpt_entry(0, IdptEntry::default()));
    runner.write(0, &fill(1, 0));
    let work = runner.take(0);
    let refused = refusal(&mut runner, &work);
    assert_eq!(refused.record.status(), Status::IDPT_HANDLE);
    assert_eq!(refused.record.idpt_handle(), 0);
    assert_eq!(runner.done(&work), [(1, Status::SUCCESS)]);
    // What has ended does not start.
    assert_eq!(runner.device.start(&work), None);
}

#[test]
fn an_aborted_user_of_a_window_and_an_aborted_update_end_with_the_user() {
    const PORTAL: Portal = Portal {
        wq: 0,
        limited: false,
    };
    for user_ends_first in [true, false] {
        let mut function = Function::enabled(&config()).expect("a configuration");
        let mut effects = Vec::new();
        for descriptor in [fill(1, 0), update(2, 0), noop(3)] {
            assert_eq!(function.submit(PORTAL, &descriptor), Submission::Accepted);
        }
        let user = function.take(0, &mut effects).expect("the fill");
        let task = function.start(&user).expect("work under way");
        assert!(task.domains.is_some());
        // The update waits for the fill, and so does the command.
        let noop = function.take(1, &mut effects).expect("what is behind");
        let abort = CommandRegister::of(Command::AbortAll, 0).into_bits();
        function.write32(CMD, abort, &mut effects);
        assert!(function.is_command_active());
        let mut order = [user, noop];
        if !user_ends_first {
            order.reverse();
        }
        for work in order {
            assert!(function.device().is_abandoned(work.id));
            let outcome = DescriptorResult::status(Status::SUCCESS);
            function.done(work.id, &outcome, &mut effects);
        }
        assert_eq!(function.read32(CMDSTATUS), 0);
        let mut ended: Vec<u64> = effects.iter().map(abandoned).collect();
        ended.sort_unstable();
        assert_eq!(ended, [1, 2, 3]);
        // The window counts as unused from here on.
        assert_eq!(function.submit(PORTAL, &update(4, 0)), Submission::Accepted);
        let update = function.take(0, &mut effects).expect("an update");
        assert_eq!(update.kind, WorkKind::Execute(Opcode::UpdateWindow));
    }
}

fn abandoned(effect: &Effect) -> u64 {
    match effect {
        Effect::Abandoned {
            completion: Some(address),
            ..
        } => address / 32,
        other => panic!("{other:?}"),
    }
}
