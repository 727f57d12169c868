//! A device works on the memory of another process.

mod common;

use std::thread;

use common::{CHILD, Child, PAGE, Pages, device, submit};
use dray_device::{Access, Memory};
use dray_realtime::{SharedMemory, Stop, View};
use dray_remote::{Presence, RemoteMemory, SpaceError, Spaces};
use dray_spec::{Descriptor, Flags, Status};
use rustix::mm::MprotectFlags;

use Presence::{Strict, Touch};

/// Where completion records are: behind everything else.
const RECORD: usize = 63 * PAGE;

/// The outcome of a descriptor in a child after `prepare`, on the same pages.
fn outcome(
    presence: Presence,
    pages: &Pages,
    prepare: impl FnOnce(),
    descriptor: Descriptor,
) -> (Status, u32, u64) {
    let child = Child::start(|| {
        // All pages are present in the child.
        pages.touch();
        prepare();
    });
    pages.fill(RECORD, [0; 32]);
    let (device, _) = device(&child, presence);
    submit(&device, descriptor.with_completion(pages.address(RECORD)));
    let record = pages.wait(RECORD);
    (
        record.status(),
        record.bytes_completed,
        record.fault_address,
    )
}

fn pattern(len: usize) -> impl Iterator<Item = u8> {
    (0..len).map(|n| (n * 7 + n / 251) as u8)
}

#[test]
fn copies_within_the_process_are_correct_at_every_size() {
    for presence in [Strict, Touch] {
        for size in [1, 64, 4096, 5000, 16 << 10, 100_000, 250_000] {
            let pages = Pages::new(192);
            pages.fill(3, pattern(size));
            let (from, into) = (pages.address(3), pages.address(90 * PAGE + 1));
            let copy = Descriptor::memmove(from, into, size as u32);
            let reported = outcome(presence, &pages, || (), copy);
            assert_eq!(reported.0, Status::SUCCESS, "{size}");
            assert!(
                pages
                    .bytes(90 * PAGE + 1, size)
                    .into_iter()
                    .eq(pattern(size))
            );
            assert_eq!(pages.get(90 * PAGE + 1 + size), 0);
        }
    }
}

#[test]
fn overlapping_copies_are_correct_in_both_directions() {
    const SIZE: usize = 90_000;
    for (from, into) in [(5000, 1000), (1000, 5000), (1000, 1064), (9000, 1000)] {
        let pages = Pages::new(64);
        pages.fill(from, pattern(SIZE));
        let copy = Descriptor::memmove(pages.address(from), pages.address(into), SIZE as u32);
        assert_eq!(outcome(Strict, &pages, || (), copy).0, Status::SUCCESS);
        assert!(
            pages.bytes(into, SIZE).into_iter().eq(pattern(SIZE)),
            "{from} to {into}"
        );
    }
}

#[test]
fn dualcast_and_compare_use_both_operands() {
    const SIZE: usize = 50_000;
    let pages = Pages::new(64);
    pages.fill(0, pattern(SIZE));
    let [from, one, two] = [0, 16 * PAGE, 32 * PAGE].map(|offset| pages.address(offset));
    let dualcast = Descriptor::dualcast(from, one, two, SIZE as u32);
    assert_eq!(outcome(Strict, &pages, || (), dualcast).0, Status::SUCCESS);
    let compare = Descriptor::compare(one, two, SIZE as u32);
    assert_eq!(outcome(Strict, &pages, || (), compare).0, Status::SUCCESS);
    assert!(pages.bytes(32 * PAGE, SIZE).into_iter().eq(pattern(SIZE)));
}

#[test]
fn an_absent_page_is_a_page_fault_as_on_hardware() {
    let pages = Pages::new(64);
    let (from, into) = (pages.address(100), pages.address(32 * PAGE));
    let copy = Descriptor::memmove(from, into, 3 * PAGE as u32);
    let gone = || pages.drop_page(2 * PAGE);
    let fault = (
        Status::PAGE_FAULT,
        2 * PAGE as u32 - 100,
        pages.address(2 * PAGE),
    );
    assert_eq!(outcome(Strict, &pages, gone, copy), fault);
    assert_eq!(outcome(Touch, &pages, gone, copy).0, Status::SUCCESS);
    let blocks = copy.with_flags(Flags::BLOCK_ON_FAULT);
    assert_eq!(outcome(Strict, &pages, gone, blocks).0, Status::SUCCESS);
}

