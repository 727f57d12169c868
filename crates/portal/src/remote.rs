//! One mapping of a portal of the device in the other process.

use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use dray_ring::{
    AttachError, Attachment, CALL_STACK, MemoryCall, Moment, NotedCall, Origin, RegionLayout,
    RemotePortal,
};
use dray_spec::{Portal as DevicePortal, Submission};
use dray_wire::{Node, Unmapped};
use rustix::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use rustix::net::{SendFlags, send};
use zerocopy::{IntoBytes, transmute};

use crate::connect::{HIGH, connect};
use crate::give_way::{record_status, stack, until_ended, until_room};
use crate::moment;
use crate::place::Place;
use crate::process::is_guest;
use crate::quiet::is_quiet;
use crate::redirect::redirection;
use crate::submit::{Caller, Portal, Submit, Words};
use crate::syscall::{close, pid, syscall, tid};
use crate::table::PORTALS;
use crate::tsan::{self, Queue};

/// As many as a process may map.
const MAPPINGS: usize = PORTALS;
/// In place of a descriptor: the entry is free; a thread has claimed it and is about to map.
const FREE: i32 = -1;
const CLAIMED: i32 = -2;
/// Numbers of registers.
const RSP: u8 = 4;
const RBP: u8 = 5;

/// Mappings with equal keys differ only in their connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// The memory of the rings.
    pub(crate) file: (u64, u64),
    /// The queue.
    pub(crate) wq: u16,
    /// The name to sign with.
    pub(crate) client: u16,
    /// The address space.
    pub(crate) pasid: u32,
}

/// Kept for ever, and used again: a thread may be writing while another unmaps.
struct Remote {
    key: Key,
    portal: RemotePortal,
    connection: AtomicI32,
    /// Inode of the socket: a program that closes all descriptors may have opened another file under this number.
    socket: AtomicU64,
    /// Of the node, for the [last message](Unmapped).
    cookie: AtomicU64,
    /// Number of the process that mapped it: a child of fork inherits the entry, not the mapping.
    owner: AtomicU32,
    /// The stack of the thread that submitted last, while the device waited for a processor.
    last: AtomicUsize,
}

/// A [`Remote`] and how the table of portals names it.
struct Entry {
    remote: &'static Remote,
    portal: &'static Portal,
}

static ENTRIES: [AtomicPtr<Entry>; MAPPINGS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MAPPINGS];

/// Places that have had an entry, from the first on.
static USED: AtomicUsize = AtomicUsize::new(0);

fn entries() -> impl Iterator<Item = &'static Entry> {
    let used = ENTRIES.iter().take(USED.load(Ordering::Acquire));
    used.filter_map(|place| {
        // SAFETY: what is stored lives for ever.
        unsafe { place.load(Ordering::Acquire).as_ref() }
    })
}

/// The first connection of a mapping among the descriptors from `first` to `last`.
pub(crate) fn connection_within(first: i32, last: i32) -> Option<i32> {
    let connection = |entry: &Entry| entry.remote.connection.load(Ordering::Relaxed);
    let ours = |fd: &i32| *fd >= 0 && (first..=last).contains(fd);
    entries().map(connection).filter(ours).min()
}

/// Whether this is the connection of a mapping.
pub(crate) fn is_connection(fd: i32) -> bool {
    connection_within(fd, fd).is_some()
}

/// Has the devices of all mappings look for descriptors by themselves.
pub(crate) fn begin_polling() {
    for entry in entries() {
        if entry.remote.owner.load(Ordering::Relaxed) == pid() {
            entry.remote.portal.begin_polling();
        }
    }
}

/// Says to the devices of all mappings that want to know that the program is about to take memory away. `place`: where in the
/// program.
#[inline(never)]
pub(crate) fn note_call(call: MemoryCall, memory: (usize, usize), place: &Place) {
    if USED.load(Ordering::Relaxed) == 0 || is_quiet() || is_guest() || memory.1 == 0 {
        return;
    }
    let process = pid();
    let traced = |entry: &&Entry| {
        entry.remote.owner.load(Ordering::Relaxed) == process && entry.remote.portal.is_traced()
    };
    for entry in entries().filter(traced) {
        let noted = NotedCall {
            call,
            pasid: entry.remote.key.pasid,
            memory: (memory.0 as u64, memory.1 as u64),
            origin: Origin {
                thread: tid(),
                site: place.site,
                stack: place.stack,
                frame: place.frame,
                record: None,
                at: Moment::default(),
            },
        };
        let mut stack = [0; CALL_STACK / 8];
        let read = place.read_stack(&mut stack);
        entry.remote.portal.note_call(&noted, &stack[..read]);
    }
}

