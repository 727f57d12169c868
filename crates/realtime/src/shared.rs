//! What the handles and the threads of one device share within the process.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::clients::{Client, Clients};
use crate::deviation::{Deviant, Deviation};
use crate::failure::{Failure, Stopped};
use crate::options::Stop;
use crate::request::{Inspection, Request};
use dray_ring::Ring;
use dray_ring::SharedRegion;
use dray_ring::{AttachError, RegionLayout, SharedRegionFile};

const RUNNING: u8 = 0;
const DRAINING: u8 = 1;
const ABORTING: u8 = 2;

/// What handles want of the dispatcher.
#[derive(Default)]
struct Requests {
    waiting: Vec<Request>,
    inspections: Vec<Inspection>,
    /// No thread will look any more.
    closed: bool,
}

/// Shared by all handles and threads.
pub(crate) struct Shared {
    pub(crate) region: Arc<SharedRegion>,
    /// The region for others to map, if they may.
    pub(crate) region_file: Option<SharedRegionFile>,
    /// Who they are.
    pub(crate) clients: Clients,
    /// Some of them have gone, and may have claimed what they will not write.
    departed: AtomicBool,
    /// By work queue.
    pub(crate) rings: Vec<Ring>,
    requests: Mutex<Requests>,
    requested: AtomicBool,
    stopping: AtomicU8,
    ended: AtomicBool,
    /// CPU time of the dispatcher while it polls.
    polling_ns: AtomicU64,
    failure: OnceLock<Failure>,
    pub(crate) deviant: Option<Deviant>,
}

impl Shared {
    /// For a device with these work queues; `for_others` if other processes write to them too.
    ///
    /// # Errors
    /// The system gives no memory that can be shared.
    pub(crate) fn new(
        layout: RegionLayout,
        for_others: bool,
        deviation: Option<Deviation>,
    ) -> Result<Shared, AttachError> {
        let (region, region_file) = match for_others {
            false => (SharedRegion::new(layout), None),
            true => {
                let (region, file) = SharedRegion::shared(layout)?;
                (region, Some(file))
            }
        };
        let rings = (0..layout.queues.into()).filter_map(|index| region.ring(index));
        Ok(Shared {
            rings: rings.collect(),
            region,
            region_file,
            clients: Clients::default(),
            departed: AtomicBool::new(false),
            requests: Mutex::default(),
            requested: AtomicBool::new(false),
            stopping: AtomicU8::new(RUNNING),
            ended: AtomicBool::new(false),
            polling_ns: AtomicU64::new(0),
            failure: OnceLock::new(),
            deviant: deviation.map(Deviant::new),
        })
    }

    /// Whether other processes write to the rings.
    #[inline]
    pub(crate) fn is_for_others(&self) -> bool {
        self.region_file.is_some()
    }

    /// The dispatcher has used so much CPU time for polling.
    pub(crate) fn add_polling_time(&self, time: Duration) {
        let ns = time.as_nanos() as u64;
        self.polling_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// CPU time that the dispatcher has used while it polled.
    pub(crate) fn polling_time(&self) -> Duration {
        Duration::from_nanos(self.polling_ns.load(Ordering::Relaxed))
    }

    /// A client has gone.
    pub(crate) fn leave(&self, client: &Client) {
        self.clients
            .leave(client, || self.region.doorbell().end_polling());
        self.departed.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn has_departed(&self) -> bool {
        self.departed.load(Ordering::Acquire)
    }

    /// Nothing in the rings is claimed and not written, and no client claims anything meanwhile.
    pub(crate) fn free_departed(&self) {
        if self.departed.swap(false, Ordering::AcqRel) {
            self.clients.free_departed();
        }
    }

    pub(crate) fn ring(&self, wq: u16) -> Option<&Ring> {
        self.rings.get(usize::from(wq))
    }

    /// Asks the dispatcher for something.
    ///
    /// # Errors
    /// There is no dispatcher any more.
    pub(crate) fn request(&self, request: Request) -> Result<(), Stopped> {
        self.ask(|requests| requests.waiting.push(request))
    }

    /// Asks the dispatcher to have something read.
    ///
    /// # Errors
    /// There is no dispatcher any more.
    pub(crate) fn inspect(&self, inspection: Inspection) -> Result<(), Stopped> {
        self.ask(|requests| requests.inspections.push(inspection))
    }

    fn ask(&self, add: impl FnOnce(&mut Requests)) -> Result<(), Stopped> {
        {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            if requests.closed {
                return Err(Stopped);
            }
            add(&mut requests);
            self.requested.store(true, Ordering::Release);
        }
        self.region.doorbell().ring();
        Ok(())
    }

    #[inline]
    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// What has been asked for since the last call.
    pub(crate) fn take_requests(&self) -> (Vec<Inspection>, Vec<Request>) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        self.requested.store(false, Ordering::Relaxed);
        let requests = &mut *requests;
        let inspections = std::mem::take(&mut requests.inspections);
        (inspections, std::mem::take(&mut requests.waiting))
    }

    /// Closes the portals and has the dispatcher stop.
    pub(crate) fn stop(&self, how: Stop) {
        let state = match how {
            Stop::Drain => DRAINING,
            Stop::Abort => ABORTING,
        };
        self.stopping.fetch_max(state, Ordering::AcqRel);
        self.close();
        self.region.doorbell().ring();
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire) != RUNNING
    }

    #[inline]
    pub(crate) fn is_aborting(&self) -> bool {
        self.stopping.load(Ordering::Acquire) == ABORTING
    }

    fn close(&self) {
        for ring in &self.rings {
            ring.end();
        }
    }

    /// A thread panicked: no more work comes in, and the device ends with what it has.
    pub(crate) fn fail(&self, thread: &str, payload: &(dyn Any + Send)) {
        // The first one counts.
        let _ = self.failure.set(Failure::new(thread, payload));
        self.stop(Stop::Drain);
    }

    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failure.get()
    }

    /// No thread of the device touches memory or answers requests any more.
    pub(crate) fn end(&self) {
        self.close();
        let waiting = {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            let closed = Requests {
                closed: true,
                ..Requests::default()
            };
            std::mem::replace(&mut *requests, closed)
        };
        // The caller learns of it by this.
        drop(waiting);
        self.ended.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("rings", &self.rings)
            .field("stopping", &self.stopping)
            .field("ended", &self.ended)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}
