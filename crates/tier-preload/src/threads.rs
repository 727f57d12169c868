//! The program's threads, and what the kernel writes when one ends: those pages never move.
//!
//! When a task exits the kernel clears its number (`clear_child_tid`, for which pthread_join(3) waits) and walks its list of
//! robust futexes. It does not serve userfaults of a task that exits: what is out then is not written, and the join
//! never ends, the mutex is never released.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use dray_tier::sys::PAGE;

use crate::tasks;

/// Threads that are known at once. If there are more, nothing moves.
const MOST: usize = 8192;
/// As the kernel walks (`ROBUST_LIST_LIMIT`).
const LONGEST_LIST: usize = 2048;
/// Threads that one call reads: two vectors each, of 1024.
const AT_ONCE: usize = 512;

struct Entry {
    /// 0 if it is free, `TAKEN` while it is filled.
    number: AtomicU32,
    /// The thread's `struct pthread`.
    control: AtomicU64,
}

const TAKEN: u32 = u32::MAX;

static TABLE: [Entry; MOST] = [const {
    Entry {
        number: AtomicU32::new(0),
        control: AtomicU64::new(0),
    }
}; MOST];
static FULL: AtomicBool = AtomicBool::new(false);

/// Offsets in `struct pthread`: of the number, and of the head of the robust list. The same for all threads.
static NUMBER: AtomicU64 = AtomicU64::new(0);
static ROBUST: AtomicU64 = AtomicU64::new(0);

/// Finds out where the C library has what the kernel writes, by the calling thread. Whether it could.
pub fn find() -> bool {
    let (mut head, mut len) = (0u64, 0usize);
    // SAFETY: it writes both words.
    let answer =
        unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut len) };
    let control = tasks::own_control();
    let offset = head.wrapping_sub(control);
    match tasks::number_offset() {
        Some(number) if answer == 0 && offset < PAGE => {
            NUMBER.store(number, Ordering::Relaxed);
            ROBUST.store(offset, Ordering::Relaxed);
            true
        }
        _ => false,
    }
}

/// Enters the calling thread. It makes no system call, for the program may have forbidden them.
pub fn enter() {
    let control = tasks::own_control();
    let place = control + NUMBER.load(Ordering::Relaxed);
    // SAFETY: the calling thread's own `struct pthread`.
    let number = unsafe { std::ptr::with_exposed_provenance::<u32>(place as usize).read() };
    let first = (control / 64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize % MOST;
    for index in 0..MOST {
        let entry = &TABLE[(first + index) % MOST];
        let free = entry.number.load(Ordering::Relaxed) == 0;
        if free
            && entry
                .number
                .compare_exchange(0, TAKEN, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok()
        {
            entry.control.store(control, Ordering::SeqCst);
            entry.number.store(number, Ordering::SeqCst);
            return;
        }
    }
    FULL.store(true, Ordering::SeqCst);
}

/// Forgets all threads: in a child.
pub fn forget() {
    for entry in &TABLE {
        entry.number.store(0, Ordering::Relaxed);
    }
    FULL.store(false, Ordering::Relaxed);
}

/// What the kernel keeps for a thread.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Kept {
    number: u32,
    /// `struct robust_list_head`: first entry, offset of the futex, entry that is being changed.
    list: [u64; 3],
}

/// Reads memory of this process that may be gone: how many bytes, of ranges in a row.
fn read(into: &[libc::iovec], from: &[libc::iovec]) -> usize {
    let own = std::process::id() as libc::pid_t;
    // SAFETY: the places are written to by the kernel, which checks where it reads.
    let got = unsafe {
        libc::process_vm_readv(
            own,
            into.as_ptr(),
            into.len() as u64,
            from.as_ptr(),
            from.len() as u64,
            0,
        )
    };
    usize::try_from(got).unwrap_or(0)
}

fn vector(address: u64, len: usize) -> libc::iovec {
    libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut::<c_void>(address as usize),
        iov_len: len,
    }
}