#[test]
fn unmapped_and_protected_pages_fault_with_strict_and_touch() {
    let pages = Pages::new(64);
    let (from, into) = (pages.address(0), pages.address(32 * PAGE));
    let copy = Descriptor::memmove(from, into, 3 * PAGE as u32);
    let done = 2 * PAGE as u32;
    let read = (Status::PAGE_FAULT, done, pages.address(2 * PAGE));
    let write = (
        Status::PAGE_FAULT.with_write_fault(),
        done,
        pages.address(34 * PAGE),
    );
    for presence in [Strict, Touch] {
        let reported = outcome(presence, &pages, || pages.unmap(2 * PAGE), copy);
        assert_eq!(reported, read);
        let none = || pages.protect(2 * PAGE, MprotectFlags::empty());
        assert_eq!(outcome(presence, &pages, none, copy), read);
        let reported = outcome(presence, &pages, || pages.unmap(34 * PAGE), copy);
        assert_eq!(reported, write);
        let read_only = || pages.protect(34 * PAGE, MprotectFlags::READ);
        assert_eq!(outcome(presence, &pages, read_only, copy), write);
    }
    let blocks = copy.with_flags(Flags::BLOCK_ON_FAULT);
    let reported = outcome(Strict, &pages, || pages.unmap(2 * PAGE), blocks);
    assert_eq!(reported.0, Status::PAGE_FAULT_INVALID_RESPONSE);
}

/// The child changes permissions after the device has read them.
#[test]
fn a_change_of_permissions_is_seen_by_the_next_access() {
    let pages = Pages::new(64);
    let turn = Pages::new(1);
    let child = Child::start_with(
        || pages.touch(),
        || {
            while turn.get(0) == 0 {
                thread::yield_now();
            }
            pages.protect(33 * PAGE, MprotectFlags::READ);
            turn.set(1, 1);
        },
    );
    let (device, _) = device(&child, Touch);
    let copy = Descriptor::memmove(pages.address(0), pages.address(32 * PAGE), 2 * PAGE as u32);
    let copy = copy.with_completion(pages.address(RECORD));
    submit(&device, copy);
    assert_eq!(pages.wait(RECORD).status(), Status::SUCCESS);
    turn.set(0, 1);
    while turn.get(1) == 0 {
        thread::yield_now();
    }
    pages.fill(RECORD, [0; 32]);
    submit(&device, copy);
    let record = pages.wait(RECORD);
    assert_eq!(record.status(), Status::PAGE_FAULT.with_write_fault());
    assert_eq!(record.fault_address, pages.address(33 * PAGE));
    assert_eq!(record.bytes_completed, PAGE as u32);
}

#[test]
fn a_batch_list_is_read_from_the_process() {
    let pages = Pages::new(64);
    let child = Child::start(|| pages.touch());
    let (device, _) = device(&child, Strict);
    let list = 40 * PAGE;
    for n in 0..4 {
        let fill = Descriptor::fill(
            0x1111_1111_1111_1111 * (n as u64 + 1),
            pages.address(n * PAGE),
            64,
        );
        let bytes: [u8; 64] = zerocopy::transmute!(fill);
        pages.fill(list + 64 * n, bytes);
    }
    let batch = Descriptor::batch(pages.address(list), 4);
    submit(&device, batch.with_completion(pages.address(RECORD)));
    assert_eq!(pages.wait(RECORD).status(), Status::SUCCESS);
    for n in 0..4 {
        assert_eq!(pages.bytes(n * PAGE, 64), [0x11 * (n as u8 + 1); 64]);
    }
}

#[test]
fn a_process_killed_during_a_copy_does_not_stop_the_device() {
    let pages = Pages::new(64);
    for _ in 0..20 {
        let mut child = Child::start(|| pages.touch());
        let (device, spaces) = device(&child, Strict);
        let copy =
            Descriptor::memmove(pages.address(0), pages.address(31 * PAGE), 30 * PAGE as u32);
        pages.fill(RECORD, [0; 32]);
        submit(&device, copy.with_completion(pages.address(RECORD)));
        pages.wait(RECORD);
        for _ in 0..6 {
            submit(&device, copy.with_completion(pages.address(RECORD)));
        }
        child.kill();
        submit(&device, copy.with_completion(pages.address(RECORD)));
        // All of them end, without a report.
        device.stop(Stop::Drain).expect("no failure");
        assert!(spaces.remove(CHILD));
        assert!(!spaces.remove(CHILD));
    }
}

#[test]
fn exec_ends_the_address_space_of_the_process() {
    let pages = Pages::new(2);
    let child = Child::start_with(
        || pages.touch(),
        || {
            while pages.get(0) == 0 {
                thread::yield_now();
            }
            // It reads from a pipe without a writer.
            let mut pipe = [0; 2];
            // SAFETY: the array is there.
            unsafe { libc::pipe(pipe.as_mut_ptr()) };
            // SAFETY: both descriptors are this process's own.
            unsafe { libc::dup2(pipe[0], 0) };
            let arguments = [c"cat".as_ptr(), std::ptr::null()];
            // SAFETY: the array ends with a null pointer.
            unsafe { libc::execvp(arguments[0], arguments.as_ptr()) };
        },
    );
    let spaces = Spaces::new();
    spaces.add(1, child.pid()).expect("a process");
    let name = format!("/proc/{}/comm", child.pid());
    pages.set(0, 1);
    while std::fs::read(&name).expect("a process") != b"cat\n" {
        thread::yield_now();
    }
    let mut memory = RemoteMemory::new(spaces.into(), Touch);
    memory.enter(View {
        pasid: 1,
        blocks: true,
    });
    assert_eq!(memory.accessible(pages.address(0), 8, Access::Read), 0);
}

