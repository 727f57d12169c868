//! An AF_XDP socket: memory for frames, and four rings.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::time::{Duration, Instant};

use rustix::mm::{MapFlags, ProtFlags};

use super::ring::{ENTRIES, Ring};
use crate::queue::DropCause;

/// Bytes of a frame: a page.
const FRAME_BYTES: usize = 4096;
/// Frames: for what is received, then for what is sent.
const FRAMES: usize = 2 * ENTRIES as usize;

/// How long a queue is waited for that another socket has just left.
const RELEASE: Duration = Duration::from_secs(2);

/// The step that failed, and what the kernel said.
pub(super) type Failed = (&'static str, io::Error);

/// Memory that the kernel reads and writes frames in.
#[derive(Debug)]
struct Frames(NonNull<u8>);

// SAFETY: the mapping is the socket's own.
unsafe impl Send for Frames {}

impl Frames {
    fn map() -> io::Result<Frames> {
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
        let base = unsafe {
            rustix::mm::mmap_anonymous(
                ptr::null_mut(),
                FRAMES * FRAME_BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::POPULATE,
            )
        }?;
        let base = NonNull::new(base.cast::<u8>());
        let base = base.ok_or_else(|| io::Error::other("the mapping is at address 0"))?;
        Ok(Frames(base))
    }

    /// `len` bytes at an address of the kernel's, if they lie in the memory.
    fn at(&self, address: u64, len: usize) -> Option<NonNull<u8>> {
        let end = address.checked_add(len as u64)?;
        // SAFETY: the bytes lie within the mapping.
        (end <= (FRAMES * FRAME_BYTES) as u64).then(|| unsafe { self.0.add(address as usize) })
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        let base = self.0.as_ptr().cast();
        // SAFETY: mapped by `map` with this length. The socket is closed before: see `Socket`.
        let _ = unsafe { rustix::mm::munmap(base, FRAMES * FRAME_BYTES) };
    }
}

/// An AF_XDP socket bound to the first queue of an interface. Fields are dropped in this order.
#[derive(Debug)]
pub(super) struct Socket {
    received: Ring<libc::xdp_desc>,
    sending: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    completion: Ring<u64>,
    socket: OwnedFd,
    frames: Frames,
    free: Vec<u64>,
    unsent: bool,
}

/// Index of an interface.
pub(super) fn interface(name: &str) -> Result<u32, Failed> {
    let step = |error| ("if_nametoindex", error);
    let name = CString::new(name).map_err(|e| step(e.into()))?;
    // SAFETY: the name ends with a zero.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(step(io::Error::last_os_error())),
        index => Ok(index),
    }
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        0.. => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    let value = (&raw const *value).cast();
    // SAFETY: the kernel reads `size` bytes, which are there.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_XDP, option, value, size) };
    check(result).map(drop)
}

fn offsets(socket: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    let mut offsets = MaybeUninit::<libc::xdp_mmap_offsets>::zeroed();
    let mut size = size_of::<libc::xdp_mmap_offsets>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            offsets.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    check(result)?;
    // SAFETY: zeroed is valid, and the kernel has filled it.
    Ok(unsafe { offsets.assume_init() })
}

