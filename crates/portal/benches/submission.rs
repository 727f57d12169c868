//! What one submission costs the program: patched, trapped, and as a call for comparison.
//!
//! `cargo bench -p dray-portal`. Medians over rounds, with the fastest and the slowest tenth.

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use common::{enqcmd, map, movdir64b};
use dray_portal::{Caller, Registers, Submit, Words};

/// Copies the descriptor, as a ring would.
struct Entry([AtomicU64; 8]);

impl Submit for Entry {
    fn post(&self, words: &Words, _: Caller<'_>) {
        for (place, word) in self.0.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
    }

    fn enqueue(&self, words: &Words, caller: Caller<'_>) -> bool {
        self.post(words, caller);
        true
    }
}

static ENTRY: Entry = Entry([const { AtomicU64::new(0) }; 8]);

fn measure(name: &str, each: u32, mut submit: impl FnMut()) {
    let mut rounds: Vec<f64> = (0..200)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..each {
                submit();
            }
            begin.elapsed().as_nanos() as f64 / f64::from(each)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    let [low, median, high] = [20, 100, 180].map(|n| rounds[n]);
    println!("{name:28} {median:8.1} ns   ({low:.1} to {high:.1})");
}

/// MOVDIR64B [rdi], [rsi] in text that cannot be changed: a shared mapping.
fn fixed() -> extern "C" fn(usize, *const Words) {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let file = rustix::fs::memfd_create("text", flags).expect("memory");
    let code = [0x66, 0x0f, 0x38, 0xf8, 0x3e, 0xc3];
    assert_eq!(rustix::io::write(&file, &code), Ok(code.len()));
    let protection = libc::PROT_READ | libc::PROT_EXEC;
    let null = std::ptr::null_mut();
    use std::os::fd::AsRawFd;
    // SAFETY: a new mapping.
    let at = unsafe {
        libc::mmap(
            null,
            4096,
            protection,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    assert_ne!(at, libc::MAP_FAILED);
    // SAFETY: it is such a function.
    unsafe { std::mem::transmute(at) }
}

fn main() {
    let portal = map(&ENTRY);
    let words: Words = [0, 2, 3, 4, 5, 6, 7, 8];
    let trapped = fixed();
    let submit: &'static dyn Submit = black_box(&ENTRY);
    let caller = Caller {
        site: 0,
        registers: &Registers::default(),
    };
    measure("call of the same", 10_000, || {
        submit.post(black_box(&words), black_box(caller))
    });
    // SAFETY: mapped.
    measure("MOVDIR64B, patched", 10_000, || unsafe {
        movdir64b(portal, black_box(&words));
    });
    // SAFETY: mapped.
    measure("ENQCMD, patched", 10_000, || unsafe {
        black_box(enqcmd(portal, black_box(&words)));
    });
    measure("MOVDIR64B, trapped", 500, || {
        trapped(portal, black_box(&words));
    });
}
