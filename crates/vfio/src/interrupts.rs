//! MSI-X vectors: the client's eventfds. The table itself, with its masks, is the client's.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{ioctl_fionbio, write};

use crate::counts::SharedCounts;
use crate::protocol::{Errno, MSIX_INDEX, Refusal, SetIrqs};

/// Eventfds by vector.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    vectors: Arc<Mutex<Vec<Option<OwnedFd>>>>,
    counts: SharedCounts,
}

impl Interrupts {
    pub(crate) fn new(vectors: u16, counts: SharedCounts) -> Interrupts {
        let vectors = (0..vectors).map(|_| None).collect();
        Interrupts {
            vectors: Arc::new(Mutex::new(vectors)),
            counts,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<OwnedFd>>> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Vectors that there are.
    pub(crate) fn count(&self) -> u32 {
        self.lock().len() as u32
    }

    /// SET_IRQS.
    pub(crate) fn set(&self, set: &SetIrqs, fds: Vec<OwnedFd>) -> Result<(), Refusal> {
        let refuse = |errno, what| Err(Refusal::new(errno, what));
        if set.index != MSIX_INDEX {
            // Disabling a vector that is not set is no error.
            return match set.count {
                0 => Ok(()),
                _ => refuse(Errno::Invalid, "SET_IRQS of what is not MSI-X"),
            };
        }
        let action = set.flags & !(SetIrqs::DATA_NONE | 2 | SetIrqs::DATA_EVENTFD);
        if action != SetIrqs::ACTION_TRIGGER {
            return refuse(Errno::NotSupported, "SET_IRQS that masks");
        }
        let mut vectors = self.lock();
        let range = set
            .start
            .checked_add(set.count)
            .map(|end| set.start as usize..end as usize);
        let Some(places) = range.and_then(|range| vectors.get_mut(range)) else {
            return refuse(Errno::Invalid, "SET_IRQS of vectors that are not there");
        };
        if set.flags & SetIrqs::DATA_EVENTFD != 0 {
            if !fds.is_empty() && fds.len() != places.len() {
                return refuse(Errno::Invalid, "SET_IRQS with fewer files than vectors");
            }
            let mut fds = fds.into_iter();
            for place in places {
                let fd = fds.next();
                if let Some(fd) = &fd {
                    // A full one must not hold the device up.
                    let _ = ioctl_fionbio(fd, true);
                }
                *place = fd;
            }
        } else if set.flags & SetIrqs::DATA_NONE != 0 && set.count == 0 {
            vectors.iter_mut().for_each(|vector| *vector = None);
        } else {
            return refuse(Errno::NotSupported, "SET_IRQS that triggers");
        }
        Ok(())
    }

    /// No interrupt is sent any more.
    pub(crate) fn clear(&self) {
        self.lock().iter_mut().for_each(|vector| *vector = None);
    }

    /// An interrupt of the device.
    pub(crate) fn raise(&self, vector: u16) {
        let vectors = self.lock();
        let Some(Some(fd)) = vectors.get(usize::from(vector)) else {
            self.counts
                .unmodelled("interrupt of a vector that is not set up");
            return;
        };
        let now = Timespec::default();
        let mut ready = [PollFd::new(fd, PollFlags::OUT)];
        let room = poll(&mut ready, Some(&now)) == Ok(1);
        if !room || write(fd, &1_u64.to_ne_bytes()).is_err() {
            self.counts
                .unmodelled("interrupt that the client does not take");
        }
        self.counts.interrupt();
    }
}
