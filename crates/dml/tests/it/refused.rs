//! What is refused before anything is submitted.

use std::ptr::null_mut;

use dray_dml::batch::{
    dml_batch_get_result, dml_batch_get_status, dml_batch_set_crc_by_index,
    dml_batch_set_dif_check_by_index, dml_batch_set_nop_by_index, dml_get_batch_size,
};
use dray_dml::job::{ANY_NODE, JOB_BYTES, Job};
use dray_dml::status::{
    BATCH_SIZE_ERROR, BATCH_TASK_INDEX_OVERFLOW, JOB_CORRUPTED, JOB_LENGTH_ERROR,
    JOB_OPERATION_ERROR, LIBACCEL_NOT_FOUND, NULL_POINTER_ERROR, OK, PATH_ERROR,
};
use dray_dml::{
    dml_check_job, dml_execute_job, dml_finalize_job, dml_get_job_size, dml_init_job,
    dml_submit_job, dml_wait_job,
};

/// `dml_path_t`.
const SOFTWARE: u32 = 1;
const HARDWARE: u32 = 2;

/// Calls a function of the API.
macro_rules! call {
    ($($call:tt)*) => {
        // SAFETY: every pointer that a test gives is null, or valid for what the function does.
        unsafe { $($call)* }
    };
}

/// A job in memory of its own.
struct Room(Vec<u64>);

impl Room {
    fn new(path: u32) -> Room {
        // What was there before does not matter.
        let mut room = Room(vec![!0; JOB_BYTES.div_ceil(8)]);
        assert_eq!(call!(dml_init_job(path, room.job())), OK);
        room
    }

    fn job(&mut self) -> *mut Job {
        self.0.as_mut_ptr().cast()
    }

    fn fields(&mut self) -> &mut Job {
        // SAFETY: it was initialised, or is zeros.
        unsafe { &mut *self.job() }
    }

    fn submit(&mut self) -> u32 {
        call!(dml_submit_job(self.job()))
    }
}

#[test]
fn null_pointers_and_paths_that_are_none_are_refused() {
    let (mut value, mut room) = (0, Room::new(SOFTWARE));
    let (job, value) = (room.job(), &raw mut value);
    for status in [
        call!(dml_get_job_size(0, null_mut())),
        call!(dml_init_job(0, null_mut())),
        call!(dml_submit_job(null_mut())),
        call!(dml_check_job(null_mut())),
        call!(dml_execute_job(null_mut(), 0)),
        dml_finalize_job(null_mut()),
        call!(dml_get_batch_size(null_mut(), 4, value)),
        call!(dml_get_batch_size(job, 4, null_mut())),
        call!(dml_batch_get_result(job, 0, null_mut())),
        // The job has no tasks.
        call!(dml_batch_get_status(job, 0, value)),
        call!(dml_batch_set_nop_by_index(job, 0, 0)),
        call!(dml_batch_set_crc_by_index(
            job,
            0,
            null_mut(),
            1,
            null_mut(),
            0
        )),
        call!(dml_batch_set_dif_check_by_index(
            job,
            0,
            null_mut(),
            520,
            null_mut(),
            0
        )),
    ] {
        assert_eq!(status, NULL_POINTER_ERROR);
    }
    assert_eq!(call!(dml_get_job_size(3, value)), PATH_ERROR);
    assert_eq!(call!(dml_init_job(u32::MAX, job)), PATH_ERROR);
    assert_eq!(
        call!(dml_get_batch_size(job, u32::MAX, value)),
        BATCH_SIZE_ERROR
    );
}

#[test]
fn a_job_that_was_not_initialised_is_corrupted() {
    let mut room = Room(vec![0; JOB_BYTES.div_ceil(8)]);
    assert_eq!(room.submit(), JOB_CORRUPTED);
    assert_eq!(call!(dml_check_job(room.job())), JOB_CORRUPTED);
    // Neither is what was there before, nor a copy of a job, whose state is the other's.
    room.fields().internal_data = 64 as *mut u8;
    assert_eq!(room.submit(), JOB_CORRUPTED);
    let other = Room::new(SOFTWARE);
    let mut copy = Room(other.0.clone());
    assert_eq!(copy.submit(), JOB_CORRUPTED);
}

