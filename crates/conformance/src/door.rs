//! Where operations go in, and the memory that they work on.

use dray::{Application, Capabilities, Executor, Mover, drive};

/// Alignment of the suite's memory; dualcast compares address bits 11:0.
pub const PAGE: u64 = 4096;

/// A mover with memory that the suite fills before, and looks at afterwards.
pub trait Door {
    /// Its name in reports.
    fn name(&self) -> String;

    /// Who has to execute the operations.
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

    /// Runs an application to its end.
    fn run<A: Application>(&mut self, application: &mut A);
}

/// Pages of this process.
#[derive(Debug)]
pub struct ProcessPages {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl ProcessPages {
    /// `len` bytes, all 0, that are present in memory.
    pub fn new(len: usize) -> ProcessPages {
        // Written, so that no page is still to be mapped: devices take page faults for those.
        let mut memory = vec![1; len + PAGE as usize];
        memory.fill(0);
        let start = memory.as_ptr().align_offset(PAGE as usize);
        ProcessPages { memory, start, len }
    }

    /// The first address.
    pub fn base(&self) -> u64 {
        // Movers reach the memory by its address, as a device would.
        self.memory.as_ptr().expose_provenance() as u64 + self.start as u64
    }

    /// Writes the first bytes.
    pub fn put(&mut self, bytes: &[u8]) {
        self.memory[self.start..self.start + bytes.len()].copy_from_slice(bytes);
    }

    /// All bytes.
    pub fn get(&self) -> Vec<u8> {
        self.memory[self.start..self.start + self.len].to_vec()
    }
}

/// The door of a mover that works on this process's memory.
#[derive(Debug)]
pub struct ProcessDoor<M> {
    name: String,
    executor: Executor,
    mover: M,
    pages: ProcessPages,
}

impl<M: Mover> ProcessDoor<M> {
    /// A mover under this name; `executor` must be the one in its completions.
    pub fn new(name: &str, executor: Executor, mover: M) -> ProcessDoor<M> {
        ProcessDoor {
            name: name.to_owned(),
            executor,
            mover,
            pages: ProcessPages::new(0),
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
        self.pages.base()
    }

    fn bytes(&self) -> Vec<u8> {
        self.pages.get()
    }

    fn run<A: Application>(&mut self, application: &mut A) {
        drive(application, &mut self.mover);
    }
}
