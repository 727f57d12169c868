//! Operations of channels that have ended, and who did what of each; queues that get nothing more.

use std::ffi::c_int;

use dray::channels::Outcome as Library;

use crate::channel_types::{ExcludedQueue, Outcome};
use crate::completion::{FromOutcome, count, lost, reason};
use crate::error::Refusal;
use crate::handle::{Kind, Mover, Open, using};
use crate::mover::{place, poll_into, wait_into};
use crate::types::{Completion, CoreReason};

/// Takes at most `count` operations that have ended, with who did what of each: how many there were, at
/// most 64.
///
/// # Errors
/// -ENOTSUP: the mover is not from dray_open_channels.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open_channels`](crate::dray_open_channels); `into` a place for
/// `count` outcomes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_poll_outcomes(
    mover: *mut Mover,
    into: *mut Outcome,
    count: usize,
) -> c_int {
    // SAFETY: the caller's promise is the same.
    unsafe { poll_into(mover, into, count) }
}

/// As dray_wait, with who did what of each operation.
///
/// # Errors
/// -ETIMEDOUT, -ENOENT, -ENOTSUP: as of [`dray_wait`](crate::dray_wait). -ENOTSUP: the mover is not from
/// dray_open_channels, too.
///
/// # Safety
/// As [`dray_poll_outcomes`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_wait_outcomes(
    mover: *mut Mover,
    into: *mut Outcome,
    count: usize,
    policy: u32,
    timeout_ns: u64,
) -> c_int {
    // SAFETY: the caller's promise is the same.
    unsafe { wait_into(mover, into, count, policy, timeout_ns) }
}

impl FromOutcome for Outcome {
    fn of(outcome: &Library, reason: CoreReason) -> Outcome {
        Outcome {
            completion: Completion::of(outcome, reason),
            device_bytes: outcome.device_bytes,
            core_bytes: outcome.core_bytes,
            stripes: outcome.stripes,
            resumed_faults: outcome.resumed_faults,
            core_reason: self::reason(outcome) as u32,
            gathered: outcome.gathered.into(),
            queue_was_full: outcome.queue_was_full.into(),
            moved: u8::try_from(outcome.moved).unwrap_or(u8::MAX),
            reserved: 0,
        }
    }

    fn check(kind: &Kind) -> Result<(), Refusal> {
        match kind.is_channels() {
            true => Ok(()),
            false => Err(Refusal::new(
                libc::ENOTSUP,
                "the mover has one queue: dray_poll takes its completions",
            )),
        }
    }
}

