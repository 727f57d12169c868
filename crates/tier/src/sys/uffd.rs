//! userfaultfd(2): the calls of `linux/userfaultfd.h` that page migration needs.
//!
//! `UFFDIO_MOVE` came with Linux 6.8. Every call gives back the error number, because what
//! happens next depends on it.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::errno;

/// Writes to protected pages are messages.
pub const FEATURE_WP: u64 = 1 << 0;
/// Forks are messages, and the memory of the child stays registered. It needs CAP_SYS_PTRACE.
pub const FEATURE_EVENT_FORK: u64 = 1 << 1;
/// Moves of mappings are messages, and moved mappings stay registered.
pub const FEATURE_EVENT_REMAP: u64 = 1 << 2;
/// `MADV_DONTNEED` is a message.
pub const FEATURE_EVENT_REMOVE: u64 = 1 << 3;
/// `munmap` is a message.
pub const FEATURE_EVENT_UNMAP: u64 = 1 << 6;
/// The kernel takes write protection away itself.
pub const FEATURE_WP_ASYNC: u64 = 1 << 15;
/// `UFFDIO_MOVE` exists.
pub const FEATURE_MOVE: u64 = 1 << 16;

/// Faults on pages that are missing.
pub const REGISTER_MISSING: u64 = 1;
/// Faults on pages that are write-protected.
pub const REGISTER_WP: u64 = 2;

const API: u64 = 0xaa;
const IOC_API: u64 = 0xc018_aa3f;
const IOC_REGISTER: u64 = 0xc020_aa00;
const IOC_UNREGISTER: u64 = 0x8010_aa01;
const IOC_WAKE: u64 = 0x8010_aa02;
const IOC_COPY: u64 = 0xc028_aa03;
const IOC_ZEROPAGE: u64 = 0xc020_aa04;
const IOC_MOVE: u64 = 0xc028_aa05;
const IOC_WRITEPROTECT: u64 = 0xc018_aa06;
const IOC_NEW: u64 = 0xaa00;

const EVENT_PAGEFAULT: u8 = 0x12;
const EVENT_FORK: u8 = 0x13;
const EVENT_REMAP: u8 = 0x14;
const EVENT_REMOVE: u8 = 0x15;
const EVENT_UNMAP: u8 = 0x16;
const PAGEFAULT_FLAG_WP: u64 = 1 << 1;

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Range {
    start: u64,
    len: u64,
}

#[repr(C)]
struct Register {
    range: Range,
    mode: u64,
    ioctls: u64,
}

/// `uffdio_copy` and `uffdio_move`, which are the same.
#[repr(C)]
struct Transfer {
    dst: u64,
    src: u64,
    len: u64,
    mode: u64,
    done: i64,
}

#[repr(C)]
struct Zeropage {
    range: Range,
    mode: u64,
    done: i64,
}

#[repr(C)]
struct Writeprotect {
    range: Range,
    mode: u64,
}

/// `uffd_msg`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Message {
    event: u8,
    reserved: [u8; 7],
    arguments: [u64; 3],
}

const _: () = assert!(size_of::<Api>() == 24);
const _: () = assert!(size_of::<Register>() == 32);
const _: () = assert!(size_of::<Transfer>() == 40);
const _: () = assert!(size_of::<Zeropage>() == 32);
const _: () = assert!(size_of::<Writeprotect>() == 24);
const _: () = assert!(size_of::<Message>() == 32);

/// What the kernel reports about registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A thread waits for a page that is missing.
    Missing {
        /// Address of the access.
        address: u64,
    },
    /// A thread waits to write to a protected page.
    Protected {
        /// Address of the access.
        address: u64,
    },
    /// The process has a child with memory of its own, by whatever call.
    Fork {
        /// The userfaultfd of the child's memory, in the table of files of the thread that read this.
        child: RawFd,
    },
    /// A mapping has been moved (mremap).
    Remap {
        /// Where it was.
        from: u64,
        /// Where it is.
        to: u64,
        /// Bytes.
        len: u64,
    },
    /// Pages will be dropped (`MADV_DONTNEED`).
    Remove {
        /// First byte.
        start: u64,
        /// Behind the last.
        end: u64,
    },
    /// Memory has been unmapped.
    Unmap {
        /// First byte.
        start: u64,
        /// Behind the last.
        end: u64,
    },
}