/// Gives a connection another number, so that the program may have this one.
pub(crate) fn vacate(fd: i32) {
    let at = |entry: &&Entry| entry.remote.connection.load(Ordering::Relaxed) == fd;
    // The other process of vfork has descriptors of its own.
    if fd < 0 || is_guest() {
        return;
    }
    if let Some(entry) = entries().find(at) {
        let arguments = [
            fd as usize,
            libc::F_DUPFD_CLOEXEC as usize,
            HIGH as usize,
            0,
            0,
            0,
        ];
        // SAFETY: the connection is ours.
        let Ok(other) = (unsafe { syscall(libc::SYS_fcntl, arguments) }) else {
            return;
        };
        let (place, order) = (&entry.remote.connection, Ordering::AcqRel);
        let moved = place.compare_exchange(fd, other as i32, order, Ordering::Relaxed);
        if moved.is_err() {
            close(other as i32);
        }
    }
}

/// The file behind a descriptor, as a number that is not 0.
fn socket(fd: i32) -> Option<u64> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::zeroed();
    let arguments = [fd as usize, stat.as_mut_ptr().addr(), 0, 0, 0, 0];
    // SAFETY: there is room for what it writes.
    unsafe { syscall(libc::SYS_fstat, arguments) }.ok()?;
    // SAFETY: it has been written, and zeros were one.
    let stat = unsafe { stat.assume_init() };
    (stat.st_mode & libc::S_IFMT == libc::S_IFSOCK).then_some(stat.st_ino)
}

/// A mapping with this connection, which it keeps; `None` if there are too many.
///
/// # Errors
/// The rings cannot be mapped.
pub(crate) fn mapping(
    key: Key,
    node: &Node,
    rings: impl AsFd,
    shape: RegionLayout,
    connection: OwnedFd,
) -> Result<Option<&'static Portal>, AttachError> {
    let order = Ordering::AcqRel;
    let process = pid();
    let ours = |entry: &&Entry| entry.remote.owner.load(Ordering::Relaxed) == process;
    let same = || {
        entries()
            .filter(|entry| entry.remote.key == key)
            .filter(ours)
    };
    for entry in same() {
        let place = &entry.remote.connection;
        let claimed = place.compare_exchange(FREE, CLAIMED, order, Ordering::Relaxed);
        if claimed.is_ok() {
            let number = socket(connection.as_raw_fd()).unwrap_or(0);
            entry.remote.owner.store(pid(), Ordering::Relaxed);
            entry.remote.socket.store(number, Ordering::Relaxed);
            entry.remote.cookie.store(node.cookie, Ordering::Relaxed);
            place.store(connection.into_raw_fd(), Ordering::Release);
            return Ok(Some(entry.portal));
        }
    }
    let known = same().next().map(|entry| entry.remote.portal.clone());
    let portal = match known {
        Some(portal) => Some(portal),
        None => Attachment::new(rings, shape, key.client)?.portal(DevicePortal {
            wq: key.wq,
            // The driver maps the limited one (`drivers/dma/idxd/cdev.c`).
            limited: true,
        }),
    };
    let (Some(portal), Some(place)) = (portal, vacant()) else {
        return Ok(None);
    };
    let remote: &'static Remote = Box::leak(Box::new(Remote {
        key,
        portal,
        socket: AtomicU64::new(socket(connection.as_raw_fd()).unwrap_or(0)),
        connection: AtomicI32::new(connection.into_raw_fd()),
        cookie: AtomicU64::new(node.cookie),
        owner: AtomicU32::new(pid()),
        last: AtomicUsize::new(0),
    }));
    let portal = Portal::leak(match tsan::is_active() {
        true => tsan::watched(
            remote,
            Queue {
                device: node.device,
                wq: node.wq,
            },
        ),
        false => remote,
    });
    let entry = Box::into_raw(Box::new(Entry { remote, portal }));
    let null = std::ptr::null_mut();
    let (mut index, mut place) = place;
    while place
        .compare_exchange(null, entry, order, Ordering::Relaxed)
        .is_err()
    {
        let Some(next) = vacant() else {
            remote.unmapped();
            return Ok(None);
        };
        (index, place) = next;
    }
    USED.fetch_max(index + 1, Ordering::AcqRel);
    Ok(Some(portal))
}

fn vacant() -> Option<(usize, &'static AtomicPtr<Entry>)> {
    let mut places = ENTRIES.iter().enumerate();
    places.find(|(_, place)| place.load(Ordering::Relaxed).is_null())
}

/// In a child: connections and rings are its parent's. It has none of the mappings, so what it maps
/// itself is not to be found among them. A handler of the program that ran before this one may have
/// mapped portals already, which are the child's own and stay.
pub(crate) fn forked() {
    let child = pid();
    for place in ENTRIES.iter().take(USED.load(Ordering::Acquire)) {
        // SAFETY: what is stored lives for ever.
        let Some(entry) = (unsafe { place.load(Ordering::Acquire).as_ref() }) else {
            continue;
        };
        let remote = entry.remote;
        if remote.owner.load(Ordering::Relaxed) == child {
            continue;
        }
        let fd = remote.connection.swap(FREE, Ordering::AcqRel);
        if remote.is_connection(fd) {
            close(fd);
        }
        place.store(std::ptr::null_mut(), Ordering::Release);
    }
}

