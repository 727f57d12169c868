//! The back end that is the kernel: move_pages(2), for processes that run already, and as baseline.
//!
//! It copies with cores, one page after the other, and needs NUMA nodes.

mod pages;
mod remote;

pub use pages::KernelBackEnd;
pub use remote::RemoteProcess;

use crate::TierError;
use crate::error::system;
#[cfg(test)]
use crate::sys::PAGE;
use crate::sys::errno;

/// Pages of a call: as many as the kernel demotes at once with the multi-generational LRU.
const CALL: usize = 64;
const MPOL_MF_MOVE: i32 = 2;

fn failed(pid: i32) -> impl FnOnce(std::io::Error) -> TierError {
    move |source| TierError::Process { pid, source }
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
    fn a_missing_node_is_named() {
        let page = std::ptr::from_ref(&CALL).addr() as u64 / PAGE * PAGE;
        let pid = std::process::id() as i32;
        let error = move_pages(pid, &[page], Some(1000)).expect_err("no such node");
        assert!(matches!(error, TierError::NoNode { node: 1000 }), "{error}");
        assert!(move_pages(i32::MAX, &[page], None).is_err());
    }
}
