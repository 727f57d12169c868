//! Every call with invalid arguments: no mover, a closed one, no buffer, no bytes.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{null, null_mut};

use dray_c::{
    Completion, Mover, Options, Outcome, PageReport, dray_apply_delta, dray_batch_begin,
    dray_batch_cancel, dray_batch_end, dray_batch_fence, dray_cache_flush, dray_close,
    dray_compare, dray_compare_pattern, dray_copy, dray_copy_crc32c, dray_copy_crc64,
    dray_copy_page_list, dray_copy_page_list_with_report, dray_crc32c, dray_crc64,
    dray_create_delta, dray_dif_check, dray_dif_insert, dray_dif_strip, dray_dif_update,
    dray_dix_generate, dray_dualcast, dray_ended, dray_enqueue_descriptor, dray_event_fd,
    dray_excluded_queues, dray_fill, dray_next_flags, dray_noop, dray_note, dray_poll,
    dray_poll_outcomes, dray_share, dray_slots, dray_start, dray_strerror, dray_submit,
    dray_supports, dray_wait, dray_wait_outcomes, dray_withdraw,
};

use crate::opened::{self, dif, last_error, options};

/// An operation's call: mover, buffers, bytes.
type Call = fn(*mut Mover, &[*mut c_void; 3], usize) -> c_int;

/// An operation, and how many buffers it has.
macro_rules! operation {
    ($name:ident, $buffers:literal, |$mover:ident, $at:ident, $len:ident| ($($argument:expr),*)) => {
        (stringify!($name), $buffers, {
            let call: Call = |$mover, $at, $len| {
                // SAFETY: buffers that outlive the mover, or what is refused.
                unsafe { $name($mover, $($argument),*) }
            };
            call
        })
    };
}

/// Every operation on buffers.
fn operations() -> Vec<(&'static str, usize, Call)> {
    vec![
        operation!(dray_copy, 2, |m, at, len| (at[0], at[1], len, 0)),
        operation!(dray_dualcast, 3, |m, at, len| (at[0], at[1], at[2], len, 0)),
        operation!(dray_fill, 1, |m, at, len| (at[0], 7, len, 0)),
        operation!(dray_compare, 2, |m, at, len| (at[0], at[1], len, 0)),
        operation!(dray_compare_pattern, 1, |m, at, len| (at[0], 7, len, 0)),
        operation!(dray_crc32c, 1, |m, at, len| (at[0], len, 0, 0)),
        operation!(dray_copy_crc32c, 2, |m, at, len| (at[0], at[1], len, 0, 0)),
        operation!(dray_crc64, 1, |m, at, len| (at[0], len, 0, 0)),
        operation!(dray_copy_crc64, 2, |m, at, len| (at[0], at[1], len, 0, 0)),
        operation!(dray_create_delta, 3, |m, at, len| (
            at[0], at[1], len, at[2], 80, 0
        )),
        operation!(dray_apply_delta, 2, |m, at, len| (at[0], len, at[1], 80, 0)),
        operation!(dray_cache_flush, 1, |m, at, len| (at[0], len, 0)),
        operation!(dray_dif_check, 1, |m, at, len| (at[0], len, &dif(), 0)),
        operation!(dray_dif_insert, 2, |m, at, len| (
            at[0],
            at[1],
            len,
            &dif(),
            0
        )),
        operation!(dray_dif_strip, 2, |m, at, len| (
            at[0],
            at[1],
            len,
            &dif(),
            0
        )),
        operation!(dray_dif_update, 2, |m, at, len| (
            at[0],
            at[1],
            len,
            &dif(),
            0
        )),
        operation!(dray_dix_generate, 2, |m, at, len| (
            at[0],
            at[1],
            len,
            &dif(),
            0
        )),
    ]
}

/// Without places.
fn report() -> PageReport {
    PageReport {
        size: size_of::<PageReport>(),
        states: null_mut(),
        rows: null_mut(),
        max_rows: 0,
        row_count: 0,
    }
}

