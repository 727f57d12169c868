//! A work queue that is opened once and used by several movers of the process.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::port::SharedPort;
use super::{HwError, HwMover, HwOptions, QueueInfo};

/// A work queue that is open, for as many movers as threads need.
///
/// The kernel lets one client at a time open a dedicated queue; its movers share that one file and
/// portal. Together they never have more descriptors in flight than the queue has entries. A mover that
/// has some in flight already leaves half of the entries to movers that have none. The queue stays open
/// until this value and all its movers are dropped.
///
/// ```no_run
/// use dray::hw::{self, HwOptions, OpenQueue};
///
/// // A mover for each of two threads, on one dedicated queue.
/// let queues = hw::discover()?;
/// let queue = OpenQueue::open(&queues[0], HwOptions::default())?;
/// let movers = [queue.mover()?, queue.mover()?];
/// # Ok::<(), hw::HwError>(())
/// ```
#[derive(Debug)]
pub struct OpenQueue {
    port: SharedPort,
    info: QueueInfo,
    options: HwOptions,
    movers: AtomicUsize,
}

impl OpenQueue {
    /// Opens a work queue, for movers with these options.
    ///
    /// # Errors
    /// It cannot be opened, or mapped.
    pub fn open(info: &QueueInfo, options: HwOptions) -> Result<OpenQueue, HwError> {
        let port = SharedPort::open(info, options.submitting, options.portal_rotates)?;
        Ok(OpenQueue {
            port,
            info: info.clone(),
            options,
            movers: AtomicUsize::new(0),
        })
    }

    /// A mover on it.
    ///
    /// # Errors
    /// No slots.
    pub fn mover(&self) -> Result<HwMover, HwError> {
        let turn = self.movers.fetch_add(1, Ordering::Relaxed);
        let port = self.port.port(&self.info, turn);
        HwMover::on_port(&self.info, port, self.options)
    }
}
