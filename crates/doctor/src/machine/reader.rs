//! Reads that end: at so many bytes, or after so long.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use super::{Reading, Unreadable};

type Job = Box<dyn FnOnce() + Send>;

/// Runs reads on a thread of its own, so that one which never returns costs that thread and
/// nothing else: an attribute of a wedged driver sleeps uninterruptibly, and no signal ends it.
pub(super) struct Reader {
    deadline: Duration,
    worker: std::cell::RefCell<Option<Sender<Job>>>,
}

impl Reader {
    pub(super) fn new(deadline: Duration) -> Self {
        Self {
            deadline,
            worker: std::cell::RefCell::new(None),
        }
    }

    /// What `read` answers, or [`Unreadable::Blocked`] when it is late.
    pub(super) fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Reading<T> + Send + 'static,
    ) -> Reading<T> {
        let (answer, answered) = mpsc::sync_channel(1);
        let job: Job = Box::new(move || {
            // An answer that is late is no longer waited for.
            let _ = answer.send(read());
        });
        self.worker()?
            .send(job)
            .map_err(|_| Unreadable::Other("the reading thread ended".to_owned()))?;
        match answered.recv_timeout(self.deadline) {
            Ok(reading) => reading,
            Err(RecvTimeoutError::Timeout) => {
                // The thread stays behind in its read; the next read gets another.
                self.worker.replace(None);
                let late = u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX);
                Err(Unreadable::Blocked(late))
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.worker.replace(None);
                Err(Unreadable::Other("the reading thread ended".to_owned()))
            }
        }
    }

    fn worker(&self) -> Reading<Sender<Job>> {
        if let Some(worker) = &*self.worker.borrow() {
            return Ok(worker.clone());
        }
        let (jobs, queue) = mpsc::channel::<Job>();
        thread::Builder::new()
            .name("doctor-reader".to_owned())
            .spawn(move || {
                for job in queue {
                    job();
                }
            })
            .map_err(|error| Unreadable::Other(error.to_string()))?;
        self.worker.replace(Some(jobs.clone()));
        Ok(jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_blocks_times_out_and_later_reads_work() {
        let reader = Reader::new(Duration::from_millis(1));
        let (release, blocked) = mpsc::channel::<()>();
        let late = reader.run(move || {
            let _ = blocked.recv();
            Ok(())
        });
        assert_eq!(late, Err(Unreadable::Blocked(1)));
        // The first thread is blocked still; another one answers.
        let patient = Reader {
            deadline: Duration::from_secs(60),
            ..reader
        };
        assert_eq!(patient.run(|| Ok(7)), Ok(7));
        drop(release);
    }

    #[test]
    fn a_reader_thread_that_panics_is_replaced() {
        let reader = Reader::new(Duration::from_secs(60));
        let died = reader.run(|| -> Reading<()> { std::panic::resume_unwind(Box::new(())) });
        assert!(matches!(died, Err(Unreadable::Other(_))), "{died:?}");
        assert_eq!(reader.run(|| Ok(7)), Ok(7));
    }
}
