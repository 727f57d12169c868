//! What changes the machine, one after the other.
//!
//! FUSE reports the last close of a file without anyone waiting for it; the open that follows must
//! find the work queue free all the same, as it does where the kernel closes files itself. So opens,
//! closes and writes to the driver's files are done in the order in which they come, and by a thread
//! that may wait for the device while others read.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::RunError;
use crate::error::system;

/// What is to be done.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// The queue of what is to be done.
#[derive(Debug, Clone)]
pub(crate) struct SerialExecutor {
    jobs: Sender<Job>,
}

impl SerialExecutor {
    /// Starts the thread. It ends with the last handle.
    ///
    /// # Errors
    /// No more threads.
    pub(crate) fn open() -> Result<SerialExecutor, RunError> {
        let (jobs, todo) = channel::<Job>();
        let run = move || todo.into_iter().for_each(|job| job());
        thread::Builder::new()
            .name("dray-driver".into())
            .spawn(run)
            .map_err(system("starting a thread"))?;
        Ok(SerialExecutor { jobs })
    }

    /// Has something done after all that was handed in before.
    pub(crate) fn submit(&self, job: impl FnOnce() + Send + 'static) {
        // The thread ends only when there are no handles.
        let _ = self.jobs.send(Box::new(job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_done_in_order() {
        let executor = SerialExecutor::open().unwrap();
        let (done, order) = channel();
        for number in 0..100 {
            let done = done.clone();
            executor.submit(move || done.send(number).unwrap());
        }
        drop((done, executor));
        let order: Vec<i32> = order.into_iter().collect();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }
}