/// Every other call on a mover, with arguments that are right.
fn others() -> Vec<(&'static str, usize, Call)> {
    vec![
        operation!(dray_noop, 0, |m, _at, _len| (0)),
        operation!(dray_enqueue_descriptor, 0, |m, at, _len| (at[0], 0)),
        operation!(dray_next_flags, 0, |m, _at, _len| (0)),
        operation!(dray_batch_begin, 0, |m, _at, _len| ()),
        operation!(dray_batch_fence, 0, |m, _at, _len| ()),
        operation!(dray_batch_end, 0, |m, _at, _len| ()),
        operation!(dray_batch_cancel, 0, |m, _at, _len| ()),
        operation!(dray_slots, 0, |m, _at, _len| ()),
        operation!(dray_supports, 0, |m, _at, _len| (3)),
        operation!(dray_submit, 0, |m, _at, _len| ()),
        operation!(dray_withdraw, 0, |m, _at, _len| ()),
        operation!(dray_note, 0, |m, at, _len| (at[0].cast(), 16)),
        operation!(dray_copy_page_list, 0, |m, at, _len| (
            at[0].cast(),
            1,
            null(),
            null_mut()
        )),
        operation!(dray_copy_page_list_with_report, 0, |m, at, _len| (
            at[0].cast(),
            1,
            null(),
            null_mut(),
            &mut report()
        )),
        operation!(dray_excluded_queues, 0, |m, at, _len| (at[0].cast(), 1)),
        operation!(dray_share, 0, |m, _at, _len| ()),
        operation!(dray_event_fd, 0, |m, _at, _len| ()),
        operation!(dray_ended, 0, |m, at, _len| (at[0].cast(), 1)),
        operation!(dray_start, 0, |m, at, _len| (
            at[0].cast(),
            at[0].cast::<dray_c::Request>()
        )),
        operation!(dray_poll, 0, |m, at, _len| (at[0].cast(), 1)),
        operation!(dray_wait, 0, |m, at, _len| (at[0].cast(), 1, 0, 0)),
        operation!(dray_poll_outcomes, 0, |m, at, _len| (at[0].cast(), 1)),
        operation!(dray_wait_outcomes, 0, |m, at, _len| (at[0].cast(), 1, 0, 0)),
    ]
}

/// With few slots, and addresses that are looked at.
fn open() -> *mut Mover {
    let few = Options {
        slots: 4,
        checked: 1,
        ..options()
    };
    opened::open(&few).expect("it opens")
}

/// Room for three buffers of a page, each in its own.
fn pages() -> ([*mut c_void; 3], Vec<u8>) {
    let mut room = vec![0_u8; 4 * 4096];
    let start = room.as_mut_ptr();
    let first = start.align_offset(4096);
    let at = [0, 1, 2].map(|n| start.wrapping_add(first + n * 4096).cast());
    (at, room)
}

#[test]
fn null_buffers_and_a_size_of_0_are_refused() {
    let mover = open();
    let (at, _room) = pages();
    for (name, buffers, call) in operations() {
        for wrong in 0..buffers {
            let mut with_null = at;
            with_null[wrong] = null_mut();
            let code = call(mover, &with_null, 512);
            assert_eq!(code, -libc::EINVAL, "{name} {wrong}");
            assert_eq!(last_error(), "a buffer is NULL", "{name} {wrong}");
        }
        assert_eq!(call(mover, &at, 0), -libc::EINVAL, "{name}");
        assert_eq!(last_error(), "0 bytes", "{name}");
        // Not the 512 bytes that are left of it in 32 bits.
        assert_eq!(call(mover, &at, (1 << 32) + 512), -libc::ENOTSUP, "{name}");
        assert!(last_error().starts_with("4294967808 bytes"), "{name}");
    }
    // Nothing of it was enqueued.
    let mut done = [7_u8; size_of::<Completion>()];
    // SAFETY: a place for a completion.
    let polled = unsafe { dray_poll(mover, done.as_mut_ptr().cast(), 0) };
    assert_eq!(polled, -libc::EINVAL);
    for call in [dray_submit, dray_close] {
        // SAFETY: it was opened.
        assert_eq!(unsafe { call(mover) }, 0);
    }
}

