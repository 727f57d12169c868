//! What runs in a program: it watches, decides and migrates, one interval after the other.

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use crate::TierError;
use crate::adopt::Adopter;
use crate::back_end::{Limits, Tiering, UffdBackEnd, keep_free};
use crate::copier::{PageCopier, Switch};
use crate::knobs::Knob;
use crate::mechanism::{Config, Engine, Opened, Order, Ranges, Tier};
use crate::policy::by_index;
use crate::session::{HW, Note, Process, Session, Value};
use crate::sys::damon::{self, DamonError};
use crate::sys::{PAGE, thread_cpu_ns};
use crate::tracking::{Choice, Tracked, Tracker, choose};

/// How often new mappings are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// Which memory is managed.
#[derive(Debug)]
pub enum Memory {
    /// All of the process that can be, without these ranges.
    Process {
        /// Ranges of dray's own.
        own: Ranges,
        /// Pages that never move.
        pinned: Ranges,
        /// Told of the engine before it moves a page.
        starts: fn(&Arc<Engine>),
    },
    /// Ranges that the caller has registered.
    Given {
        /// Bytes of them that are in use.
        bytes: u64,
    },
}

/// Tiers the memory of this process.
pub struct Manager {
    session: Session,
    /// The program's process. The manager may run in another one, on the same memory.
    pid: u64,
    /// What was opened in time, or why it could not be: that is said once it is needed.
    opened: Option<Result<Opened, TierError>>,
    copier: Option<Switch>,
    process: Option<&'static Process>,
    memory: Memory,
    active: Option<Active>,
    failed: bool,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manager")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

/// The state once the fast tier is nearly full. Before that no memory is registered, and tiering has no cost.
struct Active {
    back_end: UffdBackEnd,
    tiering: Tiering,
    tracker: Box<dyn Tracker>,
    adopter: Adopter,
    looked: Option<Instant>,
    decided: Instant,
}

impl Manager {
    /// For a session.
    pub fn new(session: Session, memory: Memory) -> Manager {
        Manager {
            session,
            pid: u64::from(std::process::id()),
            opened: None,
            copier: None,
            process: None,
            memory,
            active: None,
            failed: false,
        }
    }

    /// For the program of process `pid`, whose memory this process has too. Opens what needs rights: afterwards they can be
    /// given up.
    pub fn with_rights(session: Session, memory: Memory, pid: u32) -> Manager {
        let mut manager = Manager::new(session, memory);
        manager.pid = pid.into();
        manager.opened = Some(Opened::new(order(session)));
        if session.setup().device == HW {
            let mut copier = Switch::new(session);
            // If it fails it is tried again, and then said.
            let _ = copier.prepare();
            manager.copier = Some(copier);
        }
        manager
    }

    fn fail(&mut self, error: &TierError) {
        self.failed = true;
        if let Some(process) = self.process {
            process.fail(&error.to_string(), &error.hint().unwrap_or_default());
        }
    }

    /// The engine, once there is one.
    pub fn engine(&self) -> Option<&Arc<Engine>> {
        self.active.as_ref().map(|active| active.back_end.engine())
    }

    /// One interval. How long to wait until the next.
    pub fn step(&mut self) -> Duration {
        let pause = Duration::from_millis(self.session.knob(Knob::IntervalMs));
        if self.failed {
            return pause.max(LOOK);
        }
        let setup = self.session.setup();
        let used = match &self.memory {
            Memory::Process { .. } => anonymous_bytes(),
            Memory::Given { bytes } => *bytes,
        };
        self.claim();
        let others = self.session.fast_of_others(self.pid);
        let limit = setup.bytes[0].saturating_sub(others);
        let keep = keep_free(self.session);
        if let Some(process) = self.process {
            let slow = self.engine().map_or(0, |engine| engine.slow_pages() * PAGE);
            process.put(Value::FastBytes, used.saturating_sub(slow));
            process.put(Value::SlowBytes, slow);
            process.put(Value::AgentCpuNs, thread_cpu_ns());
        }
        if self.active.is_none() {
            if used + keep <= limit {
                return pause;
            }
            if let Err(error) = self.activate() {
                self.fail(&error);
                return pause;
            }
        }
        self.tier(used, limit);
        pause
    }

    /// Has counters of its own in the session, if there is room.
    fn claim(&mut self) {
        if self.process.is_none() {
            self.process = self.session.claim(self.pid);
        }
    }

