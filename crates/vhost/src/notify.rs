//! Eventfds that a front end sends: to be notified, and to notify.
//!
//! The front end shares their flags and their counter. It may clear O_NONBLOCK at any time, so that a
//! read of 0 or a write to a full counter would never return, and with it the thread that serves all
//! ports.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, ReadWriteFlags, preadv2, read, write};

/// Makes a front end's eventfd non-blocking. None if that is not possible: the queue then does
/// without.
pub(crate) fn non_blocking(descriptor: Option<OwnedFd>) -> Option<OwnedFd> {
    let descriptor = descriptor?;
    let flags = fcntl_getfl(&descriptor).ok()?;
    fcntl_setfl(&descriptor, flags | OFlags::NONBLOCK).ok()?;
    Some(descriptor)
}

/// Adds 1 to an eventfd's counter.
///
/// # Errors
/// The counter is full, or the front end has made the descriptor blocking. (eventfd(2) has no write
/// that cannot block whatever the flags: a front end that clears O_NONBLOCK just between the two
/// calls, with a full counter, still stops the thread.)
pub(crate) fn signal(descriptor: impl AsFd) -> Result<(), Errno> {
    check(&descriptor)?;
    write(descriptor, &1u64.to_ne_bytes()).map(drop)
}

/// Empties an eventfd's counter.
pub(crate) fn clear(descriptor: impl AsFd) {
    /// The current position: an eventfd has no other.
    const CURRENT: u64 = u64::MAX;
    let mut bytes = [0; 8];
    let mut into = [IoSliceMut::new(&mut bytes)];
    let nowait = ReadWriteFlags::NOWAIT;
    match preadv2(&descriptor, &mut into, CURRENT, nowait) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::SPIPE) if check(&descriptor).is_ok() => {
            let _ = read(descriptor, &mut bytes);
        }
        _ => {}
    }
}

fn check(descriptor: impl AsFd) -> Result<(), Errno> {
    match fcntl_getfl(descriptor)?.contains(OFlags::NONBLOCK) {
        true => Ok(()),
        false => Err(Errno::AGAIN),
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    /// Ends the test's process if a call does not return.
    fn in_time(work: impl FnOnce() + Send + 'static) {
        let thread = std::thread::spawn(work);
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !thread.is_finished() {
            assert!(std::time::Instant::now() < until, "a call that blocks");
            std::thread::yield_now();
        }
        thread.join().expect("no assertion failed");
    }

    #[test]
    fn a_blocking_eventfd_of_the_front_end_blocks_no_call() {
        let event = eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd");
        let event = non_blocking(Some(event)).expect("non-blocking");
        assert_eq!(signal(&event), Ok(()));
        write(&event, &(u64::MAX - 2).to_ne_bytes()).expect("room for so many");
        assert_eq!(signal(&event), Err(Errno::AGAIN), "it is full");
        fcntl_setfl(&event, OFlags::empty()).expect("flags");
        in_time(move || {
            assert_eq!(signal(&event), Err(Errno::AGAIN), "full and blocking");
            clear(&event);
            clear(&event);
            assert_eq!(signal(&event), Err(Errno::AGAIN), "empty and blocking");
            assert!(non_blocking(event.try_clone().ok()).is_some());
            assert_eq!(signal(&event), Ok(()));
        });
    }
}
