//! Other processes write to the work queues of a device.

#[path = "it/common/mod.rs"]
mod common;
#[path = "attached/dying_clients.rs"]
mod dying_clients;

use std::os::fd::AsFd;
use std::thread;

use common::{Records, config, queue, start};
use dray_device::{Portal, Submission, WorkQueueMode};
use dray_realtime::{AttachError, Attachment, Options, RealtimeDevice, RegionLayout, Stop};
use dray_spec::{Descriptor, Status};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use WorkQueueMode::{Dedicated, Shared};

fn device(mode: WorkQueueMode, size: u16) -> RealtimeDevice {
    let options = Options {
        shared: true,
        ..Options::default()
    };
    start(config(1, vec![queue(0, mode, size)]), options).0
}

/// Forks a process that runs `action` and ends; with 0 if that is true.
fn fork(action: impl FnOnce() -> bool) -> Pid {
    // SAFETY: the child calls nothing that needs other threads, and ends without any cleaning up.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let code = i32::from(!action());
        // SAFETY: it ends the child.
        unsafe { libc::_exit(code) };
    }
    Pid::from_raw(pid).expect("no more processes")
}

/// Waits for a child: its exit code, or `None` for a signal.
fn wait(pid: Pid) -> Option<i32> {
    let (_, status) = waitpid(Some(pid), WaitOptions::empty())
        .expect("a child")
        .expect("it has ended");
    status.exit_status()
}

/// In a child: attaches to queue 0.
fn attach(device: &RealtimeDevice, client: u16) -> Attachment {
    let region = device.region().expect("shared");
    Attachment::new(region.fd(), region.layout(), client).expect("a region")
}

const FRONT: Portal = Portal {
    wq: 0,
    limited: false,
};

#[test]
fn what_processes_submit_ends_once_each() {
    const EACH: usize = 300;
    for mode in [Dedicated, Shared] {
        let device = device(mode, 8);
        // The device writes them, in this process.
        let records = Records::new(4 * EACH);
        let clients: Vec<_> = (0..4).map(|_| device.admit().expect("a name")).collect();
        let children: Vec<_> = clients
            .iter()
            .enumerate()
            .map(|(index, client)| {
                fork(|| {
                    let attachment = attach(&device, client.number());
                    let portal = attachment.portal(FRONT).expect("a queue");
                    (index * EACH..(index + 1) * EACH).all(|n| {
                        let noop = Descriptor::noop().with_completion(records.address(n));
                        loop {
                            let answer = match mode {
                                Dedicated => portal.write_posted(&noop),
                                Shared => portal.enqueue(&noop),
                            };
                            match answer {
                                Submission::Accepted => break true,
                                Submission::Ignored => break false,
                                Submission::Lost | Submission::Retry => thread::yield_now(),
                            }
                        }
                    })
                })
            })
            .collect();
        for child in children {
            assert_eq!(wait(child), Some(0));
        }
        for client in clients {
            device.abandon(client).expect("a device");
        }
        device.stop(Stop::Drain).expect("no failure");
        assert!((0..4 * EACH).all(|n| records.status(n) == Status::SUCCESS));
    }
}

#[test]
fn clients_that_are_killed_while_they_submit_leave_the_queue_to_others() {
    let device = device(Shared, 4);
    const ROUNDS: usize = 30;
    let records = Records::new(ROUNDS + 1);
    for round in 0..ROUNDS {
        let client = device.admit().expect("a name");
        let child = fork(|| {
            let attachment = attach(&device, client.number());
            let portal = attachment.portal(FRONT).expect("a queue");
            let noop = Descriptor::noop().with_completion(records.address(round));
            loop {
                portal.enqueue(&noop);
            }
        });
        records.wait(round);
        kill_process(child, Signal::KILL).expect("a child");
        assert_eq!(wait(child), None);
        device.abandon(client).expect("a device");
    }
    let noop = Descriptor::noop().with_completion(records.address(ROUNDS));
    let portal = device.map(FRONT).expect("a queue");
    while portal.enqueue(&noop) != Submission::Accepted {
        thread::yield_now();
    }
    assert_eq!(records.wait(ROUNDS).status(), Status::SUCCESS);
}

#[test]
fn a_file_that_is_no_board_of_this_shape_is_refused() {
    let layout = RegionLayout {
        queues: 8,
        entries: 128,
    };
    let file = memfd_create("region", MemfdFlags::ALLOW_SEALING).expect("memory");
    let attach = || Attachment::new(&file, layout, 1).map(|_| ());
    assert_eq!(attach(), Err(AttachError::NotSealed));
    ftruncate(&file, 4096).expect("room");
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).expect("seals");
    let Err(AttachError::Size { found, expected }) = attach() else {
        panic!("it is too small");
    };
    assert_eq!((found, expected % 4096), (4096, 0));
    assert!(expected > 8 * 128 * 64);
    let null = std::fs::File::open("/dev/null").expect("a device file");
    let other = Attachment::new(null.as_fd(), layout, 1).map(|_| ());
    assert_eq!(other, Err(AttachError::NotSealed));
}

#[test]
fn a_device_that_is_not_shared_has_no_board() {
    let (device, _) = start(config(1, vec![queue(0, Shared, 4)]), Options::default());
    assert!(device.region().is_none());
}

#[test]
fn portals_of_other_processes_answer_as_those_of_this_one() {
    let device = device(Shared, 4);
    let client = device.admit().expect("a name");
    let attachment = attach(&device, client.number());
    let portal = attachment.portal(FRONT).expect("a queue");
    assert_eq!(portal.mode(), Shared);
    assert_eq!(
        portal.write_posted(&Descriptor::noop()),
        Submission::Ignored
    );
    assert!(attachment.portal(Portal { wq: 99, ..FRONT }).is_none());
    device.stop(Stop::Drain).expect("no failure");
    assert_eq!(portal.enqueue(&Descriptor::noop()), Submission::Retry);
}