/// Queues of a mover that get nothing more, because they were disabled or reset or their device has ended,
/// also if they are enabled again: how many there are. Writes at most `count` of them to `into`, which may be
/// NULL for 0. Of a mover from dray_open it is the one queue that it has.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open) or
/// [`dray_open_channels`](crate::dray_open_channels); `into` a place for `count` queues.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_excluded_queues(
    mover: *mut Mover,
    into: *mut ExcludedQueue,
    count: usize,
) -> c_int {
    let work = |open: &mut Open| {
        if count > 0 {
            place("queues", into, count)?;
        }
        let excluded: Vec<(usize, dray::QueueLost)> = open.kind.excluded();
        for (n, (number, reason)) in excluded.iter().take(count).enumerate() {
            let name = open.opened.queues.get(*number).map_or("", String::as_str);
            // SAFETY: `n` is below the caller's count.
            let place = unsafe { into.add(n) };
            // SAFETY: a place of the caller's.
            unsafe { place.write(excluded_queue(name, *number, *reason)) };
        }
        Ok(self::count(excluded.len()))
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

fn excluded_queue(name: &str, number: usize, reason: dray::QueueLost) -> ExcludedQueue {
    let (reason, error) = lost(Some(reason));
    let mut queue = ExcludedQueue {
        name: [0; 32],
        number: u32::try_from(number).unwrap_or(u32::MAX),
        reason: reason as u32,
        error,
        reserved: 0,
    };
    crate::queues::text(&mut queue.name, name);
    queue
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;

    use dray::channels::{Channels, ChannelsOptions, LostQueuePolicy, Member};
    use dray::virt::VirtualDevice;
    use dray_spec::registers::{Command, CommandRegister};

    use super::*;
    use crate::backend::virtual_device;
    use crate::channel_types::QueueLostReason;
    use crate::handle::{Opened, handle};
    use crate::{dray_close, dray_fill};

    const QUEUES: u16 = 2;

    /// Channels on a device that the test can command, their queues named.
    fn channels(lost_queue: LostQueuePolicy) -> (VirtualDevice, *mut Mover) {
        let device = virtual_device(QUEUES, false).expect("it starts");
        let members = (0..QUEUES).map(|queue| Member {
            mover: device.open(queue, 8).expect("a queue"),
            numa_node: None,
        });
        let options = ChannelsOptions {
            lost_queue,
            gather_below_bytes: 0,
            ..ChannelsOptions::default()
        };
        let channels = Channels::new(members, options).expect("channels");
        let opened = Opened {
            queues: vec!["wq0.0".to_owned(), "x".repeat(40)],
            ..Opened::default()
        };
        let mover = handle(Kind::VirtualChannels(channels), options.slots, opened);
        (device, mover)
    }

    fn disable(device: &VirtualDevice, queue: u8) {
        let operand = CommandRegister::queue(queue);
        let answer = device.device().command(Command::DisableWq, operand);
        assert_eq!(answer, Ok(Ok(0)));
    }

    /// Fills some buffers: their outcomes.
    fn fill(mover: *mut Mover, buffers: &mut [[u64; 8]]) -> Vec<Outcome> {
        for buffer in &mut *buffers {
            // SAFETY: the buffers outlive the operations, which are waited for.
            let code = unsafe { dray_fill(mover, buffer.as_mut_ptr().cast(), 7, 64, 5) };
            assert_eq!(code, 0);
        }
        let mut outcomes = Vec::new();
        while outcomes.len() < buffers.len() {
            let mut place = std::mem::MaybeUninit::<Outcome>::uninit();
            let minute = 60_000_000_000;
            // SAFETY: a place for one.
            let found = unsafe { dray_wait_outcomes(mover, place.as_mut_ptr(), 1, 3, minute) };
            assert_eq!(found, 1);
            // SAFETY: it was written.
            outcomes.push(unsafe { place.assume_init() });
        }
        outcomes
    }

    fn excluded(mover: *mut Mover) -> Vec<(String, u32, u32)> {
        let empty = excluded_queue("", 9, dray::QueueLost::DeviceEnded);
        let mut into = [empty; QUEUES as usize];
        // SAFETY: a place for two.
        let count = unsafe { dray_excluded_queues(mover, into.as_mut_ptr(), into.len()) };
        // SAFETY: nothing is written.
        let counted = unsafe { dray_excluded_queues(mover, null_mut(), 0) };
        assert_eq!(count, counted);
        let seen = |queue: &ExcludedQueue| {
            assert_eq!(queue.name[31], 0);
            let name = queue.name.iter().take_while(|byte| **byte != 0);
            let name = name.map(|byte| *byte as u8 as char).collect();
            (name, queue.number, queue.reason)
        };
        into[..count as usize].iter().map(seen).collect()
    }

    #[test]
    fn a_disabled_queue_is_listed_and_the_other_continues() {
        let (device, mover) = channels(LostQueuePolicy::Other);
        assert_eq!(excluded(mover), []);
        disable(&device, 1);
        let mut buffers = [[0_u64; 8]; 16];
        for outcome in fill(mover, &mut buffers) {
            assert_eq!(outcome.completion.status, 1);
            assert_eq!(outcome.completion.queue_lost, QueueLostReason::None as u8);
            assert_eq!((outcome.device_bytes, outcome.core_bytes), (64, 0));
        }
        assert_eq!(buffers, [[7; 8]; 16]);
        let disabled = QueueLostReason::Disabled as u32;
        // The name is cut, and ends with 0.
        assert_eq!(excluded(mover), [("x".repeat(31), 1, disabled)]);
        // With the other one the core takes over.
        disable(&device, 0);
        let moved = fill(mover, &mut buffers);
        assert!(moved.iter().all(|outcome| outcome.core_bytes == 64));
        let reasons = moved.iter().map(|outcome| outcome.core_reason);
        assert!(reasons.eq([CoreReason::QueueLost as u32; 16]));
        assert_eq!(excluded(mover)[0], ("wq0.0".to_owned(), 0, disabled));
        assert_eq!(excluded(mover).len(), 2);
        // SAFETY: made above.
        assert_eq!(unsafe { dray_close(mover) }, 0);
    }

    #[test]
    fn operations_of_a_lost_queue_report_the_reason() {
        let (device, mover) = channels(LostQueuePolicy::Error);
        disable(&device, 0);
        disable(&device, 1);
        let mut buffers = [[0_u64; 8]; 4];
        for outcome in fill(mover, &mut buffers) {
            assert_eq!(outcome.completion.status, 0);
            assert_eq!(
                outcome.completion.queue_lost,
                QueueLostReason::Disabled as u8
            );
            assert_eq!((outcome.completion.withdrawn, outcome.moved), (0, 0));
        }
        assert_eq!(buffers, [[0; 8]; 4]);
        // SAFETY: made above.
        assert_eq!(unsafe { dray_close(mover) }, 0);
    }

    #[test]
    fn a_mover_of_one_queue_reports_its_lost_queue() {
        let device = virtual_device(1, false).expect("it starts");
        let one = device.open(0, 8).expect("a queue");
        let mover = handle(Kind::Virtual(one), 8, Opened::default());
        assert_eq!(excluded(mover), []);
        disable(&device, 0);
        let mut buffer = [0_u64; 8];
        // SAFETY: the buffer outlives the operation, which is waited for.
        let code = unsafe { dray_fill(mover, buffer.as_mut_ptr().cast(), 7, 64, 5) };
        assert_eq!(code, 0);
        let mut done = Completion::of(&Library::default(), CoreReason::None);
        let mut wait = |timeout_ns| {
            // SAFETY: a place for one.
            unsafe { crate::dray_wait(mover, &raw mut done, 1, 3, timeout_ns) }
        };
        // The queue takes nothing, and the operation stays the mover's until it is taken back.
        assert_eq!(wait(1_000_000), -libc::ETIMEDOUT);
        // SAFETY: made above.
        assert_eq!(unsafe { crate::dray_withdraw(mover) }, 1);
        assert_eq!(wait(60_000_000_000), 1);
        assert_eq!((done.status, done.user_data, done.withdrawn), (0, 5, 1));
        assert_eq!(buffer, [0; 8]);
        assert_eq!(
            excluded(mover),
            [(String::new(), 0, QueueLostReason::Disabled as u32)]
        );
        // SAFETY: made above.
        assert_eq!(unsafe { dray_close(mover) }, 0);
    }
}