    /// Starts the engine, and the thread that serves its events.
    ///
    /// # Errors
    /// userfaultfd is forbidden; no node; no threads.
    pub fn activate(&mut self) -> Result<(), TierError> {
        self.claim();
        let setup = self.session.setup();
        let config = Config {
            tiers: setup.nodes.map(|node| Tier { node }),
            order: order(self.session),
            release: setup.release,
            unprotected: false,
        };
        let opened = match self.opened.take() {
            Some(opened) => opened?,
            None => Opened::new(config.order)?,
        };
        let knee = opened.measure_knee()?;
        let copier = self.copier.take();
        let copier = copier.unwrap_or_else(|| Switch::new(self.session));
        let engine = Engine::over(opened, config, Box::new(copier))?;
        let damon = Path::new(damon::DIRECTORY);
        let tracker = choose(setup.tracking, &engine, damon, self.pid as i32)?;
        if let Some(process) = self.process {
            process.tracks(tracker.tracking());
        }
        let engine = Arc::new(engine);
        if let Memory::Process { pinned, starts, .. } = &self.memory {
            engine.set_pinned(*pinned);
            starts(&engine);
        }
        let served = engine.clone();
        // The C library allocates when a thread starts, from memory of the program. Nothing is registered
        // before that is over: its faults would not be served.
        let started = Arc::new(Barrier::new(2));
        let starts = started.clone();
        thread::Builder::new()
            .name("dray-tier-fault".to_owned())
            .spawn(move || {
                starts.wait();
                served.serve();
            })
            .map_err(|error| TierError::System {
                call: "starting a thread",
                errno: error.raw_os_error().unwrap_or(0),
            })?;
        started.wait();
        if let Some(process) = self.process {
            process.begin_tiering();
            process.put(Value::KneePages, knee.pages);
        }
        let back_end = UffdBackEnd::new(engine, self.session, self.process, knee.pages);
        self.active = Some(Active {
            back_end: back_end?,
            tiering: Tiering::new(by_index(setup.policy)),
            tracker,
            adopter: Adopter::default(),
            looked: None,
            decided: Instant::now(),
        });
        Ok(())
    }

    fn tier(&mut self, used: u64, limit: u64) {
        let Some(active) = &mut self.active else {
            return;
        };
        let session = self.session;
        let engine = active.back_end.engine().clone();
        if let Memory::Process { own, .. } = &self.memory
            && active.looked.is_none_or(|at| at.elapsed() >= LOOK)
        {
            active.looked = Some(Instant::now());
            let mut own = own();
            own.extend(engine.own_ranges());
            active.adopter.step(&engine, &own);
        }
        let overhead = session.knob(Knob::Overhead);
        let tracked = active.tracker.step(&engine, overhead);
        let tracked = tracked.unwrap_or_else(|error| {
            active.track_otherwise(self.process, &error);
            Tracked::default()
        });
        let limits = Limits::of(session, limit, active.decided.elapsed());
        active.decided = Instant::now();
        if active.tiering.cools(&limits) {
            engine.cool();
        }
        active.back_end.set_used(used);
        if let Err(error) = active.tiering.step(&mut active.back_end, &limits) {
            engine.failed(error);
        }
        let Some(process) = self.process else { return };
        if let Some(failure) = engine.take_failure() {
            process.note(Note::Mechanism, &failure.to_string());
        }
        process.outcomes[crate::Outcome::Vanished as usize]
            .fetch_add(engine.take_vanished(), std::sync::atomic::Ordering::Relaxed);
        process.add(Value::HintsArmed, tracked.armed);
        process.add(Value::HintsTouched, tracked.touched);
        process.add(Value::Scans, u64::from(tracked.scanned));
        process.add(Value::TrackingNs, tracked.cost.as_nanos() as u64);
        let regions = engine.regions();
        process.put(Value::Regions, regions.len() as u64);
        let managed = regions.iter().map(|(start, end)| end - start).sum();
        process.put(Value::ManagedBytes, managed);
        let [missing, protected, layout] = engine.events();
        process.put(Value::MissingFaults, missing);
        process.put(Value::WriteProtectFaults, protected);
        process.put(Value::LayoutChanges, layout);
    }
}

impl Active {
    /// DAMON can track no more: scans for writes always can.
    fn track_otherwise(&mut self, process: Option<&'static Process>, error: &DamonError) {
        let engine = self.back_end.engine();
        if let Ok(tracker) = choose(Choice::Best, engine, Path::new(damon::DIRECTORY), 0) {
            self.tracker = tracker;
        }
        if let Some(process) = process {
            let instead = self.tracker.tracking();
            process.tracks(instead);
            let text = format!(
                "accesses are not tracked with DAMON any more: {error}; instead {}",
                instead.name()
            );
            process.note(Note::Tracking, &text);
        }
    }
}

fn order(session: Session) -> Order {
    match session.setup().shared_read {
        true => Order::SharedRead,
        false => Order::Strict,
    }
}

/// Anonymous memory of this process that is present: `statm` has it in pages.
fn anonymous_bytes() -> u64 {
    let mut text = Vec::with_capacity(128);
    let _ = crate::sys::maps::read("/proc/self/statm", &mut text);
    let text = String::from_utf8_lossy(&text);
    let mut fields = text
        .split(' ')
        .skip(1)
        .map(|field| field.parse().unwrap_or(0));
    let (resident, shared): (u64, u64) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
    resident.saturating_sub(shared) * PAGE
}
