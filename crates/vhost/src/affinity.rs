//! Cores that threads run on.
//!
//! A new thread runs where the one runs that starts it. A thread that forwards packets has a core of its own, which
//! it does not share with those that it starts: they run where this process was meant to run at first.

use std::io;
use std::sync::OnceLock;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Where the process ran before its first thread was bound.
static AT_FIRST: OnceLock<CpuSet> = OnceLock::new();

/// Binds the calling thread to a core.
///
/// # Errors
/// There is no such core, or this process may not use it.
pub fn bind(core: usize) -> io::Result<()> {
    if core >= CpuSet::MAX_CPU {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let before = sched_getaffinity(None)?;
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set)?;
    AT_FIRST.get_or_init(|| before);
    Ok(())
}

/// Calls `start` with the calling thread as if none had been bound: threads that it starts are not.
///
/// # Errors
/// The kernel does not allow it: the cores were taken from this process.
pub fn unbound<R>(start: impl FnOnce() -> R) -> io::Result<R> {
    let Some(at_first) = AT_FIRST.get() else {
        return Ok(start());
    };
    let before = sched_getaffinity(None)?;
    sched_setaffinity(None, at_first)?;
    let result = start();
    sched_setaffinity(None, &before)?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_bound_one_run_on_all_cores() {
        let cores = || {
            let set = sched_getaffinity(None).expect("an affinity");
            let cores = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
            cores.collect::<Vec<usize>>()
        };
        let all = cores();
        let thread = std::thread::spawn(move || {
            bind(all[0]).expect("a core of ours");
            let helper = unbound(|| std::thread::spawn(cores)).expect("cores of ours");
            assert_eq!(helper.join().expect("no panic"), all);
            assert_eq!(cores(), all[..1], "it is bound as before");
        });
        thread.join().expect("as it should be");
    }
}
