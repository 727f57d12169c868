//! Completions that do not come, and an application with a deadline.

use std::fmt;
use std::time::Duration;

use dray::{Application, Completion, Executor, Mover, Next, Operation, Progress, WaitError};
use dray::{WaitPolicy, wait};
use dray_spec::Status;

/// Memory whose operations a device holds.
pub struct Held {
    /// Address of a page. The device does not end what writes to it, until it is released.
    pub page: u64,
    /// Lets the device go on.
    pub release: Box<dyn FnOnce()>,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut held = f.debug_struct("Held");
        held.field("page", &self.page).finish_non_exhaustive()
    }
}

const DEADLINE: Duration = Duration::from_millis(2);
/// When nothing completes for so long after the release, it is lost. A wait of a test, no promise.
const LOST: Duration = Duration::from_secs(60);

/// Submits operations that are held, waits with a deadline, has them released, and waits for all.
pub(crate) struct Waiting {
    operations: Vec<Operation>,
    release: Option<Box<dyn FnOnce()>>,
    pub(crate) executors: Vec<Executor>,
    /// Something that must not be.
    pub(crate) wrong: Option<String>,
}

impl Waiting {
    pub(crate) fn new(operations: Vec<Operation>, release: Box<dyn FnOnce()>) -> Waiting {
        Waiting {
            operations,
            release: Some(release),
            executors: Vec::new(),
            wrong: None,
        }
    }

    fn submit<M: Mover>(&mut self, mover: &mut M) -> Result<(), String> {
        for (n, operation) in self.operations.iter().enumerate() {
            let operation = operation.with_user_data(n as u64);
            // SAFETY: the memory outlives the run, which waits for all.
            unsafe { mover.enqueue(&operation) }.map_err(|error| error.to_string())?;
        }
        while mover.submit() == Progress::Pending {
            std::thread::yield_now();
        }
        Ok(())
    }

    fn wait_in_vain<M: Mover>(&self, mover: &mut M) -> Result<(), String> {
        let mut ended = [Completion::default(); 2];
        for _ in 0..3 {
            let waited = wait(mover, &mut ended, WaitPolicy::Yield, Some(DEADLINE));
            if waited != Err(WaitError::Deadline { after: DEADLINE }) {
                return Err(format!("{waited:?} while the device holds everything"));
            }
        }
        match mover.withdraw() {
            0 => Ok(()),
            count => Err(format!("{count} were withdrawn that the device holds")),
        }
    }

    fn reap<M: Mover>(&mut self, mover: &mut M) -> Result<(), String> {
        let mut seen = vec![false; self.operations.len()];
        while seen.iter().any(|seen| !seen) {
            let mut ended = [Completion::default(); 2];
            let count = wait(mover, &mut ended, WaitPolicy::Yield, Some(LOST));
            let count = count.map_err(|error| error.to_string())?;
            for completion in &ended[..count] {
                let first = seen.get_mut(completion.user_data as usize);
                let first = first.is_some_and(|seen| !std::mem::replace(seen, true));
                if !first || completion.status() != Status::SUCCESS {
                    return Err(format!("{completion:?}"));
                }
                self.executors.push(completion.executor);
            }
        }
        Ok(())
    }
}

impl Application for Waiting {
    fn step<M: Mover>(&mut self, mover: &mut M) -> Next {
        let mut done = self.submit(mover);
        if done.is_ok() {
            done = self.wait_in_vain(mover);
        }
        if let Some(release) = self.release.take() {
            release();
        }
        // What was submitted must end before its memory goes, whatever was wrong.
        let reaped = self.reap(mover);
        self.wrong = done.and(reaped).err();
        Next::Done
    }
}
