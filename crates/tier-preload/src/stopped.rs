//! A program that has stopped, or that dumps core: none of its pages moves. Debuggers and the kernel read memory then,
//! and do not wait for a page.

use std::sync::atomic::{AtomicI32, Ordering};

/// `/proc/PID/status` of the program, in the agent's table of files.
static STATUS: AtomicI32 = AtomicI32::new(-1);

/// Opens what tells of the program, for the agent.
pub fn open(program: u32) {
    let Ok(path) = std::ffi::CString::new(format!("/proc/{program}/status")) else {
        return;
    };
    // SAFETY: the path is a string.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    STATUS.store(file, Ordering::Relaxed);
}

/// Whether the program has stopped or dumps core now.
pub fn is() -> bool {
    let mut text = [0u8; 4096];
    let file = STATUS.load(Ordering::Relaxed);
    // SAFETY: it writes so many bytes at most.
    let len = unsafe { libc::pread(file, text.as_mut_ptr().cast(), text.len(), 0) };
    says(&text[..usize::try_from(len).unwrap_or(0)])
}

/// What the text of `/proc/PID/status` says of that.
fn says(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').any(|line| {
        line.starts_with(b"State:\tT")
            || line.starts_with(b"State:\tt")
            || line.starts_with(b"CoreDumping:\t1")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_stopped_traced_or_dumped_is_told() {
        let text = |state: &str, dumps: &str| {
            format!(
                "Name:\tState:\tT\nUmask:\t0022\nState:\t{state}\nCoreDumping:\t{dumps}\nThreads:\t1\n"
            )
        };
        for (state, dumps, told) in [
            ("R (running)", "0", false),
            ("S (sleeping)", "0", false),
            ("T (stopped)", "0", true),
            ("t (tracing stop)", "0", true),
            ("R (running)", "1", true),
        ] {
            assert_eq!(says(text(state, dumps).as_bytes()), told, "{state} {dumps}");
        }
        assert!(!says(b""));
        // This process runs.
        open(std::process::id());
        assert!(!is());
    }
}