/// Threads that live, with what the kernel keeps for each. Those that have ended are taken out.
fn living() -> Vec<(u64, Kept)> {
    let known: Vec<(usize, u32, u64)> = TABLE
        .iter()
        .enumerate()
        .filter_map(|(index, entry)| {
            let number = entry.number.load(Ordering::SeqCst);
            let control = entry.control.load(Ordering::SeqCst);
            (number != 0 && number != TAKEN).then_some((index, number, control))
        })
        .collect();
    let mut found = Vec::with_capacity(known.len());
    let mut rest = &known[..];
    while !rest.is_empty() {
        let (some, _) = rest.split_at(rest.len().min(AT_ONCE));
        let mut kept = vec![Kept::default(); some.len()];
        let into: Vec<libc::iovec> = kept
            .iter_mut()
            .flat_map(|kept| {
                let number = (&raw mut kept.number).expose_provenance() as u64;
                let list = (&raw mut kept.list).expose_provenance() as u64;
                [vector(number, 4), vector(list, 24)]
            })
            .collect();
        let from: Vec<libc::iovec> = some
            .iter()
            .flat_map(|(_, _, control)| {
                [
                    vector(control + NUMBER.load(Ordering::Relaxed), 4),
                    vector(control + ROBUST.load(Ordering::Relaxed), 24),
                ]
            })
            .collect();
        // The first that cannot be read ends the call: that thread's memory is gone.
        let whole = read(&into, &from) / 28;
        for ((index, number, control), kept) in some.iter().zip(&kept).take(whole) {
            if kept.number == *number {
                found.push((*control, *kept));
            } else {
                remove(*index, *number);
            }
        }
        if let Some((index, number, _)) = some.get(whole) {
            remove(*index, *number);
        }
        rest = &rest[(whole + 1).min(rest.len())..];
    }
    found
}

fn remove(index: usize, number: u32) {
    let entry = &TABLE[index].number;
    let _ = entry.compare_exchange(number, 0, Ordering::SeqCst, Ordering::Relaxed);
}

/// Whether any thread of the program is still on this memory: none is after an exec.
pub fn any_lives() -> bool {
    FULL.load(Ordering::SeqCst)
        || TABLE
            .iter()
            .any(|entry| entry.number.load(Ordering::SeqCst) == TAKEN)
        || !living().is_empty()
}

/// Pages that must not be out when a thread ends.
pub fn pinned() -> Vec<(u64, u64)> {
    if FULL.load(Ordering::SeqCst) {
        return vec![(0, u64::MAX / PAGE * PAGE)];
    }
    let mut pages = Vec::new();
    let mut pin = |start: u64, len: u64| {
        let end = start.saturating_add(len).min(u64::MAX - PAGE);
        pages.push((start / PAGE * PAGE, end.next_multiple_of(PAGE)));
    };
    for (control, kept) in living() {
        pin(control + NUMBER.load(Ordering::Relaxed), 4);
        let head = control + ROBUST.load(Ordering::Relaxed);
        pin(head, 24);
        let [mut next, offset, pending] = kept.list;
        let mut entries = vec![pending];
        // The head itself ends the list.
        while next & !1 != head && next & !1 != 0 && entries.len() < LONGEST_LIST {
            entries.push(next);
            let mut following = 0u64;
            let into = vector((&raw mut following).expose_provenance() as u64, 8);
            if read(&[into], &[vector(next & !1, 8)]) != 8 {
                break;
            }
            next = following;
        }
        for entry in entries
            .iter()
            .map(|entry| entry & !1)
            .filter(|entry| *entry != 0)
        {
            pin(entry, 8);
            pin(entry.wrapping_add(offset), 4);
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_threads_are_pinned_as_long_as_they_live() {
        assert!(find());
        let covers = |address: u64| {
            let pages = pinned();
            pages
                .iter()
                .any(|(start, end)| (*start..*end).contains(&address))
        };
        let (told, asked) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            enter();
            told.send(tasks::own_control()).expect("it waits");
            let _ = ended.recv();
        });
        let control = asked.recv().expect("a thread");
        assert!(covers(control + NUMBER.load(Ordering::Relaxed)));
        assert!(covers(control + ROBUST.load(Ordering::Relaxed)));
        assert!(any_lives());
        drop(end);
        thread.join().expect("a thread");
        assert!(living().iter().all(|(known, _)| *known != control));
    }
}