impl Event {
    /// A thread waits for a page; otherwise the layout changes.
    pub fn is_fault(&self) -> bool {
        matches!(self, Event::Missing { .. } | Event::Protected { .. })
    }
}

/// How far a transfer got: bytes done, and the error number that stopped it.
pub type Partial = (u64, i32);

/// One userfaultfd.
#[derive(Debug)]
pub struct Uffd {
    fd: OwnedFd,
    features: u64,
}

impl Uffd {
    /// Opens one with these features, by the system call or by `/dev/userfaultfd`.
    ///
    /// # Errors
    /// The error number: `EPERM` where it is forbidden, `EINVAL` where a feature is missing.
    pub fn open(features: u64) -> Result<Uffd, i32> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
        // SAFETY: it takes flags alone.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) } as i32;
        let fd = if fd >= 0 {
            fd
        } else {
            let refused = errno();
            let device = File::options()
                .read(true)
                .write(true)
                .open("/dev/userfaultfd")
                .map_err(|_| refused)?;
            // SAFETY: it takes flags alone.
            let fd = unsafe { libc::ioctl(device.as_raw_fd(), IOC_NEW, flags) };
            if fd < 0 {
                return Err(errno());
            }
            fd
        };
        // SAFETY: the kernel has just given it to us.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut api = Api {
            api: API,
            features,
            ioctls: 0,
        };
        // SAFETY: the structure is the one that the call takes.
        if unsafe { libc::ioctl(fd.as_raw_fd(), IOC_API, &raw mut api) } != 0 {
            return Err(errno());
        }
        Ok(Uffd { fd, features })
    }

    /// The one of a child, from [`Event::Fork`].
    ///
    /// # Safety
    /// The descriptor is open, and nobody else's.
    pub unsafe fn of_child(&self, child: RawFd) -> Uffd {
        // SAFETY: the caller's promise.
        let fd = unsafe { OwnedFd::from_raw_fd(child) };
        let features = self.features;
        Uffd { fd, features }
    }

    /// The features it was opened with.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// Registers memory.
    ///
    /// # Errors
    /// The error number: `EBUSY` if another userfaultfd has it, `EINVAL` if it is no memory that
    /// can be registered.
    pub fn register(&self, start: u64, len: u64, mode: u64) -> Result<(), i32> {
        let mut register = Register {
            range: Range { start, len },
            mode,
            ioctls: 0,
        };
        // SAFETY: the structure is the one that the call takes; it changes no memory.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_REGISTER, &raw mut register) })
    }

    /// Unregisters memory, and wakes the threads that wait for it.
    ///
    /// # Errors
    /// The error number.
    pub fn unregister(&self, start: u64, len: u64) -> Result<(), i32> {
        let mut range = Range { start, len };
        // SAFETY: as above.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_UNREGISTER, &raw mut range) })
    }

    /// Wakes threads that wait for these pages; they look again.
    pub fn wake(&self, start: u64, len: u64) {
        let mut range = Range { start, len };
        // It fails for a range that is none, and then no thread waits there.
        // SAFETY: as above.
        let _ = unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_WAKE, &raw mut range) };
    }

    /// Protects pages from writes, or removes the protection and wakes the waiting threads.
    ///
    /// # Errors
    /// The error number: `ENOENT` if the memory is not registered (any more), `EAGAIN` while
    /// the layout changes.
    pub fn write_protect(&self, start: u64, len: u64, on: bool) -> Result<(), i32> {
        let mut protect = Writeprotect {
            range: Range { start, len },
            mode: u64::from(on),
        };
        // SAFETY: as above.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_WRITEPROTECT, &raw mut protect) })
    }

    /// Whether a change of layout is in progress: a thread unmaps, moves or drops pages of registered memory,
    /// or has done so and the event has not been read. `page` is registered, but not for protection.
    pub fn is_layout_changing(&self, page: u64) -> bool {
        // The kernel looks at that first, and at the memory then.
        self.write_protect(page, crate::sys::PAGE, false) == Err(libc::EAGAIN)
    }

    /// Moves page frames from `src` to `dst`, which is registered and empty.
    ///
    /// # Errors
    /// How many bytes were moved, and the error number. Linux since 6.18 moves pages without counting them
    /// when it had to try again within a call (`move_pages` in mm/userfaultfd.c: `err` stays `-EAGAIN`
    /// where `move_pages_ptes` has succeeded, so that the same page is tried once more): that call, or the
    /// next, returns `EEXIST` for a page that is at `dst` already. If `dst` was empty before, `EEXIST` means that
    /// the page has moved.
    ///
    /// # Safety
    /// The content of `src` is gone afterwards: no reference into it may be left.
    pub unsafe fn move_pages(
        &self,
        dst: u64,
        src: u64,
        len: u64,
        wake: bool,
    ) -> Result<(), Partial> {
        // UFFDIO_MOVE_MODE_DONTWAKE
        self.transfer(IOC_MOVE, dst, src, len, u64::from(!wake))
    }

    /// Fills missing pages at `dst` with a copy of `src`.
    ///
    /// # Errors
    /// How many bytes were copied, and the error number.
    pub fn copy(&self, dst: u64, src: u64, len: u64) -> Result<(), Partial> {
        self.transfer(IOC_COPY, dst, src, len, 0)
    }

    fn transfer(&self, call: u64, dst: u64, src: u64, len: u64, mode: u64) -> Result<(), Partial> {
        let mut transfer = Transfer {
            dst,
            src,
            len,
            mode,
            done: 0,
        };
        // SAFETY: the structure is the one that both calls take; the caller answers for the memory.
        if unsafe { libc::ioctl(self.fd.as_raw_fd(), call, &raw mut transfer) } == 0 {
            return Ok(());
        }
        let error = errno();
        let done = u64::try_from(transfer.done).unwrap_or(0);
        // A transfer that stopped half way says EAGAIN; the next call fails with the reason.
        Err((done, error))
    }

    /// Fills missing pages with zeros, and wakes the waiting threads.
    ///
    /// # Errors
    /// How many bytes were filled, and the error number.
    pub fn zero(&self, start: u64, len: u64) -> Result<(), Partial> {
        let mut zero = Zeropage {
            range: Range { start, len },
            mode: 0,
            done: 0,
        };
        // SAFETY: as above.
        if unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_ZEROPAGE, &raw mut zero) } == 0 {
            return Ok(());
        }
        let error = errno();
        Err((u64::try_from(zero.done).unwrap_or(0), error))
    }

    /// Takes messages, as many as there are and `into` can hold. It does not wait.
    pub fn read(&self, into: &mut Vec<Event>) -> usize {
        const AT_ONCE: usize = 32;
        let mut messages = [Message {
            event: 0,
            reserved: [0; 7],
            arguments: [0; 3],
        }; AT_ONCE];
        // SAFETY: the buffer has so many bytes.
        let got = unsafe {
            libc::read(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr().cast(),
                size_of_val(&messages),
            )
        };
        let count = usize::try_from(got).unwrap_or(0) / size_of::<Message>();
        into.extend(messages[..count].iter().filter_map(decode));
        count
    }
}

