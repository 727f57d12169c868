//! Memory of a front end, and the messages that start its rings.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use dray_vhost::Backend;
use dray_vhost::backend::Handled;
use dray_vhost::copy::{Channel, open_cpu};
use dray_vhost::protocol::{Frame, Header, Options, Request};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

/// The region, as the guest and as its front end see it. It ends within a page.
pub(super) const GUEST: u64 = 0x10_0000;
pub(super) const USER: u64 = 0x7000_0000_0000;
pub(super) const REGION_BYTES: u64 = (128 << 10) - 1000;
/// The file is longer: what lies behind the region must not change.
const FILE_BYTES: u64 = 128 << 10;
const CANARY: u8 = 0xa5;

/// A back end, and the memory that is shared with it.
pub(super) struct FrontEnd {
    pub(super) backend: Backend,
    pub(super) channels: Vec<Channel>,
    memory: File,
}

impl FrontEnd {
    /// None if this machine has no memory files.
    pub(super) fn new(asynchronous: bool) -> Option<FrontEnd> {
        let memory = memfd_create(c"dray-fuzz", MemfdFlags::CLOEXEC).ok()?;
        ftruncate(&memory, FILE_BYTES).ok()?;
        let memory = File::from(memory);
        let behind = vec![CANARY; (FILE_BYTES - REGION_BYTES) as usize];
        memory.write_all_at(&behind, REGION_BYTES).ok()?;
        let backend = Backend::new(Options {
            queue_pairs: 2,
            ..Options::default()
        });
        let mut channels = Vec::new();
        if asynchronous {
            channels.push(Channel::new("cpu", open_cpu()));
            for mut queue in backend.queues().iter() {
                queue.set_copy_threshold(128);
                queue.attach(&mut channels, 0);
            }
        }
        Some(FrontEnd {
            backend,
            channels,
            memory,
        })
    }

    /// A file descriptor of the memory.
    pub(super) fn file(&self) -> Option<OwnedFd> {
        self.memory.try_clone().ok().map(OwnedFd::from)
    }

    /// Writes to the shared memory, if all of it is there.
    pub(super) fn write(&self, guest: u64, bytes: &[u8]) {
        let at = guest.wrapping_sub(GUEST);
        if at < REGION_BYTES && bytes.len() as u64 <= REGION_BYTES - at {
            // The file is longer than that.
            let _ = self.memory.write_all_at(bytes, at);
        }
    }

    /// Hands a whole message over, and waits until it is done. The answer, if there is one.
    pub(super) fn hand(&mut self, frame: Frame) -> Option<Vec<u8>> {
        let now = Instant::now();
        let mut handled = self.backend.handle(frame, now);
        loop {
            match handled {
                Ok(Handled::Done(answer)) => return answer,
                Err(_) => return None,
                Ok(Handled::Waiting) => {
                    for mut queue in self.backend.queues().iter() {
                        let mut done = Vec::new();
                        queue.enqueue_poll(&mut self.channels, &mut done);
                    }
                    handled = self.backend.resume(Instant::now());
                }
            }
        }
    }

    /// Sends a request of this payload.
    pub(super) fn send(&mut self, request: Request, payload: &[u8], files: Vec<OwnedFd>) {
        let header = Header::request(request, false, payload.len() as u32);
        self.hand(Frame {
            header,
            payload: payload.to_vec(),
            descriptors: files,
        });
    }

    /// The payload of a table with the region.
    pub(super) fn table() -> Vec<u8> {
        let words = [1u64, GUEST, REGION_BYTES, USER, 0];
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// # Panics
    ///
    /// If something was written behind the region.
    pub(super) fn check(&self) {
        let mut behind = vec![0; (FILE_BYTES - REGION_BYTES) as usize];
        let read = self.memory.read_exact_at(&mut behind, REGION_BYTES);
        let same = read.is_ok() && behind.iter().all(|byte| *byte == CANARY);
        assert!(same, "written behind the region");
    }
}
