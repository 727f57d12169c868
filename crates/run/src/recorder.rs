//! Records of the descriptors of a session: statistics and traces.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dray_realtime::{Event, RealtimeDevice};
use dray_recording::Closed;
use dray_remote::Spaces;

use crate::RunError;
use crate::descriptor_table::{DescriptorTable, enabled};
use crate::machine::SessionDevices;
use crate::processes::Pid;
use crate::requests::{RequestFile, Requests};
use crate::sanitize::{Findings, Sanitize, Sanitizer};
use crate::stats::Stats;
use crate::trace::{Feed, Trace, Traced};

/// How long the end of a session waits for descriptors of programs that are gone.
const LATE: Duration = Duration::from_secs(1);
/// Between two looks at them.
const LOOK: Duration = Duration::from_millis(1);

/// What is to be kept of the descriptors of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    /// Counts, sizes and waits, for [`Ended::stats`](crate::Ended::stats).
    pub stats: bool,
    /// Each descriptor, in this file; its name says the [format](crate::trace_format).
    pub trace: Option<PathBuf>,
    /// Which rules of asynchronous copies programs break, for [`Ended::findings`](crate::Ended::findings).
    pub sanitize: Option<Sanitize>,
    /// Each request, for a replay.
    pub requests: Option<RequestFile>,
}

/// What was kept of them.
pub(crate) struct Recorded {
    pub(crate) stats: Option<Stats>,
    pub(crate) traced: Option<Traced>,
    pub(crate) findings: Option<Findings>,
    pub(crate) requests: Option<Closed>,
}

/// The process of each PASID: written where PASIDs are assigned, read by the listeners of devices.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    list: Mutex<Vec<(u32, Pid)>>,
    /// Who looks at what is in flight when a mapping ends.
    sanitizer: Option<Sanitizer>,
}

impl Owners {
    fn list(&self) -> MutexGuard<'_, Vec<(u32, Pid)>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, pasid: u32, pid: Pid) {
        self.list().push((pasid, pid));
    }

    pub(crate) fn remove(&self, pasid: u32, pid: Pid) {
        self.list().retain(|other| *other != (pasid, pid));
    }

    /// A process has unmapped its last portal of a device, or has ended.
    pub(crate) fn unmapped(&self, device: u32, pasid: u32) {
        if let (Some(sanitizer), Some(pid)) = (&self.sanitizer, self.of(pasid)) {
            sanitizer.closed(Some(device), pid);
        }
    }

    fn of(&self, pasid: u32) -> Option<Pid> {
        let list = self.list();
        list.iter()
            .find(|(other, _)| *other == pasid)
            .map(|(_, pid)| *pid)
    }
}

/// A session's books, before its devices run.
#[derive(Debug)]
pub(crate) struct Recorder {
    stats: bool,
    trace: Option<Trace>,
    sanitizer: Option<Sanitizer>,
    requests: Option<Requests>,
    began: Instant,
    owners: Arc<Owners>,
    tables: Vec<(u32, Arc<Mutex<DescriptorTable>>)>,
}

impl Recorder {
    /// Opens the trace. `library`: what programs are served to load. Before anything else of the session: a file that cannot be written ends it.
    ///
    /// # Errors
    /// No such format, or no such file.
    pub(crate) fn new(
        recording: &Recording,
        spaces: &Arc<Spaces>,
        has_adversary: bool,
        library: Option<&'static [u8]>,
    ) -> Result<Recorder, RunError> {
        let trace = recording.trace.as_deref().map(Trace::create).transpose()?;
        // An adversary makes everything slow, and is there to find what is rare.
        let wanted = recording.sanitize.as_ref();
        let sanitizer =
            wanted.map(|wanted| Sanitizer::new(spaces.clone(), wanted, !has_adversary, library));
        let requests = recording.requests.as_ref();
        let requests = requests.map(Requests::create).transpose()?;
        Ok(Recorder {
            requests,
            stats: recording.stats,
            trace,
            sanitizer: sanitizer.clone(),
            began: Instant::now(),
            owners: Arc::new(Owners {
                sanitizer,
                ..Owners::default()
            }),
            tables: Vec::new(),
        })
    }