#[test]
fn ended_processes_and_invalid_pasids_are_refused() {
    let spaces = Spaces::new();
    let mut child = Child::start(|| ());
    let pid = child.pid();
    child.kill();
    assert!(matches!(spaces.add(1, pid), Err(SpaceError::Gone { .. })));
    let own = std::process::id();
    assert!(matches!(
        spaces.add(1 << 20, own),
        Err(SpaceError::Pasid { .. })
    ));
    assert!(matches!(
        spaces.add(1, u32::MAX),
        Err(SpaceError::Gone { .. })
    ));
    spaces.add(1, own).expect("this process");
}

/// A child whose first thread ends, and another one goes on.
fn child_without_first_thread() -> Child {
    let child = Child::start_with(
        || (),
        || {
            thread::spawn(|| {
                loop {
                    thread::park();
                }
            });
            // SAFETY: only this thread ends, and nothing of it is needed any more.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        },
    );
    let stat = format!("/proc/{}/stat", child.pid());
    while !std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z ")) {
        thread::yield_now();
    }
    child
}

#[test]
fn a_process_whose_first_thread_has_ended_has_memory() {
    let pages = Pages::new(64);
    pages.fill(0, pattern(PAGE));
    // Known before that thread ended, and after.
    let child = child_without_first_thread();
    assert_ne!(dray_remote::living_thread(child.pid()), child.pid());
    let own = std::process::id();
    assert_eq!(dray_remote::living_thread(own), own);
    let (device, spaces) = device(&child, Touch);
    let copy = Descriptor::memmove(pages.address(0), pages.address(2 * PAGE), PAGE as u32);
    submit(&device, copy.with_completion(pages.address(RECORD)));
    assert_eq!(pages.wait(RECORD).status(), Status::SUCCESS);
    assert!(pages.bytes(2 * PAGE, PAGE).into_iter().eq(pattern(PAGE)));
    assert!(spaces.is_there(CHILD));
}

/// Memory of this process, as a device sees it.
fn own_memory(presence: Presence) -> RemoteMemory {
    let spaces = Spaces::new();
    spaces.add(1, std::process::id()).expect("this process");
    let mut memory = RemoteMemory::new(spaces.into(), presence);
    memory.enter(View {
        pasid: 1,
        blocks: false,
    });
    memory
}

/// The change must be seen without a failed access: a cache flush accesses no byte.
#[test]
fn accessible_reports_the_current_permissions() {
    for presence in [Strict, Touch] {
        let pages = Pages::new(4);
        pages.touch();
        let mut memory = own_memory(presence);
        let view = View {
            pasid: 1,
            blocks: false,
        };
        let (start, len) = (pages.address(0), 4 * PAGE as u64);
        assert_eq!(memory.accessible(start, len, Access::Write), len);
        pages.protect(2 * PAGE, MprotectFlags::READ);
        memory.enter(view);
        assert_eq!(memory.accessible(start, len, Access::Read), len);
        let reached = memory.accessible(start, len, Access::Write);
        assert_eq!(reached, 2 * PAGE as u64, "{presence:?}");
        pages.unmap(PAGE);
        memory.enter(view);
        let reached = memory.accessible(start, len, Access::Read);
        assert_eq!(reached, PAGE as u64, "{presence:?}");
    }
}

/// A move over its own source from its end, and a page that is protected in the middle.
#[test]
fn a_restarted_overlapping_move_reads_the_original_source() {
    let pages = Pages::new(4);
    pages.fill(0, pattern(4 * PAGE));
    let before = pages.bytes(0, 4 * PAGE);
    let mut memory = own_memory(Strict);
    let (source, into) = (pages.address(0), pages.address(PAGE / 2));
    let len = 2 * PAGE as u64;
    assert_eq!(memory.accessible(source, len, Access::Read), len);
    assert_eq!(memory.accessible(into, len, Access::Write), len);
    let mut block = vec![0; PAGE];
    memory.read(source + PAGE as u64, &mut block);
    memory.write(into + PAGE as u64, &block);
    // Reading what was written brings it to the memory.
    memory.read(into + PAGE as u64, &mut block);
    assert_ne!(pages.bytes(0, 4 * PAGE), before);
    pages.protect(0, MprotectFlags::READ);
    memory.read(source, &mut block);
    memory.write(into, &block);
    assert!(!memory.settle());
    assert_eq!(pages.bytes(0, 4 * PAGE), before);
}

#[test]
fn an_address_space_exists_until_its_process_ends() {
    let mut child = Child::start(|| ());
    let spaces = Spaces::new();
    spaces.add(1, child.pid()).expect("a process");
    assert!(spaces.is_there(1) && !spaces.is_there(2));
    child.kill();
    assert!(!spaces.is_there(1));
}