impl Remote {
    /// A posted write where there is more to do.
    #[cold]
    fn post_delayed(&self, words: &Words, caller: Caller<'_>) {
        let descriptor = transmute!(*words);
        let origin = self.origin(caller, words);
        match &origin {
            Some(origin) => self.portal.write_posted_from(&descriptor, origin),
            None => self.portal.write_posted(&descriptor),
        };
        self.give_way(words);
        moment::returns(origin);
    }

    /// A deferrable write where there is more to do.
    #[cold]
    fn enqueue_delayed(&self, words: &Words, caller: Caller<'_>) -> bool {
        let descriptor = transmute!(*words);
        let origin = self.origin(caller, words);
        let answer = match &origin {
            Some(origin) => self.portal.enqueue_from(&descriptor, origin),
            None => self.portal.enqueue(&descriptor),
        };
        match answer {
            Submission::Accepted => self.give_way(words),
            _ => until_room(&self.portal),
        }
        moment::returns(origin);
        answer == Submission::Accepted
    }

    /// Where it is submitted, if that is wanted. Where calls of the kernel may be forbidden the process stands for the thread.
    fn origin(&self, caller: Caller<'_>, words: &Words) -> Option<Origin> {
        self.portal.is_traced().then(|| {
            let cycles = moment::cycles();
            let quiet = is_quiet();
            let thread = match quiet {
                true => self.owner.load(Ordering::Relaxed),
                false => tid(),
            };
            let timed = !quiet && self.portal.is_timed();
            Origin {
                thread,
                site: caller.site,
                stack: caller.registers.get(RSP),
                frame: caller.registers.get(RBP),
                record: (!quiet).then(|| record_status(words)).flatten(),
                at: Moment {
                    cycles,
                    returned: moment::returned(thread),
                    cpu_ns: if timed { moment::cpu_ns() } else { 0 },
                },
            }
        })
    }

    /// The device waits for a processor, or looks at what was submitted, and has accepted a descriptor.
    fn give_way(&self, words: &Words) {
        let stack = stack();
        let alone = self.last.swap(stack, Ordering::Relaxed) == stack;
        until_ended(&self.portal, words, alone);
    }

    /// Whether its connection is still behind this number.
    fn is_connection(&self, fd: i32) -> bool {
        fd >= 0 && socket(fd) == Some(self.socket.load(Ordering::Relaxed))
    }
}

impl Submit for Remote {
    #[inline]
    fn post(&self, words: &Words, caller: Caller<'_>) {
        match self.portal.is_delayed() {
            false => _ = self.portal.write_posted(&transmute!(*words)),
            true => self.post_delayed(words, caller),
        }
    }

    #[inline]
    fn enqueue(&self, words: &Words, caller: Caller<'_>) -> bool {
        let mut words = *words;
        // PASID in bits 0 to 19, and bit 31, privilege, 0 (spec 3.3; SDM, ENQCMD).
        words[0] = words[0] & !u64::from(u32::MAX) | u64::from(self.key.pasid & 0xf_ffff);
        match self.portal.is_delayed() {
            false => self.portal.enqueue(&transmute!(words)) == Submission::Accepted,
            true => self.enqueue_delayed(&words, caller),
        }
    }

    fn unmapped(&self) {
        // The kernel reports the end of the page; without one that is a file's, the end of the process.
        if is_quiet() {
            return;
        }
        let fd = self.connection.swap(CLAIMED, Ordering::AcqRel);
        let message = Unmapped::new(self.cookie.load(Ordering::Relaxed));
        if self.is_connection(fd) {
            let bytes = message.as_bytes();
            let flags = (libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) as usize;
            let arguments = [fd as usize, bytes.as_ptr().addr(), bytes.len(), flags, 0, 0];
            // SAFETY: the connection is ours, and the message is read alone.
            let _ = unsafe { syscall(libc::SYS_sendto, arguments) };
            let both = libc::SHUT_RDWR as usize;
            // A child that was forked by other ways than fork holds it too.
            // SAFETY: the connection is ours.
            let _ = unsafe { syscall(libc::SYS_shutdown, [fd as usize, both, 0, 0, 0, 0]) };
            close(fd);
        } else if fd >= 0 && redirection().is_some() {
            // The program has closed the connection. Without redirection the kernel reports the end of the mapping.
            let _ = connect().map(|again| send(&again, message.as_bytes(), SendFlags::NOSIGNAL));
        }
        self.connection.store(FREE, Ordering::Release);
    }
}
