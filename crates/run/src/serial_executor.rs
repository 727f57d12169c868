//! What changes the machine, one after the other for each device.
//!
//! FUSE reports the last close of a file without anyone waiting for it; the open that follows must
//! find the work queue free all the same, as it does where the kernel closes files itself. So opens,
//! closes and writes to the driver's files are done in the order in which they come, and by a thread
//! that may wait for the device while others read. Each device has a thread of its own: what waits for
//! one device does not hold up another.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::RunError;
use crate::error::system;

/// What is to be done.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// The queues of what is to be done, one for each device.
#[derive(Debug, Clone)]
pub(crate) struct SerialExecutor {
    queues: Arc<[(u32, Sender<Job>)]>,
}

impl SerialExecutor {
    /// Starts a thread for each of the devices with these numbers. They end with the last handle.
    ///
    /// # Errors
    /// No more threads.
    pub(crate) fn open(devices: impl IntoIterator<Item = u32>) -> Result<SerialExecutor, RunError> {
        let start = |device| {
            let (jobs, todo) = channel::<Job>();
            let run = move || todo.into_iter().for_each(|job| job());
            thread::Builder::new()
                .name(format!("dray-driver-{device}"))
                .spawn(run)
                .map_err(system("starting a thread"))?;
            Ok((device, jobs))
        };
        let queues = devices
            .into_iter()
            .map(start)
            .collect::<Result<_, RunError>>()?;
        Ok(SerialExecutor { queues })
    }

    /// Has something done after all that was handed in before for the same device, or, without one, after all that was
    /// handed in before.
    pub(crate) fn submit(&self, device: Option<u32>, job: impl FnOnce() + Send + 'static) {
        let queue = self.queues.iter().find(|(id, _)| Some(*id) == device);
        match queue {
            // The threads end only when there are no handles.
            Some((_, jobs)) => drop(jobs.send(Box::new(job))),
            None => self.submit_after_all(Box::new(job)),
        }
    }

    /// Puts a marker into the queue of each device. The thread that takes out the last of these markers runs
    /// the job: all jobs before it are done then, and no thread waits for another. Without devices there are no
    /// threads, and nothing to wait for: the caller runs the job.
    fn submit_after_all(&self, job: Job) {
        if self.queues.is_empty() {
            job();
            return;
        }
        let left = Arc::new((AtomicUsize::new(self.queues.len()), Mutex::new(Some(job))));
        for (_, jobs) in self.queues.iter() {
            let left = left.clone();
            let arrive = move || {
                let (others, job) = &*left;
                if others.fetch_sub(1, Ordering::AcqRel) == 1 {
                    let job = job.lock().unwrap_or_else(PoisonError::into_inner).take();
                    job.into_iter().for_each(|job| job());
                }
            };
            let _ = jobs.send(Box::new(arrive));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_a_device_are_done_in_order() {
        let executor = SerialExecutor::open([0, 2]).unwrap();
        let (done, order) = channel();
        for number in 0..100 {
            let done = done.clone();
            executor.submit(Some(2), move || done.send(number).unwrap());
        }
        drop((done, executor));
        let order: Vec<i32> = order.into_iter().collect();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_blocked_job_does_not_delay_other_devices() {
        let executor = SerialExecutor::open([0, 2]).unwrap();
        let (go_on, held) = channel::<()>();
        let (done, order) = channel();
        let tell = |name: &'static str| {
            let done = done.clone();
            move || done.send(name).unwrap()
        };
        let held_done = tell("held");
        executor.submit(Some(0), move || {
            held.recv().unwrap();
            held_done();
        });
        executor.submit(None, tell("after all"));
        executor.submit(Some(2), tell("other device"));
        // The first job goes on only when the other device's is done.
        assert_eq!(order.recv(), Ok("other device"));
        go_on.send(()).unwrap();
        let rest: Vec<_> = order.iter().take(2).collect();
        assert_eq!(rest, ["held", "after all"]);
    }

    #[test]
    fn a_job_without_a_device_is_done_without_devices() {
        let executor = SerialExecutor::open([0]).unwrap();
        let (done, order) = channel();
        // A number that no device of the session has.
        executor.submit(Some(7), move || done.send(()).unwrap());
        assert_eq!(order.recv(), Ok(()));
    }

    #[test]
    fn a_job_is_done_by_the_caller_where_there_are_no_devices() {
        let executor = SerialExecutor::open([]).unwrap();
        for device in [None, Some(0)] {
            let (done, order) = channel();
            executor.submit(device, move || done.send(thread::current().id()).unwrap());
            assert_eq!(order.recv(), Ok(thread::current().id()));
        }
    }
}
