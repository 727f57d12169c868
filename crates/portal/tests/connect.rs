//! A node in a FUSE file system, a process that answers for it, a device behind: as under `dray run`.

mod common;

use std::ffi::{CString, OsStr};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, UNIX_EPOCH};

use common::{enqcmd, movdir64b};
use dray_device::{Capabilities, DeviceConfig, GroupConfig, WorkQueueConfig, WorkQueueMode};
use dray_portal::hook::{file, memory};
use dray_realtime::{AllAccessible, Options, ProcessMemory, RealtimeDevice, Stop};
use dray_spec::{CompletionRecord, Descriptor, Status};
use dray_wire::{Attach, Attached, CLIENT, Node, SOCKET_VARIABLE, Unmapped};
use fuser::{
    Config, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    IoctlFlags, OpenFlags, ReplyAttr, ReplyEntry, ReplyIoctl, ReplyOpen, Request,
};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use zerocopy::IntoBytes;

/// `wq0.0` and `wq0.1`, inodes 2 and 3; `other`, inode 4, which is not a node.
struct Files;

fn attributes(inode: u64) -> FileAttr {
    let directory = inode == 1;
    FileAttr {
        ino: INodeNo(inode),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: if directory {
            FileType::Directory
        } else {
            FileType::RegularFile
        },
        perm: if directory { 0o755 } else { 0o600 },
        nlink: 1,
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

impl Filesystem for Files {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let inode = match name.to_str() {
            Some("wq0.0") => 2,
            Some("wq0.1") => 3,
            Some("other") => 4,
            _ => return reply.error(fuser::Errno::ENOENT),
        };
        reply.entry(&Duration::ZERO, &attributes(inode), Generation(0));
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&Duration::ZERO, &attributes(inode.0));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn ioctl(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        command: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        if command != CLIENT || inode.0 == 4 {
            return reply.error(fuser::Errno::ENOTTY);
        }
        let wq = (inode.0 - 2) as u16;
        reply.ioctl(0, Node::new(0, wq, 100 + inode.0).as_bytes());
    }
}

fn device() -> RealtimeDevice {
    let queue = |id: u16, mode| WorkQueueConfig {
        pasid: Some(9),
        ..WorkQueueConfig::new(id, mode, 16)
    };
    let config = DeviceConfig {
        capabilities: Capabilities::sapphire_rapids(),
        user_interrupts: true,
        work_queues: vec![
            queue(0, WorkQueueMode::Dedicated),
            queue(1, WorkQueueMode::Shared),
        ],
        groups: vec![GroupConfig {
            engines: vec![0],
            ..GroupConfig::default()
        }],
        ..DeviceConfig::default()
    };
    // SAFETY: the test keeps what descriptors name until the device has ended.
    let memory = unsafe { ProcessMemory::new(AllAccessible) };
    let options = Options {
        shared: true,
        ..Options::default()
    };
    RealtimeDevice::start(config, memory, options, |_| ()).expect("a device")
}

/// Answers for the nodes until it is stopped; says when a mapping has ended.
fn serve(listener: OwnedFd, device: Arc<RealtimeDevice>, ended: Sender<u64>) {
    while let Ok(connection) = rustix::net::accept(&listener) {
        let (device, ended) = (device.clone(), ended.clone());
        std::thread::spawn(move || answer(&connection, &device, &ended));
    }
}

fn answer(connection: &OwnedFd, device: &RealtimeDevice, ended: &Sender<u64>) {
    let receive = |bytes: &mut [u8]| {
        let mut none = RecvAncillaryBuffer::default();
        let mut parts = [IoSliceMut::new(bytes)];
        rustix::net::recvmsg(connection, &mut parts, &mut none, RecvFlags::empty())
            .map_or(0, |message| message.bytes)
    };
    let mut bytes = [0u8; 64];
    let got = receive(&mut bytes);
    let attach = Attach::from_message(&bytes[..got]).expect("the first message");
    let board = device.region().expect("shared");
    let mut attached = Attached::refused(libc::EINVAL);
    if attach.length == 4096 {
        attached = Attached::blank();
        attached.pasid = 9;
        attached.wq = (attach.cookie - 102) as u16;
        attached.rings = board.layout().queues;
        attached.ring_entries = board.layout().entries;
        attached.client = 1;
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let rings = [board.fd()];
    if attached.errno == 0 {
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&rings)));
    }
    let parts = [IoSlice::new(attached.as_bytes())];
    rustix::net::sendmsg(connection, &parts, &mut ancillary, SendFlags::empty())
        .expect("the other side listens");
    if attached.errno == 0 {
        assert!(attach.is_held_by_file(), "the node can be mapped");
        let got = receive(&mut bytes);
        // A child that ends says nothing.
        if got != 0 {
            Unmapped::from_message(&bytes[..got]).expect("the last message");
        }
        ended.send(attach.cookie).expect("the test listens");
    }
}