impl AsRawFd for Uffd {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

fn check(answer: i32) -> Result<(), i32> {
    match answer {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

fn decode(message: &Message) -> Option<Event> {
    let [a, b, c] = message.arguments;
    Some(match message.event {
        // flags, address, thread.
        EVENT_PAGEFAULT if a & PAGEFAULT_FLAG_WP != 0 => Event::Protected { address: b },
        EVENT_PAGEFAULT => Event::Missing { address: b },
        // A number of 32 bits, and nothing behind it.
        EVENT_FORK => Event::Fork {
            child: a as u32 as RawFd,
        },
        EVENT_REMAP => Event::Remap {
            from: a,
            to: b,
            len: c,
        },
        EVENT_REMOVE => Event::Remove { start: a, end: b },
        EVENT_UNMAP => Event::Unmap { start: a, end: b },
        _ => return None,
    })
}

/// What decides whether this process may have a userfaultfd that sees the kernel's own accesses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Permission {
    /// `vm.unprivileged_userfaultfd`, if it can be read.
    pub sysctl: Option<u8>,
    /// The process has CAP_SYS_PTRACE, which permits it as well.
    pub capable: bool,
    /// A seccomp filter is in force, as in most containers.
    pub filtered: bool,
}

impl Permission {
    /// That of this process.
    pub fn own() -> Permission {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let sysctl = read("/proc/sys/vm/unprivileged_userfaultfd");
        Permission {
            sysctl: sysctl.trim().parse().ok(),
            ..Permission::of_status(&read("/proc/self/status"))
        }
    }

    /// What `/proc/self/status` says of it.
    fn of_status(status: &str) -> Permission {
        /// Bit of the capability (capabilities(7)), and `SECCOMP_MODE_FILTER`.
        const SYS_PTRACE: u32 = 19;
        const FILTER: &str = "2";
        let field = |name: &str| {
            let mut lines = status.lines();
            lines.find_map(|line| Some(line.strip_prefix(name)?.trim()))
        };
        let capabilities = field("CapEff:").and_then(|text| u64::from_str_radix(text, 16).ok());
        Permission {
            sysctl: None,
            capable: capabilities.is_some_and(|all| all >> SYS_PTRACE & 1 == 1),
            filtered: field("Seccomp:") == Some(FILTER),
        }
    }

    /// The setting forbids it.
    pub fn by_sysctl(&self) -> bool {
        !self.capable && self.sysctl == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_refusal_is_read_from_status() {
        let status =
            "Name:\tx\nCapInh:\t0000000000080000\nCapEff:\t0000000000000000\nSeccomp:\t2\n";
        let filtered = Permission::of_status(status);
        assert_eq!((filtered.capable, filtered.filtered), (false, true));
        let capable = status.replace("CapEff:\t0000000000000000", "CapEff:\t0000000000080000");
        assert!(Permission::of_status(&capable).capable);
        let free = Permission::of_status("");
        assert_eq!(free, Permission::default());
        let by_sysctl = |sysctl, capable| {
            let all = Permission {
                sysctl,
                capable,
                filtered: true,
            };
            all.by_sysctl()
        };
        assert!(by_sysctl(Some(0), false));
        assert!(!by_sysctl(Some(0), true) && !by_sysctl(Some(1), false) && !by_sysctl(None, false));
    }

    #[test]
    fn messages_are_decoded() {
        let message = |event, arguments| Message {
            event,
            reserved: [0; 7],
            arguments,
        };
        assert_eq!(
            decode(&message(EVENT_PAGEFAULT, [2, 0x1000, 0])),
            Some(Event::Protected { address: 0x1000 })
        );
        assert_eq!(
            decode(&message(EVENT_PAGEFAULT, [1, 0x1000, 0])),
            Some(Event::Missing { address: 0x1000 })
        );
        assert_eq!(
            decode(&message(EVENT_FORK, [7 | 1 << 32, 0, 0])),
            Some(Event::Fork { child: 7 })
        );
        assert_eq!(decode(&message(0x17, [1, 2, 3])), None);
    }
}
