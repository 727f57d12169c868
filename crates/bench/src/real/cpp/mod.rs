//! The interface for C++, measured as a program has it: `loop.cpp` is compiled with this machine's compiler and the
//! libdray that pkg-config finds, and loaded.

mod build;
mod error;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{NonNull, null};
use std::sync::Arc;
use std::time::Duration;

use dray_workload::{Buffers, Exec, Op, PATTERN, Ring};

use crate::case::{Case, Path};

pub use build::Library;
pub use error::CppError;

/// Bytes of a text that says what went wrong.
const TEXT: usize = 512;

/// Who executes operations: a `dray_backend`.
const HARDWARE: u32 = 0;
const CPU: u32 = 2;

/// What a loop does: `work` of loop.cpp.
#[repr(C)]
struct Work {
    op: u32,
    backend: u32,
    queue: *const c_char,
    pattern: u64,
    bytes: u32,
    record_bytes: u32,
    depth: u32,
    batch: u32,
    sync: u32,
    cache_control: u32,
    src: CRing,
    dst: CRing,
    dst2: CRing,
}

/// `ring` of loop.cpp.
#[repr(C)]
struct CRing {
    base: u64,
    stride: u64,
    count: u64,
}

impl From<Ring> for CRing {
    fn from(ring: Ring) -> CRing {
        CRing {
            base: ring.base,
            stride: ring.stride,
            count: ring.count.max(1),
        }
    }
}

/// What rounds gave: `loop_result` of loop.cpp.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LoopResult {
    elapsed_ns: u64,
    /// Rounds that have ended.
    pub(super) rounds: u64,
    /// Operations that did not succeed.
    pub(super) failed: u64,
    /// Operations in flight when nothing had completed for ten seconds.
    pub(super) stalled: u64,
    /// Completion status of the first that failed.
    pub(super) status: u32,
    reserved: u32,
}

impl LoopResult {
    pub(super) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed_ns)
    }
}

const _: () = assert!(size_of::<Work>() == 120 && size_of::<LoopResult>() == 40);

type Before = unsafe extern "C" fn(*mut c_void);
type Sample = unsafe extern "C" fn(*mut c_void, u64) -> c_int;
type Open = unsafe extern "C" fn(*const Work, *mut c_char, usize) -> *mut c_void;
type Run = unsafe extern "C" fn(
    *mut c_void,
    u64,
    Option<Before>,
    Option<Sample>,
    *mut c_void,
    *mut LoopResult,
    *mut c_char,
    usize,
) -> c_int;
type Close = unsafe extern "C" fn(*mut c_void);

/// What is done between rounds.
pub(super) trait Rounds {
    /// Before a round of a synchronous loop, unmeasured.
    fn before(&mut self);
    /// After a round that took so long: whether it was the last one.
    fn after(&mut self, took: Duration) -> bool;
}

/// A loop on a mover of its own. Used by one thread.
#[derive(Debug)]
pub(super) struct CppLoop {
    library: Arc<Library>,
    opened: NonNull<c_void>,
}

// SAFETY: its mover may be used by another thread, one at a time.
unsafe impl Send for CppLoop {}

impl CppLoop {
    /// Opens a mover for the operations of one thread of a case, on these buffers.
    pub(super) fn open(
        library: &Arc<Library>,
        case: &Case,
        buffers: &Buffers,
        queue: Option<&str>,
    ) -> Result<CppLoop, CppError> {
        let shape = case.shape();
        let op = number(case.op).ok_or(CppError::NoCall)?;
        // A work queue's name is of sysfs, which has no such byte.
        let queue = queue.map(CString::new).transpose();
        let queue = queue.map_err(|_| CppError::NoCall)?;
        let work = Work {
            op,
            backend: match case.path {
                Path::Dsa => HARDWARE,
                Path::Cpu => CPU,
            },
            queue: queue.as_ref().map_or(null(), |queue| queue.as_ptr()),
            pattern: PATTERN,
            bytes: shape.transfer(),
            record_bytes: match case.op {
                Op::CreateDelta => shape.operand(2),
                Op::ApplyDelta => shape.operand(0),
                _ => 0,
            },
            depth: case.queue_per_thread(),
            batch: case.bsize.max(1),
            sync: (case.exec == Exec::Sync || case.path == Path::Cpu).into(),
            cache_control: (case.out_mem.cache_control && case.op.takes_cache_control()).into(),
            src: buffers.src.into(),
            dst: buffers.dst.into(),
            dst2: buffers.dst2.into(),
        };
        let mut text = [0; TEXT];
        // SAFETY: a structure, and a place for so many bytes.
        let opened = unsafe { (library.open)(&raw const work, text.as_mut_ptr().cast(), TEXT) };
        match NonNull::new(opened) {
            Some(opened) => Ok(CppLoop {
                library: library.clone(),
                opened,
            }),
            None => Err(CppError::Open { text: said(&text) }),
        }
    }

