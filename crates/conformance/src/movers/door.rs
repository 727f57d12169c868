//! Where operations go in, and the memory that they work on.

use std::fmt;
use std::ops::Range;

use dray::{Application, Capabilities, Executor, Mover, drive};

use super::disruptions::Disrupter;
use super::held::Held;
use super::pages::ProcessPages;

/// Alignment of the suite's memory; dualcast compares address bits 11:0.
pub const PAGE: u64 = 4096;

/// A part of the suite that not every mover can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Batches and their fences.
    Batches,
    /// Operations on an inaccessible page.
    Faults,
    /// Completions that do not come before a deadline.
    Held,
    /// A queue that is disabled or reset, a device that is reset.
    Disruptions,
}

/// A mover with memory that the suite fills before, and looks at afterwards.
pub trait Door {
    /// Its name in reports.
    fn name(&self) -> String;

    /// The executor that must execute the operations.
    fn executor(&self) -> Executor;

    /// What its mover can do.
    fn capabilities(&mut self) -> Capabilities;

    /// Operations that its mover holds at once.
    fn slots(&mut self) -> usize;

    /// Whether its mover gathers single operations into batches.
    fn gathers(&self) -> bool {
        false
    }

    /// Gives the mover memory with these bytes; the first address, aligned to [`PAGE`].
    fn prepare(&mut self, bytes: &[u8]) -> u64;

    /// The bytes of that memory.
    fn bytes(&self) -> Vec<u8>;

    /// A page without access, whose faults its mover reports: after [`Door::prepare`]. `None`: it
    /// does not look at addresses.
    fn forbidden(&mut self) -> Option<u64> {
        None
    }

    /// Takes the access to page `page` of the memory away, whose faults its mover reports; its bytes stay.
    /// False: it does not look at addresses. Until [`Door::allow`] the memory is not looked at.
    fn forbid(&mut self, page: usize) -> bool {
        let _ = page;
        false
    }

    /// Gives the access back.
    fn allow(&mut self) {}

    /// Takes what disrupts its mover's queue, if there is something.
    fn disrupter(&mut self) -> Option<Disrupter> {
        None
    }

    /// Takes memory whose operations its mover's device holds, if there is some: after [`Door::prepare`].
    fn held(&mut self) -> Option<Held> {
        None
    }

    /// Why a part of the suite is not put to it, if it offers nothing for that part.
    fn refusal(&self, part: Part) -> &'static str {
        match part {
            Part::Batches => "the mover's queue takes no batches of four",
            Part::Faults => "this mover does not look at addresses",
            Part::Held => "nothing holds this mover's completions here",
            Part::Disruptions => "nothing disrupts this mover's queue here",
        }
    }

    /// Runs an application to its end.
    fn run<A: Application>(&mut self, application: &mut A);
}

/// The door of a mover that works on this process's memory.
pub struct ProcessDoor<M> {
    name: String,
    executor: Executor,
    mover: M,
    pages: ProcessPages,
    faults: Option<Box<dyn FnMut(Range<u64>)>>,
    held: Option<Box<dyn FnOnce() -> Held>>,
    disrupter: Option<Disrupter>,
}

impl<M: fmt::Debug> fmt::Debug for ProcessDoor<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut door = f.debug_struct("ProcessDoor");
        door.field("name", &self.name).field("mover", &self.mover);
        door.finish_non_exhaustive()
    }
}

impl<M: Mover> ProcessDoor<M> {
    /// A mover under this name; `executor` must be the one in its completions.
    pub fn new(name: &str, executor: Executor, mover: M) -> ProcessDoor<M> {
        ProcessDoor {
            name: name.to_owned(),
            executor,
            mover,
            pages: ProcessPages::new(0),
            faults: None,
            held: None,
            disrupter: None,
        }
    }

    /// The mover reports page faults; `guard` is called before each part of the suite with the page without access.
    #[must_use]
    pub fn with_faults(self, guard: impl FnMut(Range<u64>) + 'static) -> ProcessDoor<M> {
        ProcessDoor {
            faults: Some(Box::new(guard)),
            ..self
        }
    }

    /// The mover's device holds what `held` gives, which is called once.
    #[must_use]
    pub fn with_held(self, held: impl FnOnce() -> Held + 'static) -> ProcessDoor<M> {
        ProcessDoor {
            held: Some(Box::new(held)),
            ..self
        }
    }

    /// `disrupter` disrupts the mover's queue. The door is used up by that.
    #[must_use]
    pub fn with_disrupter(self, disrupter: Disrupter) -> ProcessDoor<M> {
        ProcessDoor {
            disrupter: Some(disrupter),
            ..self
        }
    }
}

impl<M: Mover> Door for ProcessDoor<M> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn executor(&self) -> Executor {
        self.executor
    }

    fn capabilities(&mut self) -> Capabilities {
        self.mover.capabilities()
    }

    fn slots(&mut self) -> usize {
        self.mover.slots()
    }

    fn prepare(&mut self, bytes: &[u8]) -> u64 {
        self.pages = ProcessPages::new(bytes.len());
        self.pages.put(bytes);
        if let Some(guard) = &mut self.faults {
            guard(self.pages.guard());
        }
        self.pages.base()
    }

    fn forbidden(&mut self) -> Option<u64> {
        self.faults.as_ref().map(|_| self.pages.guard().start)
    }

    fn forbid(&mut self, page: usize) -> bool {
        let Some(guard) = &mut self.faults else {
            return false;
        };
        let page = self.pages.base() + page as u64 * PAGE;
        guard(page..page + PAGE);
        self.pages.forbid(page);
        true
    }

    fn allow(&mut self) {
        self.pages.allow();
        if let Some(guard) = &mut self.faults {
            guard(self.pages.guard());
        }
    }

    fn held(&mut self) -> Option<Held> {
        self.held.take().map(|held| held())
    }

    fn disrupter(&mut self) -> Option<Disrupter> {
        self.disrupter.take()
    }

    fn refusal(&self, part: Part) -> &'static str {
        match (part, self.executor) {
            (Part::Batches, _) => "the mover's queue takes no batches of four",
            (Part::Faults, Executor::Cpu) => "this core's faults are the program's own",
            (Part::Faults, _) => "this mover does not look at addresses",
            (Part::Disruptions, Executor::Cpu) => "a core has no queue that could be disabled",
            (Part::Held, Executor::Cpu) => "a core executes before it answers",
            (Part::Held, _) => "nothing holds this mover's completions here",
            (Part::Disruptions, _) => "nothing disrupts this mover's queue here",
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.pages.get()
    }

    fn run<A: Application>(&mut self, application: &mut A) {
        drive(application, &mut self.mover);
    }
}