fn open(path: &std::path::Path, flags: i32) -> i32 {
    let path = CString::new(path.as_os_str().as_bytes()).expect("a path");
    // SAFETY: a string.
    let fd = unsafe { libc::open(path.as_ptr(), flags) };
    assert!(fd >= 0);
    fd
}

/// What the program calls; the address, or the error number.
fn mmap(fd: i32, bytes: usize, protection: i32) -> Result<usize, i32> {
    let (null, shared) = (std::ptr::null_mut(), libc::MAP_SHARED);
    // SAFETY: a new mapping.
    let at = unsafe { memory::mmap(null, bytes, protection, shared, fd, 0) };
    match at == libc::MAP_FAILED {
        true => Err(std::io::Error::last_os_error()
            .raw_os_error()
            .expect("of the system")),
        false => Ok(at.addr()),
    }
}

fn wait(record: &mut CompletionRecord) -> Status {
    let at: *mut u8 = (&raw mut *record).cast();
    loop {
        // SAFETY: the status is the first byte of a record, and is accessed as an atomic.
        match unsafe { AtomicU8::from_ptr(at) }.load(Ordering::Acquire) {
            0 => std::thread::yield_now(),
            status => return Status(status),
        }
    }
}

fn noop(record: &mut CompletionRecord) -> [u64; 8] {
    let at = (&raw mut *record).expose_provenance() as u64;
    zerocopy::transmute!(Descriptor::noop().with_completion(at))
}

/// The node that children map at their beginning.
static NODE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn map_in_child() {
    let node = NODE.load(Ordering::SeqCst);
    if node >= 0 {
        // What it fails with is seen by the parent.
        let _ = mmap(node, 4096, libc::PROT_WRITE);
    }
}

