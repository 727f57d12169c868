//! Operations in software, one after the other.

use std::hint::black_box;
use std::time::{Duration, Instant};

use dray::{Completion, CpuMover, Mover, Progress};
use dray_spec::Status;

use crate::{Buffers, Op, PATTERN, Shape};

/// What executes an operation in software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Routine {
    /// This project's library.
    Library,
    /// The C library's memmove, memcpy, memset and memcmp.
    CLibrary,
}

/// Gives the operands what an operation is to find there.
///
/// # Safety
/// The memory of the buffers must be mapped, and used by nothing else meanwhile.
pub unsafe fn prepare(shape: &Shape, buffers: &Buffers) {
    let rings = [buffers.src, buffers.dst, buffers.dst2];
    let operands = shape.op.operands() as usize;
    for (operand, ring) in rings.iter().enumerate().take(operands) {
        let Some(bytes) = shape.before(operand) else {
            continue;
        };
        for index in 0..ring.count {
            let to = ring.at(index) as *mut u8;
            // SAFETY: a buffer of the operand has so many bytes, and the caller vouches for it.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }
    }
}

/// A thread's operations.
#[derive(Debug)]
pub struct Software {
    shape: Shape,
    routine: Routine,
    buffers: Buffers,
    mover: CpuMover,
    completions: Vec<Completion>,
    /// Operations that did not do what they should.
    pub failed: u64,
}

impl Software {
    /// On buffers that outlive it: its maker keeps their memory until it is gone.
    pub fn new(shape: Shape, routine: Routine, buffers: Buffers, count: u32) -> Software {
        Software {
            shape,
            routine,
            buffers,
            mover: CpuMover::new(count as usize),
            completions: vec![Completion::default(); count as usize],
            failed: 0,
        }
    }

    /// So many rounds of `count` operations, on the first buffers; how long they took, a reading of the
    /// clock included.
    ///
    /// # Safety
    /// The memory of the buffers must be mapped, and used by nothing else meanwhile.
    pub unsafe fn rounds(&mut self, count: u32, rounds: u64) -> Duration {
        let start = Instant::now();
        match self.routine {
            // SAFETY: the caller vouches for the buffers.
            Routine::CLibrary => unsafe { self.c_library(count, rounds) },
            Routine::Library => {
                for _ in 0..rounds {
                    // SAFETY: as above.
                    unsafe { self.library(count) };
                }
            }
        }
        start.elapsed()
    }

    /// # Safety
    /// As [`Software::rounds`].
    unsafe fn library(&mut self, count: u32) {
        for index in 0..u64::from(count) {
            let next = self.shape.operation(&self.buffers, index, false);
            // SAFETY: the caller vouches for the buffers.
            let taken = unsafe { self.mover.enqueue(&next) };
            self.failed += u64::from(taken.is_err());
        }
        while self.mover.submit() == Progress::Pending {}
        let ended = self.mover.poll(&mut self.completions);
        let bad = |c: &&Completion| c.status() != Status::SUCCESS;
        self.failed += self.completions[..ended].iter().filter(bad).count() as u64;
    }

    /// The choice of the function is made outside of the loop: a call for 4 KiB takes 60 ns, and
    /// everything around it counts.
    ///
    /// # Safety
    /// As [`Software::rounds`].
    unsafe fn c_library(&mut self, count: u32, rounds: u64) {
        let len = self.shape.size as usize;
        match self.shape.op {
            Op::Copy => self.calls(count, rounds, |src, dst| {
                // SAFETY: both buffers are mapped and apart; it is the C library's memcpy.
                unsafe { std::ptr::copy_nonoverlapping(src, dst, len) };
            }),
            Op::Fill | Op::NtFill => self.calls(count, rounds, |_, dst| {
                // SAFETY: the destination is mapped; it is the C library's memset.
                unsafe { std::ptr::write_bytes(dst, PATTERN as u8, len) };
            }),
            Op::Compare => {
                let mut failed = 0;
                self.calls(count, rounds, |src, dst| {
                    // SAFETY: both buffers are mapped.
                    let found = unsafe { libc::memcmp(src.cast(), dst.cast(), len) };
                    failed += u64::from(found != 0);
                });
                self.failed += failed;
            }
            _ => self.calls(count, rounds, |src, dst| {
                // SAFETY: both buffers are mapped; it is the C library's memmove.
                unsafe { std::ptr::copy(src, dst, len) };
            }),
        }
    }

    /// Calls a function on the buffers in turn; no call can be left out or moved.
    fn calls(&self, count: u32, rounds: u64, mut call: impl FnMut(*const u8, *mut u8)) {
        let Buffers { src, dst, .. } = self.buffers;
        for _ in 0..rounds {
            let (mut from, mut to) = (src.base, dst.base);
            for _ in 0..count {
                call(from as *const u8, to as *mut u8);
                black_box(to as *mut u8);
                (from, to) = (from + src.stride, to + dst.stride);
            }
        }
    }
}
