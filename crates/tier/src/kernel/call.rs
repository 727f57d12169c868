//! move_pages(2): where pages are, and moves of them, with an outcome for each page.

use crate::TierError;
use crate::error::system;
use crate::mechanism::Outcome;
use crate::sys::{PAGE, errno};

/// Only pages that no other process maps.
const MPOL_MF_MOVE: i32 = 2;
/// Those that others map, too: needs CAP_SYS_NICE.
const MPOL_MF_MOVE_ALL: i32 = 4;

/// The system call, or another one in tests.
pub(super) trait MovePages: std::fmt::Debug + Send {
    /// The pages that did not move for no reason that `status` has, or the error number. `status` has each page's
    /// node, or a negative error number. Without `to` nothing moves.
    fn call(
        &self,
        pid: i32,
        pages: &[u64],
        to: Option<u32>,
        shared: bool,
        status: &mut [i32],
    ) -> Result<u64, i32>;
}

/// The kernel's.
#[derive(Debug)]
pub(super) struct System;

impl MovePages for System {
    fn call(
        &self,
        pid: i32,
        pages: &[u64],
        to: Option<u32>,
        shared: bool,
        status: &mut [i32],
    ) -> Result<u64, i32> {
        assert_eq!(pages.len(), status.len());
        let nodes = vec![to.unwrap_or(0) as i32; pages.len()];
        let target = match to {
            Some(_) => nodes.as_ptr(),
            None => std::ptr::null(),
        };
        let flags = match shared {
            true => MPOL_MF_MOVE_ALL,
            false => MPOL_MF_MOVE,
        };
        // SAFETY: three arrays of that length; the kernel moves pages without changing their content.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                pid,
                pages.len(),
                pages.as_ptr(),
                target,
                status.as_mut_ptr(),
                flags,
            )
        };
        u64::try_from(answer).map_err(|_| errno())
    }
}

/// Whether the kernel moves pages that several processes map, for this process.
pub(super) fn may_move_shared() -> bool {
    // The right is asked for before the pages are looked at: there are none.
    System.call(0, &[], None, true, &mut []).is_ok()
}

/// Each page's node, or a negative error number.
///
/// # Errors
/// The process has no memory any more, or may not be looked into.
pub(super) fn nodes(calls: &dyn MovePages, pid: i32, pages: &[u64]) -> Result<Vec<i32>, TierError> {
    let mut status = vec![-libc::ENOENT; pages.len()];
    match calls.call(pid, pages, None, false, &mut status) {
        Ok(_) => Ok(status),
        Err(errno) => Err(system("move_pages")(errno)),
    }
}

