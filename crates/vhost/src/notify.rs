//! Eventfds that a front end sends: to be notified, and to notify.
//!
//! The front end shares their flags and their counter. It may clear O_NONBLOCK at any time, so that a
//! read of 0 or a write to a full counter would never return, and with it the thread that serves all
//! ports. What is read is read without waiting, whatever the flags are (`RWF_NOWAIT`). eventfd(2) has no such
//! write; but the kernel itself adds to a counter without waiting when a request of io_submit(2) with
//! `IOCB_FLAG_RESFD` ends. So a notification is a request that reads nothing from an empty file.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, OFlags, fcntl_getfl, fcntl_setfl, memfd_create};
use rustix::io::{Errno, ReadWriteFlags, preadv2, read};

use crate::VhostError;

/// Ends of requests that the kernel keeps until they are taken; it rounds them up.
const ENDS: usize = 256;
/// Requests tried for one notification: other threads fill what one has emptied.
const TRIES: usize = 16;

/// `struct iocb` (linux/aio_abi.h).
#[derive(Debug, Default)]
#[repr(C)]
struct Request {
    data: u64,
    key_and_flags: u64,
    /// 0: pread.
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    /// 1: `IOCB_FLAG_RESFD`.
    flags: u32,
    notifies: u32,
}

/// `struct io_event` (linux/aio_abi.h).
#[derive(Debug, Default, Clone, Copy)]
#[repr(C)]
struct End([u64; 4]);

/// Where requests go that notify. All threads share it.
#[derive(Debug)]
struct Notifier {
    context: libc::c_ulong,
    empty: OwnedFd,
}

impl Notifier {
    fn new() -> io::Result<Notifier> {
        let empty = memfd_create(c"dray-notify", MemfdFlags::CLOEXEC)?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes the context alone.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, ENDS, &raw mut context) };
        match result {
            0 => Ok(Notifier { context, empty }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn signal(&self, event: impl AsFd) -> Result<(), Errno> {
        let mut request = Request {
            file: self.empty.as_raw_fd() as u32,
            flags: 1,
            notifies: event.as_fd().as_raw_fd() as u32,
            ..Request::default()
        };
        for _ in 0..TRIES {
            let mut list = [&raw mut request];
            // SAFETY: one request, of no byte; it ends within the call.
            let submitted =
                unsafe { libc::syscall(libc::SYS_io_submit, self.context, 1, list.as_mut_ptr()) };
            if submitted == 1 {
                return Ok(());
            }
            match io::Error::last_os_error().raw_os_error() {
                // The list of ends is full.
                Some(libc::EAGAIN) => self.take_ends(),
                error => return Err(Errno::from_raw_os_error(error.unwrap_or(libc::EIO))),
            }
        }
        Err(Errno::AGAIN)
    }

    fn take_ends(&self) {
        let mut ends = [End::default(); ENDS];
        let no_time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the list has room for so many. Their number and contents are of no interest.
        unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                0,
                ENDS,
                ends.as_mut_ptr(),
                ptr::from_ref(&no_time),
            )
        };
    }
}

fn notifier() -> Result<&'static Notifier, Errno> {
    static NOTIFIER: OnceLock<Result<Notifier, Errno>> = OnceLock::new();
    let new = || Notifier::new().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    NOTIFIER.get_or_init(new).as_ref().map_err(|error| *error)
}

/// Makes ready what [`signal`] needs.
///
/// # Errors
/// The kernel has no asynchronous I/O, or no more of it (fs.aio-max-nr).
pub(crate) fn prepare() -> Result<(), VhostError> {
    match notifier() {
        Ok(_) => Ok(()),
        Err(error) => Err(VhostError::Notifier(error.into())),
    }
}

/// Makes a front end's eventfd non-blocking. None if that is not possible: the queue then does
/// without.
pub(crate) fn non_blocking(descriptor: Option<OwnedFd>) -> Option<OwnedFd> {
    let descriptor = descriptor?;
    let flags = fcntl_getfl(&descriptor).ok()?;
    fcntl_setfl(&descriptor, flags | OFlags::NONBLOCK).ok()?;
    Some(descriptor)
}

/// Adds 1 to an eventfd's counter, which ends at its highest value. Never blocks.
///
/// # Errors
/// It is no eventfd, or what [`prepare`] says.
pub(crate) fn signal(descriptor: impl AsFd) -> Result<(), Errno> {
    notifier()?.signal(descriptor)
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
    use rustix::io::write;

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
        fcntl_setfl(&event, OFlags::empty()).expect("flags");
        in_time(move || {
            // Full, and blocking.
            assert_eq!(signal(&event), Ok(()));
            assert_eq!(signal(&event), Ok(()));
            clear(&event);
            // Empty, and blocking.
            clear(&event);
            assert_eq!(signal(&event), Ok(()));
            let mut count = [0; 8];
            assert_eq!(read(&event, &mut count), Ok(8));
            assert_eq!(u64::from_ne_bytes(count), 1);
        });
    }

    #[test]
    fn each_signal_counts_with_several_threads() {
        const EACH: u64 = 10_000;
        let event = eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd");
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..EACH).for_each(|_| signal(&event).expect("an eventfd")));
            }
        });
        let mut count = [0; 8];
        assert_eq!(read(&event, &mut count), Ok(8));
        assert_eq!(u64::from_ne_bytes(count), 3 * EACH);
    }

    #[test]
    fn what_is_no_eventfd_is_not_signalled() {
        let file = memfd_create(c"file", MemfdFlags::CLOEXEC).expect("a memfd");
        assert_eq!(signal(&file), Err(Errno::INVAL));
        assert_eq!(rustix::fs::fstat(&file).expect("it is open").st_size, 0);
    }
}
