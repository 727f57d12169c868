//! One mapping of a portal of the device in the other process.

use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

use dray_ring::{AttachError, Attachment, RegionLayout, RemotePortal};
use dray_spec::{Portal as DevicePortal, Submission};
use rustix::fd::{AsFd, IntoRawFd, OwnedFd};
use zerocopy::transmute;

use crate::give_way::until_ended;
use crate::submit::{Portal, Submit, Words};
use crate::syscall::{close, pid, syscall};

/// As many as there are places in the table of portals.
const MAPPINGS: usize = 256;
/// In place of a descriptor: nothing is mapped; somebody is about to.
const FREE: i32 = -1;
const CLAIMED: i32 = -2;

/// What makes two mappings the same but for their connection.
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
    /// Number of the process that mapped it: a child of fork inherits the entry, not the mapping.
    owner: AtomicU32,
}

/// A [`Remote`] and how the table of portals names it.
struct Entry {
    remote: &'static Remote,
    portal: &'static Portal,
}

static ENTRIES: [AtomicPtr<Entry>; MAPPINGS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MAPPINGS];

fn entries() -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter().filter_map(|place| {
        // SAFETY: what is stored lives for ever.
        unsafe { place.load(Ordering::Acquire).as_ref() }
    })
}

/// Whether this is the connection of a mapping.
pub(crate) fn is_connection(fd: i32) -> bool {
    fd >= 0 && entries().any(|entry| entry.remote.connection.load(Ordering::Relaxed) == fd)
}

/// A mapping with this connection, which it keeps; `None` if there are too many.
///
/// # Errors
/// The rings cannot be mapped.
pub(crate) fn mapping(
    key: Key,
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
            entry.remote.owner.store(pid(), Ordering::Relaxed);
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
        connection: AtomicI32::new(connection.into_raw_fd()),
        owner: AtomicU32::new(pid()),
    }));
    let portal = Portal::leak(remote);
    let entry = Box::into_raw(Box::new(Entry { remote, portal }));
    let null = std::ptr::null_mut();
    let mut place = place;
    while place
        .compare_exchange(null, entry, order, Ordering::Relaxed)
        .is_err()
    {
        let Some(next) = vacant() else {
            remote.unmapped();
            return Ok(None);
        };
        place = next;
    }
    Ok(Some(portal))
}

fn vacant() -> Option<&'static AtomicPtr<Entry>> {
    ENTRIES
        .iter()
        .find(|place| place.load(Ordering::Relaxed).is_null())
}

/// In a child: connections and rings are its parent's. It has none of the mappings, so what it maps
/// itself is not to be found among them. A handler of the program that ran before this one may have
/// mapped portals already, which are the child's own and stay.
pub(crate) fn forked() {
    let child = pid();
    for place in &ENTRIES {
        // SAFETY: what is stored lives for ever.
        let Some(entry) = (unsafe { place.load(Ordering::Acquire).as_ref() }) else {
            continue;
        };
        let remote = entry.remote;
        if remote.owner.load(Ordering::Relaxed) == child {
            continue;
        }
        let fd = remote.connection.swap(FREE, Ordering::AcqRel);
        if fd >= 0 {
            close(fd);
        }
        place.store(std::ptr::null_mut(), Ordering::Release);
    }
}

impl Submit for Remote {
    #[inline]
    fn post(&self, words: &Words) {
        self.portal.write_posted(&transmute!(*words));
        if self.portal.is_delayed() {
            until_ended(words);
        }
    }

    #[inline]
    fn enqueue(&self, words: &Words) -> bool {
        let mut words = *words;
        // PASID in bits 0 to 19, and bit 31, privilege, 0 (spec 3.3; SDM, ENQCMD).
        words[0] = words[0] & !u64::from(u32::MAX) | u64::from(self.key.pasid & 0xf_ffff);
        let accepted = self.portal.enqueue(&transmute!(words)) == Submission::Accepted;
        if self.portal.is_delayed() {
            match accepted {
                true => until_ended(&words),
                false => rustix::thread::sched_yield(),
            }
        }
        accepted
    }

    fn unmapped(&self) {
        let fd = self.connection.swap(CLAIMED, Ordering::AcqRel);
        if fd >= 0 {
            let both = libc::SHUT_RDWR as usize;
            // A child that was forked by other ways than fork holds it too.
            // SAFETY: the connection is ours.
            let _ = unsafe { syscall(libc::SYS_shutdown, [fd as usize, both, 0, 0, 0, 0]) };
            close(fd);
        }
        self.connection.store(FREE, Ordering::Release);
    }
}
