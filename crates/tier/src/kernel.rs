//! The back end that is the kernel: move_pages(2), for processes that run already, and as baseline.
//!
//! It copies with cores, one page after the other, and needs NUMA nodes.

use std::collections::BTreeMap;

use crate::TierError;
use crate::error::system;
use crate::sys::pagemap::{FILE, PRESENT, PageMap, Wanted, ZERO};
use crate::sys::{PAGE, errno, maps};

/// Pages of a call: as many as the kernel demotes at once with the multi-generational LRU.
const CALL: usize = 64;
const MPOL_MF_MOVE: i32 = 2;

/// What was moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    /// Anonymous pages of the process.
    pub looked_at: u64,
    /// Pages that are on the slow node now and were not.
    pub demoted: u64,
    /// Pages that could not move, by error number.
    pub left: BTreeMap<i32, u64>,
}

impl Moved {
    /// Why pages were left.
    pub fn reasons(&self) -> String {
        let each = self.left.iter().map(|(error, pages)| {
            let error = std::io::Error::from_raw_os_error(*error);
            format!("; {pages} pages: {error}")
        });
        each.collect()
    }
}

/// Moves a process's anonymous pages from the fast node to the slow one until it has no more than
/// `fast_bytes` there: those at the lowest addresses first, as nothing is known of their use.
///
/// # Errors
/// No such process, or no right to look into it; no such node.
pub fn tier(pid: i32, fast: u32, slow: u32, fast_bytes: u64) -> Result<Moved, TierError> {
    let gone = |error: std::io::Error| TierError::System {
        call: "opening the process's page map",
        errno: error.raw_os_error().unwrap_or(libc::ESRCH),
    };
    let mut text = Vec::new();
    maps::read(&format!("/proc/{pid}/maps"), &mut text).map_err(gone)?;
    let mut map = PageMap::of(pid).map_err(gone)?;
    let mut pages: Vec<u64> = Vec::new();
    for (start, end) in maps::anonymous(&String::from_utf8_lossy(&text)) {
        let wanted = Wanted {
            all: PRESENT,
            none: FILE | ZERO,
            tell: PRESENT,
            protect: false,
        };
        // A mapping that is gone meanwhile has no pages.
        let _ = map.scan(start, end, wanted, |run| {
            pages.extend((run.start..run.end).step_by(PAGE as usize));
        });
    }
    let mut moved = Moved {
        looked_at: pages.len() as u64,
        ..Moved::default()
    };
    let mut on_fast = Vec::new();
    for call in pages.chunks(CALL) {
        let nodes = move_pages(pid, call, None)?;
        let here = call
            .iter()
            .zip(nodes)
            .filter(|(_, node)| *node == fast as i32);
        on_fast.extend(here.map(|(page, _)| *page));
    }
    let excess = (on_fast.len() as u64).saturating_sub(fast_bytes / PAGE);
    for call in on_fast[..excess as usize].chunks(CALL) {
        for status in move_pages(pid, call, Some(slow))? {
            match status {
                node if node == slow as i32 => moved.demoted += 1,
                error => *moved.left.entry(-error).or_default() += 1,
            }
        }
    }
    Ok(moved)
}

/// Each page's node, or the negative error number; moves them to a node first.
fn move_pages(pid: i32, pages: &[u64], to: Option<u32>) -> Result<Vec<i32>, TierError> {
    let nodes = vec![to.unwrap_or(0) as i32; pages.len()];
    let mut status = vec![-libc::EFAULT; pages.len()];
    let target = match to {
        Some(_) => nodes.as_ptr(),
        None => std::ptr::null(),
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
            MPOL_MF_MOVE,
        )
    };
    match answer {
        // A positive answer counts pages that were not moved.
        0.. => Ok(status),
        _ => match (errno(), to) {
            (libc::ENODEV, Some(node)) => Err(TierError::NoNode { node }),
            (errno, _) => Err(system("move_pages")(errno)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_pages_on_node_0() {
        let moved = tier(std::process::id() as i32, 0, 0, u64::MAX).expect("our own pages");
        assert!(moved.looked_at > 0);
        assert_eq!(moved.demoted, 0);
        assert!(tier(i32::MAX, 0, 1, 0).is_err());
    }

    #[test]
    fn a_node_that_does_not_exist_is_named() {
        let error = tier(std::process::id() as i32, 0, 1000, 0).expect_err("no such node");
        assert!(matches!(error, TierError::NoNode { node: 1000 }), "{error}");
    }
}
