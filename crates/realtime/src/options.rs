//! How a device in real time runs.

use std::time::Duration;

use crate::{Chaos, Deviation, Kind};

/// What a thread does that finds nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Looks again, for ever: least latency, and a core of its own.
    Spin,
    /// Looks again for this long, then sleeps until something comes.
    Park {
        /// How long it looks before it sleeps.
        after: Duration,
    },
}

/// Who carries descriptors out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engines {
    /// A thread for each engine; the dispatcher itself if the device has but one.
    #[default]
    Threads,
    /// The dispatcher, but for descriptors that [may wait](crate::SharedMemory::may_wait) for the program:
    /// these are a thread's, of which each engine has one. For machines of few processors, where threads
    /// that take turns are slower than one.
    ThreadsThatWait,
    /// The dispatcher, for all engines: one thread in all.
    Dispatcher,
}

/// What becomes of work under way when a device stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stop {
    /// All that was accepted is carried out.
    #[default]
    Drain,
    /// What has not been started is dropped. A descriptor that was aborted has no completion record
    /// and no interrupt, but may have written data (spec 4.6).
    Abort,
}

/// How a device in real time runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What idle threads do.
    pub idle: Idle,
    /// Who carries descriptors out.
    pub engines: Engines,
    /// Descriptors that an engine with a thread of its own may hold; at least 1.
    pub engine_depth: usize,
    /// Other processes may write to the work queues too: their rings lie in memory that can be
    /// [shared](crate::RealtimeDevice::region).
    pub shared: bool,
    /// The listener gets an event at each step of a descriptor, too.
    pub steps: bool,
    /// No descriptor starts before a look that finds no more of them, and [`Event::Held`](crate::Event::Held) is reported before
    /// that look: what is submitted meanwhile is in flight together with what was there. Submissions of other processes say where
    /// they are made. For tools that look at programs; see [`Watch`](crate::Watch), too.
    pub hold: bool,
    /// With `hold`, submissions of other processes say how much CPU time their threads have used, too: a system call each.
    pub times: bool,
    /// An adversary chooses among what the specification allows; slower, for tests of programs.
    pub chaos: Option<Chaos>,
    /// The device does one thing otherwise than the specification says; for tests of what finds that. Without an adversary.
    pub deviation: Option<Deviation>,
    /// A driver that is not dray's, as a guest's, issues all commands and resets the device when it has halted: an adversary
    /// leaves both to it.
    pub driven: bool,
    /// What becomes of work under way when the device is dropped.
    pub on_drop: Stop,
}

/// Descriptors that an engine holds at once where an adversary chooses among them.
const CHAOTIC_DEPTH: usize = 32;

impl Options {
    /// Whether an adversary has descriptors end before their submitters go on.
    pub(crate) fn is_prompt(&self) -> bool {
        self.chaos
            .is_some_and(|chaos| chaos.kinds.contains(Kind::Prompt))
    }

    /// Descriptors that an engine may hold.
    pub(crate) fn depth(&self) -> usize {
        let least = self.chaos.map_or(1, |_| CHAOTIC_DEPTH);
        self.engine_depth.max(least)
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            idle: Idle::Park {
                after: Duration::from_micros(50),
            },
            engines: Engines::default(),
            engine_depth: 4,
            shared: false,
            steps: false,
            hold: false,
            times: false,
            chaos: None,
            deviation: None,
            driven: false,
            on_drop: Stop::default(),
        }
    }
}