#[test]
fn null_and_closed_movers_are_refused_by_every_call() {
    let mover = open();
    // SAFETY: it was opened.
    assert_eq!(unsafe { dray_close(mover) }, 0);
    let mut room = [0_u8; 4 * size_of::<Outcome>()];
    let place = room.as_mut_ptr();
    let place = place.wrapping_add(place.align_offset(64));
    let at = [place.cast::<c_void>(); 3];
    // A descriptor whose opcode is that of a copy.
    // SAFETY: the eighth byte of the room.
    unsafe { place.wrapping_add(7).write(3) };
    let calls: Vec<_> = operations().into_iter().chain(others()).collect();
    for (name, _, call) in &calls {
        assert_eq!(call(null_mut(), &at, 64), -libc::EINVAL, "{name}");
        assert_eq!(last_error(), "the mover is NULL", "{name}");
        assert_eq!(call(mover, &at, 64), -libc::EBADF, "{name}");
        assert_eq!(last_error(), "the mover is closed", "{name}");
    }
    // SAFETY: handles are never freed.
    assert_eq!(unsafe { dray_close(mover) }, -libc::EBADF);
    // SAFETY: nothing is closed.
    assert_eq!(unsafe { dray_close(null_mut()) }, 0);
    // Those are all calls that take one.
    let header = include_str!("../../include/dray.h");
    let declared = header
        .lines()
        .filter_map(|line| {
            line.strip_prefix("int ")?
                .split_once("(struct dray_mover *")
        })
        .map(|(name, _)| name)
        .filter(|name| *name != "dray_close");
    let mut declared: Vec<&str> = declared.collect();
    let mut called: Vec<&str> = calls.iter().map(|(name, ..)| *name).collect();
    declared.sort_unstable();
    called.sort_unstable();
    assert_eq!(declared, called);
}

#[test]
fn null_and_misaligned_result_pointers_are_refused() {
    let mover = open();
    let mut room = [0_u8; 2 * size_of::<Completion>()];
    let misaligned = room.as_mut_ptr();
    let misaligned = misaligned.wrapping_add(misaligned.align_offset(8) + 1);
    for place in [null_mut(), misaligned] {
        // SAFETY: refused.
        let code = unsafe { dray_poll(mover, place.cast(), 1) };
        assert_eq!(code, -libc::EINVAL);
        // SAFETY: refused.
        let code = unsafe { dray_wait(mover, place.cast(), 1, 0, 0) };
        assert_eq!(code, -libc::EINVAL);
    }
    // SAFETY: it was opened.
    assert_eq!(unsafe { dray_close(mover) }, 0);
}

#[test]
fn every_code_has_a_text() {
    let text = |code| {
        // SAFETY: a string that lives for ever.
        unsafe { CStr::from_ptr(dray_strerror(code)) }.to_bytes()
    };
    // What each code can mean in this library: each cause is named.
    let codes: [(i32, &[&str]); 15] = [
        (libc::EINVAL, &["argument", "field"]),
        (libc::EAGAIN, &["slots"]),
        (
            libc::EBUSY,
            &["another call", "another process", "in flight", "batch"],
        ),
        (libc::ENODEV, &["work queue", "device"]),
        (libc::EACCES, &["device file"]),
        (libc::EPERM, &["kernel"]),
        (libc::EFAULT, &["memory"]),
        (libc::EIO, &["cannot be used", "page list"]),
        (libc::ENOTSUP, &["mover", "work queue", "processor"]),
        (libc::ETIMEDOUT, &["operation", "page list"]),
        (libc::ENOENT, &["in flight", "batch"]),
        (libc::EBADF, &["closed"]),
        (libc::E2BIG, &["batch"]),
        (libc::EALREADY, &["batch"]),
        (libc::ENOTRECOVERABLE, &["panicked"]),
    ];
    for (code, causes) in codes {
        let text = String::from_utf8_lossy(text(-code));
        for cause in causes {
            assert!(text.contains(cause), "{code}: {text}");
        }
    }
    // All codes that the source returns are among them.
    let source = concat!(
        include_str!("../../src/backend.rs"),
        include_str!("../../src/channels.rs"),
        include_str!("../../src/enqueue.rs"),
        include_str!("../../src/error.rs"),
        include_str!("../../src/handle.rs"),
        include_str!("../../src/integrity.rs"),
        include_str!("../../src/mover.rs"),
        include_str!("../../src/open.rs"),
        include_str!("../../src/operations.rs"),
        include_str!("../../src/outcome.rs"),
        include_str!("../../src/pages.rs"),
        include_str!("../../src/structure.rs"),
    );
    let names = source.split("libc::E").skip(1);
    let names = names.map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next());
    let mut names: Vec<&str> = names.flatten().collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), codes.len(), "{names:?}");
    assert_eq!(text(0), b"success");
    for unknown in [1, -1000, i32::MIN, i32::MAX] {
        assert_eq!(text(unknown), b"unknown code");
    }
}
