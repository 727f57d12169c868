//! What a program that opens a node lacks to get a portal, by the libraries that it has really loaded: its
//! environment says only what was intended.

use std::{fs, io};

use dray_remote::living_thread;
use thiserror::Error;

use super::ptrace::Tid;
use super::supervision::is_supervised;
use crate::processes::{Pid, field};

/// The file of the preload library, wherever it was put.
pub(super) const LIBRARY: &str = ".dray-portal.so";
/// Files of the C library that make system calls: itself, its threads before 2.34, its linker.
const C_LIBRARY: [&str; 5] = ["libc.so", "libc-2.", "libpthread", "ld-linux", "ld-2."];
/// How often the state of a thread is read that is about to sleep in its system call.
const READS: usize = 50;

/// Why a program would get no portal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum Lack {
    #[error("has not loaded the preload library")]
    Library,
    #[error("makes its system calls itself, past the C library")]
    Calls,
    #[error("filters its system calls")]
    Filter,
}

/// What the process of this thread lacks, which is in open(2); `None` where it lacks nothing, is traced
/// already, or cannot be looked at.
pub(super) fn lack(thread: u32, process: Pid) -> Option<Lack> {
    if is_traced(process) {
        return None;
    }
    if filters(process) > filters(std::process::id()) {
        return Some(Lack::Filter);
    }
    let maps = maps(process).ok()?;
    if !has_library(&maps) {
        return Some(Lack::Library);
    }
    let instruction = calls_from(thread)?;
    let file = file_at(&maps, instruction)?;
    (!is_library(file)).then_some(Lack::Calls)
}

/// Filters of its system calls that a process has (Linux 5.9); a container has some for all that is in it.
fn filters(process: Pid) -> u32 {
    let count = field(process, "Seccomp_filters:");
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Whether a process has loaded the library, or is supervised by a session.
pub(crate) fn is_reached(process: Pid) -> bool {
    // A process whose maps cannot be read is not reported.
    maps(process).map_or(true, |maps| has_library(&maps)) || is_supervised(process as Tid)
}

fn maps(process: Pid) -> io::Result<String> {
    fs::read_to_string(format!("/proc/{}/maps", living_thread(process)))
}

fn has_library(maps: &str) -> bool {
    maps.lines().any(|line| line.ends_with(LIBRARY))
}

/// Whether a process is traced, so that no other tracer can attach: by a supervisor, or a debugger.
fn is_traced(process: Pid) -> bool {
    field(process, "TracerPid:").is_some_and(|tracer| tracer != "0")
}

/// The instruction behind the system call in which a thread waits.
fn calls_from(thread: u32) -> Option<u64> {
    for _ in 0..READS {
        let text = fs::read_to_string(format!("/proc/{thread}/syscall")).ok()?;
        if text.trim_end() != "running" {
            return instruction(&text);
        }
        std::thread::yield_now();
    }
    None
}

/// The last word of proc(5)'s `syscall`: number, six arguments, stack, instruction.
fn instruction(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    // A thread of the kernel, which works for io_uring, is in no system call.
    words.next().filter(|number| !number.starts_with('-'))?;
    let last = words.nth(7)?.strip_prefix("0x")?;
    u64::from_str_radix(last, 16).ok()
}

/// What is mapped at an address, by its name: empty for memory without a file.
fn file_at(maps: &str, address: u64) -> Option<&str> {
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        if !(number(start)?..number(end)?).contains(&address) {
            return None;
        }
        // Permissions, offset, device, inode.
        let mut rest = rest;
        for _ in 0..4 {
            rest = rest
                .trim_start()
                .split_once(' ')
                .map_or("", |(_, rest)| rest);
        }
        Some(rest.trim())
    })
}

/// Whether a file is one that leads calls to the preload library, or that library.
fn is_library(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name == LIBRARY || C_LIBRARY.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
400000-452000 r-xp 00000000 08:02 173521      /usr/bin/a program
7f10-7f20 rwxp 00000000 00:00 0
7fa0000-7fb0000 r-xp 00028000 fe:00 55   /usr/lib/x86_64-linux-gnu/libc.so.6
7fc0000-7fd0000 r-xp 00001000 00:2f 12   /dev/.dray-portal.so
";

    #[test]
    fn an_address_has_the_file_that_is_mapped_there() {
        assert_eq!(file_at(MAPS, 0x40_0123), Some("/usr/bin/a program"));
        assert_eq!(file_at(MAPS, 0x7f10), Some(""));
        assert_eq!(file_at(MAPS, 0x7f20), None);
        for (address, leads) in [
            (0x40_0000, false),
            (0x7f11, false),
            (0x7fa_0001, true),
            (0x7fc_0000, true),
        ] {
            assert_eq!(
                file_at(MAPS, address).map(is_library),
                Some(leads),
                "{address:x}"
            );
        }
        assert!(is_library("/lib/libc-2.31.so") && !is_library("/lib/libcrypto.so.3"));
    }

    #[test]
    fn the_instruction_pointer_is_the_last_field_of_syscall() {
        let text = "257 0xffffff9c 0x55d 0x2 0x0 0x0 0x0 0x7ffd10 0x7f3a\n";
        assert_eq!(instruction(text), Some(0x7f3a));
        for text in ["running\n", "-1 0x7ffd10 0x7f3a\n", "", "257 0x1\n"] {
            assert_eq!(instruction(text), None, "{text}");
        }
    }

    #[test]
    fn a_process_without_the_library_is_not_reached() {
        let process = std::process::id();
        assert!(!is_reached(process));
        assert!(is_reached(u32::MAX), "what cannot be read is not accused");
    }
}