impl Socket {
    /// Opens a socket on the first queue of an interface.
    pub(super) fn open(interface: u32) -> Result<Socket, Failed> {
        let step = |action| move |error| (action, error);
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the arguments are numbers.
        let socket = check(unsafe { libc::socket(libc::AF_XDP, kind, 0) });
        let socket = socket.map_err(step("socket(AF_XDP)"))?;
        // SAFETY: it was made just now, and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let frames = Frames::map().map_err(step("mmap of frames"))?;
        // SAFETY: zeroed is a valid registration.
        let mut memory: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
        memory.addr = frames.0.as_ptr() as u64;
        memory.len = (FRAMES * FRAME_BYTES) as u64;
        memory.chunk_size = FRAME_BYTES as u32;
        set(&socket, libc::XDP_UMEM_REG, &memory).map_err(step("XDP_UMEM_REG"))?;
        for option in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            set(&socket, option, &ENTRIES).map_err(step("the size of a ring"))?;
        }
        let places = offsets(&socket).map_err(step("XDP_MMAP_OFFSETS"))?;
        let failed = step("mmap of a ring");
        let received = Ring::map(&socket, libc::XDP_PGOFF_RX_RING as u64, &places.rx);
        let sending = Ring::map(&socket, libc::XDP_PGOFF_TX_RING as u64, &places.tx);
        let fill = Ring::map(&socket, libc::XDP_UMEM_PGOFF_FILL_RING, &places.fr);
        let completion = Ring::map(&socket, libc::XDP_UMEM_PGOFF_COMPLETION_RING, &places.cr);
        let mut fill: Ring<u64> = fill.map_err(failed)?;
        let frame = |n: u64| n * FRAME_BYTES as u64;
        (0..u64::from(ENTRIES)).for_each(|n| {
            fill.put(frame(n));
        });
        fill.publish();
        bind(&socket, interface).map_err(step("bind"))?;
        Ok(Socket {
            received: received.map_err(failed)?,
            sending: sending.map_err(failed)?,
            fill,
            completion: completion.map_err(failed)?,
            socket,
            frames,
            free: (u64::from(ENTRIES)..FRAMES as u64).map(frame).collect(),
            unsent: false,
        })
    }

    /// Hands up to `max` received frames to `each`.
    pub(super) fn receive(&mut self, max: usize, mut each: impl FnMut(&[u8])) {
        let mut count = 0;
        while count < max
            && let Some(found) = self.received.take()
        {
            let len = found.len as usize;
            if let Some(at) = self.frames.at(found.addr, len) {
                // SAFETY: the kernel has written so many bytes, and leaves the frame alone until it
                // is filled again.
                each(unsafe { std::slice::from_raw_parts(at.as_ptr(), len) });
            }
            self.fill.put(found.addr & !(FRAME_BYTES as u64 - 1));
            count += 1;
        }
        if count > 0 {
            self.received.give_back();
            self.fill.publish();
        }
    }

    /// Queues a frame.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), DropCause> {
        if bytes.len() > FRAME_BYTES {
            return Err(DropCause::Length);
        }
        if self.free.is_empty() {
            self.flush();
        }
        let address = self.free.pop().ok_or(DropCause::NoBuffer)?;
        let at = self
            .frames
            .at(address, bytes.len())
            .ok_or(DropCause::NoBuffer)?;
        // SAFETY: the frame is free, and as long as that.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), at.as_ptr(), bytes.len()) };
        let entry = libc::xdp_desc {
            addr: address,
            len: bytes.len() as u32,
            options: 0,
        };
        if !self.sending.put(entry) {
            self.free.push(address);
            return Err(DropCause::NoBuffer);
        }
        self.unsent = true;
        Ok(())
    }

    /// Has the kernel send what was queued, and takes frames back that it has sent.
    pub(super) fn flush(&mut self) {
        if self.unsent {
            self.sending.publish();
            let socket = self.socket.as_raw_fd();
            // SAFETY: no bytes and no address are passed. What it does not send now, it sends when it
            // is asked again.
            let sent =
                unsafe { libc::sendto(socket, ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
            self.unsent = sent < 0;
        }
        let mut count = 0;
        while let Some(address) = self.completion.take() {
            self.free.push(address);
            count += 1;
        }
        if count > 0 {
            self.completion.give_back();
        }
    }
}

/// Binds to the first queue. The kernel lets go of a queue some time after the socket before has
/// been closed: that is waited for.
fn bind(socket: &OwnedFd, interface: u32) -> io::Result<()> {
    let until = Instant::now() + RELEASE;
    loop {
        match try_bind(socket, interface) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}

fn try_bind(socket: &OwnedFd, interface: u32) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_COPY,
        sxdp_ifindex: interface,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    let size = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    let address = (&raw const address).cast();
    // SAFETY: the kernel reads `size` bytes, which are there.
    check(unsafe { libc::bind(socket.as_raw_fd(), address, size) }).map(drop)
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