    /// Runs so many rounds with the clock read around them all.
    ///
    /// # Safety
    /// The buffers must be there, and nothing else may access them.
    pub(super) unsafe fn rounds(&mut self, rounds: u64) -> Result<LoopResult, CppError> {
        // SAFETY: the caller's promise is the same; there is nothing to call back.
        unsafe { self.call(rounds, None, None, std::ptr::null_mut()) }
    }

    /// Runs so many rounds, each timed, or fewer if that says so after one.
    ///
    /// # Safety
    /// As [`rounds`](CppLoop::rounds).
    pub(super) unsafe fn timed<R: Rounds>(
        &mut self,
        rounds: u64,
        between: &mut R,
    ) -> Result<LoopResult, CppError> {
        unsafe extern "C" fn before<R: Rounds>(between: *mut c_void) {
            // SAFETY: what `timed` has given, which nothing else uses meanwhile.
            unsafe { &mut *between.cast::<R>() }.before();
        }
        unsafe extern "C" fn sample<R: Rounds>(between: *mut c_void, ns: u64) -> c_int {
            // SAFETY: as above.
            let between = unsafe { &mut *between.cast::<R>() };
            between.after(Duration::from_nanos(ns)).into()
        }
        let context = std::ptr::from_mut(between).cast();
        // SAFETY: the caller's promise is the same; both functions are for this context.
        unsafe { self.call(rounds, Some(before::<R>), Some(sample::<R>), context) }
    }

    /// # Safety
    /// As [`rounds`](CppLoop::rounds); the functions must take the context.
    unsafe fn call(
        &mut self,
        rounds: u64,
        before: Option<Before>,
        sample: Option<Sample>,
        context: *mut c_void,
    ) -> Result<LoopResult, CppError> {
        let (mut found, mut text) = (LoopResult::default(), [0; TEXT]);
        // SAFETY: a loop that was opened, and places for what it writes.
        let code = unsafe {
            (self.library.run)(
                self.opened.as_ptr(),
                rounds,
                before,
                sample,
                context,
                &raw mut found,
                text.as_mut_ptr().cast(),
                TEXT,
            )
        };
        match code {
            0 => Ok(found),
            _ => Err(CppError::Call { text: said(&text) }),
        }
    }
}

impl Drop for CppLoop {
    fn drop(&mut self) {
        // SAFETY: it was opened, and is closed once.
        unsafe { (self.library.close)(self.opened.as_ptr()) };
    }
}

/// `operation` of loop.cpp; `None`: no case of api:cpp has it.
fn number(op: Op) -> Option<u32> {
    Some(match op {
        Op::Move | Op::Copy => 0,
        Op::Fill => 1,
        Op::Compare => 2,
        Op::ComparePattern => 3,
        Op::CreateDelta => 4,
        Op::ApplyDelta => 5,
        Op::Dualcast => 6,
        Op::Crc => 7,
        Op::CopyCrc => 8,
        Op::CacheFlush => 9,
        Op::Nop => 10,
        Op::NtFill
        | Op::DifCheck
        | Op::DifInsert
        | Op::DifStrip
        | Op::DifUpdate
        | Op::DixGenerate => return None,
    })
}

/// A text that ends with 0.
fn said(text: &[u8; TEXT]) -> String {
    let until_zero = CStr::from_bytes_until_nul(text);
    until_zero.map_or_else(
        |_| String::new(),
        |text| text.to_string_lossy().into_owned(),
    )
}