#[test]
fn a_node_is_mapped_and_written_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let mounted = fuser::spawn_mount(Files, directory.path(), &Config::default()).expect("FUSE");
    let name = format!("dray-test-{}", std::process::id());
    // SAFETY: no other thread of this test looks at the environment now.
    unsafe { std::env::set_var(SOCKET_VARIABLE, format!("@{name}")) };
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let listener =
        rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).expect("a socket");
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a name");
    rustix::net::bind(&listener, &address).expect("it is free");
    rustix::net::listen(&listener, 8).expect("a listener");
    let device = Arc::new(device());
    assert_eq!(device.admit().expect("a name").number(), 1);
    let (ended, endings): (_, Receiver<u64>) = channel();
    let stop = listener.as_fd().try_clone_to_owned().expect("a descriptor");
    let service = std::thread::spawn({
        let device = device.clone();
        move || serve(listener, device, ended)
    });

    let path = directory.path();
    let write = libc::PROT_WRITE;
    let node = open(&path.join("wq0.0"), libc::O_RDWR);
    assert_eq!(mmap(node, 8192, write), Err(libc::EINVAL), "two pages");
    assert_eq!(mmap(node, 0, write), Err(libc::EINVAL), "none");
    let readable = open(&path.join("wq0.0"), libc::O_RDONLY);
    assert_eq!(mmap(readable, 4096, write), Err(libc::EACCES));
    let other = open(&path.join("other"), libc::O_RDWR);
    assert_eq!(
        mmap(other, 4096, write),
        Err(libc::ENODEV),
        "as the kernel says"
    );

    // A handler of the program, which runs in children before the library's own.
    // SAFETY: it does what the children of this test may do.
    unsafe { libc::pthread_atfork(None, None, Some(map_in_child)) };
    let portal = mmap(node, 4096, write).expect("a portal");
    // Programs close the node when they have mapped it, and whatever else is open.
    for fd in 3..4096 {
        let name = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
        let is_ours = fd >= 700 && name.to_string_lossy().starts_with("socket:");
        if fd == node || is_ours {
            // SAFETY: the test's, or refused.
            let closed = unsafe { file::close(fd) };
            assert_eq!(closed, if is_ours { -1 } else { 0 }, "{fd}");
        }
    }
    for _ in 0..3 {
        let mut record = CompletionRecord::default();
        let words = noop(&mut record);
        // SAFETY: mapped; the record outlives the descriptor.
        unsafe { movdir64b(portal, &words) };
        assert_eq!(wait(&mut record), Status::SUCCESS);
    }

    // The shared queue, twice: the second mapping has a connection of its own.
    let node = open(&path.join("wq0.1"), libc::O_RDWR);
    let shared = [(); 2].map(|()| mmap(node, 4096, write).expect("a portal"));
    for portal in shared.iter().cycle().take(4) {
        let mut record = CompletionRecord::default();
        let words = noop(&mut record);
        // SAFETY: as above.
        while unsafe { enqcmd(*portal, &words) } {
            std::thread::yield_now();
        }
        assert_eq!(wait(&mut record), Status::SUCCESS);
    }
    // SAFETY: mapped above.
    assert_eq!(unsafe { memory::munmap(shared[0] as *mut _, 4096) }, 0);
    assert_eq!(endings.recv(), Ok(103));
    // SAFETY: as above.
    assert_eq!(unsafe { memory::munmap(portal as *mut _, 4096) }, 0);
    assert_eq!(endings.recv(), Ok(102));
    // A mapping again is as good as the first.
    let again = mmap(node, 4096, write).expect("a portal");
    let mut record = CompletionRecord::default();
    let words = noop(&mut record);
    // SAFETY: as above.
    assert!(!unsafe { enqcmd(again, &words) });
    assert_eq!(wait(&mut record), Status::SUCCESS);
    for portal in [again, shared[1]] {
        // SAFETY: as above.
        assert_eq!(unsafe { memory::munmap(portal as *mut _, 4096) }, 0);
        assert_eq!(endings.recv(), Ok(103));
    }

    // A child that maps in its handler keeps that, and nothing of its parent's.
    let parents = mmap(node, 4096, write).expect("a portal");
    NODE.store(node, Ordering::SeqCst);
    // SAFETY: the child looks at its descriptors and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let open = (3..4096).filter(|fd| {
            let name = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
            *fd >= 700 && name.to_string_lossy().starts_with("socket:")
        });
        let code = open.count() as i32;
        // SAFETY: ends the child.
        unsafe { libc::_exit(code) };
    }
    NODE.store(-1, Ordering::SeqCst);
    let mut status = 0;
    // SAFETY: it waits for this child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(libc::WEXITSTATUS(status), 1, "connections of the child");
    assert_eq!(endings.recv(), Ok(103));
    // SAFETY: as above.
    assert_eq!(unsafe { memory::munmap(parents as *mut _, 4096) }, 0);
    assert_eq!(endings.recv(), Ok(103));

    // Without a process that answers there is an error.
    rustix::net::shutdown(&stop, rustix::net::Shutdown::Both).expect("a listener");
    service.join().expect("it ends");
    drop(stop);
    assert_eq!(mmap(node, 4096, write), Err(libc::EIO));
    for fd in [node, readable, other] {
        // SAFETY: the test's.
        assert_eq!(unsafe { file::close(fd) }, 0);
    }
    drop(mounted);
    let device = Arc::into_inner(device).expect("no thread serves it any more");
    device.stop(Stop::Drain).expect("no failure");
}
