//! A work queue's node as a target of write(2): for processes that must not map the portal
//! (`idxd_cdev_write`, 6.10).

use dray_device::{Submission, WorkQueueMode};
use dray_idxd::driver::Errno;
use dray_realtime::Origin;
use dray_spec::{Descriptor, Opcode};
use zerocopy::FromBytes;

use crate::Require;
use crate::clients::{Client, Clients};
use crate::processes::process_of;

const DESCRIPTOR: usize = size_of::<Descriptor>();
/// Completion records of a DSA are aligned to so many bytes (spec 3.5).
const RECORD_ALIGNMENT: u64 = 32;
/// Devices of this version do not keep a batch from doing what a descriptor may not.
pub(crate) const UNSAFE_BATCHES: u32 = 0x100;

impl Clients {
    /// Submits the descriptors in `bytes`; how many bytes were taken.
    ///
    /// # Errors
    /// `EINVAL` where the kernel has no write(2), for a misaligned completion address and for a
    /// batch to a device of version 1; `EPERM` for another process than the one that has opened
    /// the node; `EAGAIN` for a shared queue that is full. Of several descriptors, those before the
    /// refused one count.
    pub(crate) fn write(&self, cookie: u64, thread: u32, bytes: &[u8]) -> Result<u32, Errno> {
        let writable = match self.rules().require {
            Some(Require::Write) => true,
            Some(Require::Portal) => false,
            None => self.machine.personality().restricts_mapping(),
        };
        if !writable {
            return Err(Errno::EINVAL);
        }
        let client = self.get(cookie).ok_or(Errno::ENXIO)?;
        if thread != client.pid && process_of(thread) != Some(client.pid) {
            return Err(Errno::EPERM);
        }
        // Nor one that came over execve(2).
        if !self.is_present(client) {
            return Err(Errno::EPERM);
        }
        let mut written = 0;
        for bytes in bytes.chunks_exact(DESCRIPTOR) {
            // Of 64 bytes.
            let descriptor = Descriptor::read_from_bytes(bytes).unwrap_or_default();
            match self.submit(client, thread, descriptor) {
                Ok(()) => {
                    self.openers.written(cookie);
                    written += DESCRIPTOR as u32;
                }
                Err(errno) if written == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(written)
    }

    fn submit(&self, client: Client, thread: u32, mut descriptor: Descriptor) -> Result<(), Errno> {
        let device = self.machine.device(client.device).ok_or(Errno::ENXIO)?;
        let version = device.hardware().capabilities.version;
        if descriptor.opcode() == Ok(Opcode::Batch) && version <= UNSAFE_BATCHES {
            return Err(Errno::EINVAL);
        }
        if !descriptor.completion_addr.is_multiple_of(RECORD_ALIGNMENT) {
            return Err(Errno::EINVAL);
        }
        let portal = self
            .machine
            .portal(client.device, client.wq)
            .ok_or(Errno::ENXIO)?;
        // Unknown where it is not wanted.
        let origin = match portal.is_traced() {
            true => caller(thread),
            false => Origin::default(),
        };
        if portal.mode() == WorkQueueMode::Dedicated {
            // A full queue is not reported to the writer, as on hardware.
            return match portal.write_posted_from(&descriptor, &origin) {
                Submission::Ignored => self.machine.is_alive(client.device),
                _ => Ok(()),
            };
        }
        descriptor.pasid_priv = client.pasid;
        if portal.enqueue_from(&descriptor, &origin) == Submission::Accepted {
            return Ok(());
        }
        self.machine.is_alive(client.device)?;
        let retries = self.attribute(client, "enqcmds_retries").unwrap_or(0);
        for _ in 0..retries {
            if portal.enqueue_from(&descriptor, &origin) == Submission::Accepted {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        Err(Errno::EAGAIN)
    }
}

/// Where a thread is that waits for its system call. The last two numbers of `/proc/TID/syscall` are stack pointer and address
/// (proc_pid_syscall(5)).
fn caller(thread: u32) -> Origin {
    let text = std::fs::read_to_string(format!("/proc/{thread}/syscall")).unwrap_or_default();
    let mut numbers = text.split_whitespace().rev();
    let mut next = || {
        let text = numbers.next()?.strip_prefix("0x")?;
        u64::from_str_radix(text, 16).ok()
    };
    let (site, stack) = (next().unwrap_or(0), next().unwrap_or(0));
    Origin {
        thread,
        site,
        stack,
        frame: 0,
        record: None,
        at: dray_realtime::Moment::default(),
    }
}