    /// Whether anything is to be kept.
    pub(crate) fn is_wanted(&self) -> bool {
        self.stats || self.trace.is_some() || self.holds()
    }

    /// Whether descriptors wait for those behind them, so that all that was submitted together is seen together.
    pub(crate) fn holds(&self) -> bool {
        self.sanitizer.is_some() || self.requests.is_some()
    }

    /// Whether CPU times of threads are wanted.
    pub(crate) fn times(&self) -> bool {
        self.requests.is_some()
    }

    pub(crate) fn owners(&self) -> Arc<Owners> {
        self.owners.clone()
    }

    /// A device runs.
    pub(crate) fn watch(&self, id: u32, device: &RealtimeDevice) {
        if let Some(sanitizer) = &self.sanitizer {
            sanitizer.watch(id, device.watch());
        }
    }

    /// The listener for events of a device.
    pub(crate) fn listener(&mut self, device: u32) -> impl FnMut(Event) + Send + 'static {
        let table = Arc::new(Mutex::new(DescriptorTable::new(self.began)));
        if self.is_wanted() {
            self.tables.push((device, table.clone()));
        }
        let owners = self.owners.clone();
        let mut feed: Option<Feed> = self.trace.as_mut().map(|trace| trace.feed(device));
        let sanitizer = self.sanitizer.clone();
        let requests = self.requests.as_ref().map(Requests::feed);
        move |event| {
            if let Some(requests) = &requests {
                requests.take_in(device, &event, |pasid| owners.of(pasid));
            }
            if let Some(sanitizer) = &sanitizer {
                sanitizer.take_in(device, &event, |pasid| owners.of(pasid));
            }
            let mut table = lock(&table);
            if let Some(ended) = table.take_in(&event, |pasid| owners.of(pasid))
                && let Some(feed) = &mut feed
            {
                feed.push(ended);
            }
        }
    }

    /// Starts writing the trace. After the last fork of this process.
    ///
    /// # Errors
    /// No more threads.
    pub(crate) fn begin(&mut self) -> Result<(), RunError> {
        if let Some(sanitizer) = &self.sanitizer {
            sanitizer.begin()?;
        }
        if let Some(requests) = &mut self.requests {
            requests.begin()?;
        }
        match &mut self.trace {
            Some(trace) => trace.begin(),
            None => Ok(()),
        }
    }

    /// All programs have ended: closes the books.
    ///
    /// # Errors
    /// The file of the requests cannot be cut.
    pub(crate) fn end(self, machine: &SessionDevices) -> Result<Recorded, RunError> {
        if self.is_wanted() {
            self.settle(machine);
        }
        let stats = self.stats.then(|| {
            let devices = self.tables.iter().filter_map(|(id, table)| {
                let device = machine.device(*id)?;
                let enabled = enabled(device);
                Some(lock(table).sum_up(*id, device, &enabled))
            });
            Stats::of(devices.flatten().collect())
        });
        Ok(Recorded {
            requests: self.requests.map(Requests::close).transpose()?,
            stats,
            traced: self.trace.map(Trace::end),
            findings: self.sanitizer.map(|sanitizer| {
                for (id, _) in &self.tables {
                    if let Some(device) = machine.device(*id) {
                        let queues = 0..device.hardware().wq_cap.work_queues().into();
                        let lost = queues.filter_map(|wq| Some((wq, device.lost(wq)?)));
                        sanitizer.lost(*id, lost.filter(|(_, count)| *count > 0));
                    }
                }
                sanitizer.end()
            }),
        })
    }

    /// Waits a limited time for descriptors that are still in flight.
    fn settle(&self, machine: &SessionDevices) {
        let since = Instant::now();
        for (id, table) in &self.tables {
            // What was submitted before is with the device by then, and its listener has heard of all
            // that a program can have seen.
            let heard = || {
                machine
                    .device(*id)
                    .is_some_and(|d| d.control(|_, _| ()).is_ok())
            };
            while heard() && lock(table).under_way() > 0 && since.elapsed() < LATE {
                std::thread::sleep(LOOK);
            }
        }
    }
}

fn lock(table: &Mutex<DescriptorTable>) -> MutexGuard<'_, DescriptorTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
