//! Instructions of a process and all that it starts, by perf_event_open(2). Virtual machines often have no such counter.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

const HARDWARE: u32 = 0;
const INSTRUCTIONS: u64 = 1;
/// Processes that are started from now on count too.
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

/// `struct perf_event_attr` in its first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample: u64,
    sample_kind: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
}

const _: () = assert!(size_of::<Attributes>() == 64);

/// Counts instructions of this thread and of what it starts, in the kernel too where this user may see them. None
/// where the processor has no such counter for us.
pub(super) fn instructions() -> Option<File> {
    open(HARDWARE, INSTRUCTIONS, 0).or_else(|| open(HARDWARE, INSTRUCTIONS, EXCLUDE_KERNEL))
}

fn open(kind: u32, config: u64, flags: u64) -> Option<File> {
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        flags: INHERIT | EXCLUDE_HYPERVISOR | flags,
        ..Attributes::default()
    };
    const CLOSE_ON_EXEC: u32 = 1 << 3;
    // SAFETY: the structure is the one that the call takes; this thread, on any core, in no group.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            0i32,
            -1i32,
            -1i32,
            CLOSE_ON_EXEC,
        )
    };
    // SAFETY: the kernel has just given it to us.
    (fd >= 0).then(|| unsafe { File::from_raw_fd(fd as i32) })
}

/// What it has counted.
pub(super) fn read(counter: &File) -> Option<u64> {
    let mut value = [0u8; 8];
    let mut counter = counter;
    counter.read_exact(&mut value).ok()?;
    Some(u64::from_ne_bytes(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's own clock is a counter of the same kind, and there is one everywhere.
    #[test]
    fn a_counter_includes_threads_started_later() {
        const SOFTWARE: u32 = 1;
        const TASK_CLOCK: u64 = 1;
        let Some(counter) = open(SOFTWARE, TASK_CLOCK, 0) else {
            println!(
                "this user may not count: {}",
                std::io::Error::last_os_error()
            );
            return;
        };
        let before = read(&counter).expect("a number");
        let text = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; cat /proc/$$/schedstat";
        let shell = std::process::Command::new("/bin/sh")
            .args(["-c", text])
            .output();
        let shell = shell.expect("a shell");
        assert!(shell.status.success());
        let text = String::from_utf8(shell.stdout).expect("text");
        let first = text.split_whitespace().next().expect("a field");
        let of_shell: u64 = first.parse().expect("nanoseconds");
        let after = read(&counter).expect("a number");
        assert!(after - before >= of_shell, "{before} {after} {of_shell}");
    }
}
