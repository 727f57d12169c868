//! A process with memory that the test shares, and a device that works on it.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use dray_device::{DeviceConfig, Portal, Submission, WorkQueueConfig, WorkQueueMode};
use dray_realtime::{MappedPortal, Options, RealtimeDevice};
use dray_remote::{Presence, RemoteMemory, Spaces};
use dray_spec::{CompletionRecord, Descriptor};
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

pub(crate) const PAGE: usize = 4096;
/// PASID of the child.
pub(crate) const CHILD: u32 = 7;

/// Pages that this process and its children share.
pub(crate) struct Pages {
    base: NonNull<u8>,
    len: usize,
}

impl Pages {
    /// So many, none of them present yet.
    pub(crate) fn new(pages: usize) -> Pages {
        let len = pages * PAGE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel chooses.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), len, access, MapFlags::SHARED) };
        let base = NonNull::new(base.expect("memory").cast()).expect("not at 0");
        Pages { base, len }
    }

    pub(crate) fn address(&self, offset: usize) -> u64 {
        (self.base.as_ptr().expose_provenance() + offset) as u64
    }

    fn byte(&self, offset: usize) -> &AtomicU8 {
        assert!(offset < self.len);
        // SAFETY: it is within the mapping.
        let byte = unsafe { self.base.as_ptr().add(offset) };
        // SAFETY: both processes access it as an atomic, or the kernel does.
        unsafe { AtomicU8::from_ptr(byte) }
    }

    pub(crate) fn get(&self, offset: usize) -> u8 {
        self.byte(offset).load(Ordering::Acquire)
    }

    pub(crate) fn set(&self, offset: usize, byte: u8) {
        self.byte(offset).store(byte, Ordering::Release);
    }

    pub(crate) fn fill(&self, offset: usize, bytes: impl IntoIterator<Item = u8>) {
        (offset..)
            .zip(bytes)
            .for_each(|(at, byte)| self.set(at, byte));
    }

    pub(crate) fn bytes(&self, offset: usize, len: usize) -> Vec<u8> {
        (offset..offset + len).map(|at| self.get(at)).collect()
    }

    /// Has this process look at all of them, so that they are in its page table.
    pub(crate) fn touch(&self) {
        for offset in (0..self.len).step_by(PAGE) {
            std::hint::black_box(self.get(offset));
        }
    }

    /// The record at `offset`, once it is there.
    pub(crate) fn wait(&self, offset: usize) -> CompletionRecord {
        while self.get(offset) == 0 {
            thread::yield_now();
        }
        let bytes: [u8; 32] = self.bytes(offset, 32).try_into().expect("32");
        zerocopy::transmute!(bytes)
    }

    /// For this process alone.
    pub(crate) fn protect(&self, offset: usize, access: MprotectFlags) {
        let at = self.byte(offset).as_ptr().cast();
        // SAFETY: the test does not access the page otherwise.
        unsafe { mprotect(at, PAGE, access) }.expect("a mapping");
    }

    /// For this process alone.
    pub(crate) fn unmap(&self, offset: usize) {
        let at = self.byte(offset).as_ptr().cast();
        // SAFETY: the test does not access the page any more.
        unsafe { munmap(at, PAGE) }.expect("a mapping");
    }

    /// Takes the page out of this process's page table.
    pub(crate) fn drop_page(&self, offset: usize) {
        let at = self.byte(offset).as_ptr().cast();
        // SAFETY: the memory is shared: its content stays.
        unsafe { madvise(at, PAGE, Advice::LinuxDontNeed) }.expect("a mapping");
    }
}

/// A child that does `action`, says so, and waits to be killed.
pub(crate) struct Child {
    pid: Pid,
    killed: bool,
}

impl Child {
    pub(crate) fn start(action: impl FnOnce()) -> Child {
        Child::start_with(action, || ())
    }

    /// The same, and `later` once it has said so.
    pub(crate) fn start_with(action: impl FnOnce(), later: impl FnOnce()) -> Child {
        let ready = Pages::new(1);
        // SAFETY: the child needs no other thread, and ends by a signal.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            action();
            ready.set(0, 1);
            later();
            loop {
                // SAFETY: it waits for a signal.
                unsafe { libc::pause() };
            }
        }
        let child = Child {
            pid: Pid::from_raw(pid).expect("no more processes"),
            killed: false,
        };
        while ready.get(0) == 0 {
            thread::yield_now();
        }
        child
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }

    pub(crate) fn kill(&mut self) {
        self.killed = true;
        kill_process(self.pid, Signal::KILL).expect("a child");
        waitpid(Some(self.pid), WaitOptions::empty()).expect("a child");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.killed {
            self.kill();
        }
    }
}

/// A device whose queue 0 is shared, on the memory of `child`.
pub(crate) fn device(child: &Child, presence: Presence) -> (RealtimeDevice, Arc<Spaces>) {
    let spaces = Arc::new(Spaces::new());
    spaces.add(CHILD, child.pid()).expect("a process");
    let memory = RemoteMemory::new(spaces.clone(), presence);
    let queue = WorkQueueConfig {
        priority: 1,
        block_on_fault: true,
        max_transfer_size: 1 << 30,
        ..WorkQueueConfig::new(0, WorkQueueMode::Shared, 8)
    };
    let config = DeviceConfig::sapphire_rapids(1, vec![queue]);
    let device = RealtimeDevice::start(config, memory, Options::default(), |_| ());
    (device.expect("a device"), spaces)
}

pub(crate) fn submit(device: &RealtimeDevice, descriptor: Descriptor) {
    let portal: MappedPortal = device
        .map(Portal {
            wq: 0,
            limited: false,
        })
        .expect("a queue");
    while portal.enqueue(&descriptor.with_pasid(CHILD)) != Submission::Accepted {
        thread::yield_now();
    }
}