#[test]
fn what_was_refused_is_said_again_and_not_what_was_before() {
    let mut room = Room::new(SOFTWARE);
    assert_eq!(
        call!(dml_check_job(room.job())),
        JOB_CORRUPTED,
        "nothing was submitted"
    );
    assert_eq!(call!(dml_execute_job(room.job(), 0)), OK);
    room.fields().operation = 3;
    assert_eq!(room.submit(), NULL_POINTER_ERROR);
    assert_eq!(call!(dml_check_job(room.job())), NULL_POINTER_ERROR);
    assert_eq!(call!(dml_wait_job(room.job(), 0)), NULL_POINTER_ERROR);
}

#[test]
fn every_operation_that_is_none_is_refused() {
    let mut room = Room::new(SOFTWARE);
    assert_eq!(room.fields().numa_id, ANY_NODE);
    let known = (0..10).chain(0x10..0x16).chain([0x20]).collect::<Vec<_>>();
    let all = (0..300).chain([u32::MAX]);
    for operation in all.filter(|operation| !known.contains(operation)) {
        room.fields().operation = operation;
        assert_eq!(room.submit(), JOB_OPERATION_ERROR, "{operation:#x}");
    }
}

#[test]
fn operations_without_buffers_or_bytes_are_refused() {
    let (mut room, mut bytes) = (Room::new(SOFTWARE), [0u8; 64]);
    let set = |room: &mut Room, at: *mut u8, length: u32| {
        let fields = room.fields();
        (fields.source_first, fields.source_second) = (at, at);
        (fields.destination_first, fields.destination_second) = (at, at);
        (fields.source_length, fields.destination_length) = (length, length);
    };
    for operation in (3..10).chain(0x12..0x16).chain([0x20]) {
        room.fields().operation = operation;
        set(&mut room, null_mut(), 64);
        assert_eq!(room.submit(), NULL_POINTER_ERROR, "{operation:#x}");
        set(&mut room, bytes.as_mut_ptr(), 0);
        assert_eq!(room.submit(), JOB_LENGTH_ERROR, "{operation:#x}");
    }
}

#[test]
fn a_task_behind_the_last_is_refused() {
    let (mut room, mut bytes) = (Room::new(SOFTWARE), 0);
    assert_eq!(call!(dml_get_batch_size(room.job(), 4, &raw mut bytes)), OK);
    let mut tasks = vec![0u8; bytes as usize];
    room.fields().destination_first = tasks.as_mut_ptr();
    room.fields().destination_length = bytes;
    for (index, expected) in [
        (3, OK),
        (4, BATCH_TASK_INDEX_OVERFLOW),
        (u32::MAX, BATCH_TASK_INDEX_OVERFLOW),
    ] {
        let status = call!(dml_batch_set_nop_by_index(room.job(), index, 0));
        assert_eq!(status, expected, "{index}");
    }
    // Where tasks are moved up to be aligned, those that do not fit any more are none.
    let mut words = vec![0u64; 128];
    let first = words.as_mut_ptr().cast::<u8>();
    for skipped in 1..8 {
        let at = first.wrapping_add(first.align_offset(64) + 64 - 8 * skipped);
        room.fields().destination_first = at;
        room.fields().destination_length = 4 * 96;
        let status = call!(dml_batch_set_nop_by_index(room.job(), 3, 0));
        assert_eq!(status, BATCH_TASK_INDEX_OVERFLOW, "{skipped}");
    }
}

#[test]
fn a_job_for_a_device_is_not_done_by_the_core() {
    // The tests of `dray run` say the rest.
    if std::path::Path::new("/dev/dsa").exists() {
        return dray_skip::skip("this machine has a DSA");
    }
    let (mut room, mut bytes) = (Room::new(HARDWARE), [7u8; 128]);
    let (from, to) = bytes.split_at_mut(64);
    to.fill(0);
    let fields = room.fields();
    (fields.operation, fields.source_length) = (3, 64);
    (fields.source_first, fields.destination_first) = (from.as_mut_ptr(), to.as_mut_ptr());
    assert_eq!(call!(dml_execute_job(room.job(), 0)), LIBACCEL_NOT_FOUND);
    assert!(to.iter().all(|byte| *byte == 0));
}