/// Moves pages to a node: what became of each.
///
/// The kernel stops at the first page for which it cannot be done, without a word on it and those behind it: they are
/// tried once more, each on its own.
///
/// # Errors
/// There is no such node; the process may not have memory there; it has no memory any more; no right to move pages.
pub(super) fn move_to(
    calls: &dyn MovePages,
    pid: i32,
    pages: &[u64],
    node: u32,
    shared: bool,
) -> Result<Vec<Outcome>, TierError> {
    let mut status = vec![-libc::EAGAIN; pages.len()];
    let done = match calls.call(pid, pages, Some(node), shared, &mut status) {
        Ok(left) => left == 0,
        Err(libc::ENOMEM) => false,
        Err(errno) => return Err(refused(errno, node)),
    };
    if done && status.iter().all(|found| *found == node as i32) {
        return Ok(vec![Outcome::Moved; pages.len()]);
    }
    let mut outcomes = Vec::with_capacity(pages.len());
    let mut full = false;
    for (page, now) in pages.iter().zip(nodes(calls, pid, pages)?) {
        let outcome = match now {
            now if now == node as i32 => Outcome::Moved,
            error if error < 0 => of_errno(-error),
            // Where one has found no room the next one finds none.
            _ if full => Outcome::NoFrame,
            _ => alone(calls, pid, *page, node, shared)?,
        };
        full |= outcome == Outcome::NoFrame;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn alone(
    calls: &dyn MovePages,
    pid: i32,
    page: u64,
    node: u32,
    shared: bool,
) -> Result<Outcome, TierError> {
    debug_assert!(page.is_multiple_of(PAGE));
    let mut status = [-libc::EAGAIN];
    match calls.call(pid, &[page], Some(node), shared, &mut status) {
        Ok(0) if status[0] == node as i32 => Ok(Outcome::Moved),
        Ok(0) if status[0] < 0 => Ok(of_errno(-status[0])),
        // Pinned, or in a transfer.
        Ok(_) => Ok(Outcome::Busy),
        Err(libc::ENOMEM) => Ok(Outcome::NoFrame),
        Err(errno) => Err(refused(errno, node)),
    }
}

fn refused(errno: i32, node: u32) -> TierError {
    match errno {
        libc::ENODEV => TierError::NoNode { node },
        libc::EACCES => TierError::NotAllowed { node },
        errno => system("move_pages")(errno),
    }
}

fn of_errno(errno: i32) -> Outcome {
    match errno {
        libc::EBUSY | libc::EAGAIN => Outcome::Busy,
        // Another process maps it, and that may not be moved.
        libc::EACCES | libc::EINVAL => Outcome::NotMovable,
        libc::ENOENT | libc::EFAULT => Outcome::Gone,
        libc::ENOMEM => Outcome::NoFrame,
        _ => Outcome::Other,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Nodes 0 and 1 as the kernel has them: a call stops at the first page that cannot move.
    #[derive(Debug, Default, Clone)]
    pub(crate) struct TwoNodes(pub(crate) Arc<Mutex<State>>);

    #[derive(Debug, Default)]
    pub(crate) struct State {
        /// Pages by process and address on node 1; all others are on node 0.
        pub(crate) slow: HashMap<(i32, u64), ()>,
        pub(crate) busy: Vec<u64>,
        /// Pages that node 1 has room for.
        pub(crate) room: Option<usize>,
        /// What every call that moves fails with.
        pub(crate) error: Option<i32>,
        /// Calls that moved pages which several processes map.
        pub(crate) shared: usize,
    }

    impl MovePages for TwoNodes {
        fn call(
            &self,
            pid: i32,
            pages: &[u64],
            to: Option<u32>,
            shared: bool,
            status: &mut [i32],
        ) -> Result<u64, i32> {
            let mut state = self.0.lock().expect("nobody has panicked");
            let Some(to) = to else {
                for (page, status) in pages.iter().zip(status) {
                    *status = i32::from(state.slow.contains_key(&(pid, *page)));
                }
                return Ok(0);
            };
            if let Some(errno) = state.error {
                return Err(errno);
            }
            state.shared += usize::from(shared);
            for (nth, page) in pages.iter().enumerate() {
                if state.busy.contains(page) {
                    return Ok((pages.len() - nth) as u64);
                }
                if to == 1 && state.room.is_some_and(|room| state.slow.len() >= room) {
                    return Err(libc::ENOMEM);
                }
                match to {
                    0 => state.slow.remove(&(pid, *page)),
                    _ => state.slow.insert((pid, *page), ()),
                };
            }
            status.fill(to as i32);
            Ok(0)
        }
    }

    #[test]
    fn each_page_has_its_outcome_though_the_kernel_stops_at_the_first() {
        let nodes_ = TwoNodes::default();
        let pages: Vec<u64> = (1..=6).map(|page| page * PAGE).collect();
        nodes_.0.lock().expect("ours").busy = vec![2 * PAGE, 5 * PAGE];
        let outcomes = move_to(&nodes_, 7, &pages, 1, false).expect("it has memory");
        use Outcome::{Busy, Moved, NoFrame};
        assert_eq!(outcomes, [Moved, Busy, Moved, Moved, Busy, Moved]);
        assert_eq!(
            nodes(&nodes_, 7, &pages).expect("it has memory"),
            [1, 0, 1, 1, 0, 1]
        );
        nodes_.0.lock().expect("ours").room = Some(5);
        let more: Vec<u64> = (11..=13).map(|page| page * PAGE).collect();
        let outcomes = move_to(&nodes_, 7, &more, 1, false).expect("no room is no error");
        assert_eq!(outcomes, [Moved, NoFrame, NoFrame]);
    }

    #[test]
    fn a_missing_node_and_one_that_is_not_allowed_are_named() {
        let page = std::ptr::from_ref(&MPOL_MF_MOVE).addr() as u64 / PAGE * PAGE;
        let pid = std::process::id() as i32;
        let error = move_to(&System, pid, &[page], 1000, false).expect_err("no such node");
        assert!(matches!(error, TierError::NoNode { node: 1000 }), "{error}");
        assert!(nodes(&System, i32::MAX, &[page]).is_err());
        let two = TwoNodes::default();
        two.0.lock().expect("ours").error = Some(libc::EACCES);
        let error = move_to(&two, pid, &[page], 1, false).expect_err("a cpuset");
        assert!(
            error
                .to_string()
                .contains("may not have memory on NUMA node 1"),
            "{error}"
        );
        assert!(error.hint().is_some_and(|hint| hint.contains("cpuset")));
    }
}
