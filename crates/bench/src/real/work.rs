//! Operations in software, one after the other.

use std::hint::black_box;

use dray::{Completion, CpuMover, Mover, Progress};
use dray_spec::Status;

use crate::buffers::{Buffers, PATTERN, operation};
use crate::case::{Api, Op};

/// A thread's operations.
#[derive(Debug)]
pub(super) struct Work {
    op: Op,
    api: Api,
    size: u32,
    buffers: Buffers,
    mover: CpuMover,
    completions: Vec<Completion>,
    /// Operations that did not do what they should.
    pub(super) failed: u64,
}

impl Work {
    /// On buffers that outlive it: whoever makes it keeps their memory until it is gone.
    pub(super) fn new(op: Op, api: Api, size: u32, buffers: Buffers, count: u32) -> Work {
        Work {
            op,
            api,
            size,
            buffers,
            mover: CpuMover::new(count as usize),
            completions: vec![Completion::default(); count as usize],
            failed: 0,
        }
    }

    /// `count` operations, on the first buffers.
    ///
    /// # Safety
    /// The memory of the buffers must be mapped, and used by nobody else meanwhile.
    pub(super) unsafe fn round(&mut self, count: u32) {
        if self.api == Api::Glibc {
            for index in 0..u64::from(count) {
                // SAFETY: the caller vouches for the buffers.
                unsafe { self.c_library(index) };
            }
            return;
        }
        for index in 0..u64::from(count) {
            let next = operation(self.op, self.size, false, &self.buffers, index);
            // SAFETY: the caller vouches for the buffers.
            let taken = unsafe { self.mover.enqueue(&next) };
            self.failed += u64::from(taken.is_err());
        }
        while self.mover.submit() == Progress::Pending {}
        let ended = self.mover.poll(&mut self.completions);
        let bad = |c: &&Completion| c.status() != Status::SUCCESS;
        self.failed += self.completions[..ended].iter().filter(bad).count() as u64;
    }

    /// # Safety
    /// As [`Work::round`].
    unsafe fn c_library(&mut self, index: u64) {
        let src = black_box(self.buffers.src.at(index) as *const u8);
        let dst = black_box(self.buffers.dst.at(index) as *mut u8);
        let len = black_box(self.size as usize);
        match self.op {
            // SAFETY: both buffers are mapped and apart; it is the C library's memcpy.
            Op::Copy => unsafe { std::ptr::copy_nonoverlapping(src, dst, len) },
            // SAFETY: the destination is mapped; it is the C library's memset.
            Op::Fill => unsafe { std::ptr::write_bytes(dst, PATTERN as u8, len) },
            Op::Compare => {
                // SAFETY: both buffers are mapped.
                let found = unsafe { libc::memcmp(src.cast(), dst.cast(), len) };
                self.failed += u64::from(found != 0);
            }
            // SAFETY: both buffers are mapped; it is the C library's memmove.
            _ => unsafe { std::ptr::copy(src, dst, len) },
        }
        black_box(dst);
    }
}
