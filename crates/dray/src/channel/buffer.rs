//! Memory that a device can read and write while a channel owns it.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

/// A buffer that a device can read and write while a [`Channel`](crate::Channel) owns it.
///
/// # Safety
/// `stable_ptr` must give the address of `len` initialized bytes that stay where they are, also when
/// the value itself is moved, and that nothing else accesses as long as the value is not borrowed. (A
/// box is none: moving it tells the compiler that no other pointer to its bytes is used.)
///
/// ```
/// use dray::{Buffer, Channel, CpuMover, WaitPolicy};
///
/// /// Memory of some pool.
/// struct Pooled(Vec<u8>);
///
/// // SAFETY: the bytes lie on the heap, and the vector owns them.
/// unsafe impl Buffer for Pooled {
///     fn stable_ptr(&mut self) -> *mut u8 {
///         self.0.as_mut_ptr()
///     }
///
///     fn len(&self) -> usize {
///         self.0.len()
///     }
/// }
///
/// let mut channel = Channel::new(CpuMover::new(1));
/// channel.fill(u64::MAX, Pooled(vec![0; 64])).map_err(|rejected| rejected.error)?;
/// let done = channel.wait(WaitPolicy::Pause, None)?;
/// assert!(done.buffers.destination.is_some_and(|buffer| buffer.0 == [255; 64]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub unsafe trait Buffer {
    /// Address of the first byte, valid for reads and writes.
    fn stable_ptr(&mut self) -> *mut u8;

    /// Number of bytes.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

// SAFETY: the bytes of a vector lie on the heap, and the vector owns them.
unsafe impl Buffer for Vec<u8> {
    fn stable_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    fn len(&self) -> usize {
        self.len()
    }
}

/// Bytes on whole pages of 4 KiB: what a dualcast needs, whose two destinations have equal address bits
/// 11:0, and a fast copy likes.
///
/// ```
/// let mut pages = dray::PageBuffer::zeroed(100);
/// pages[..3].copy_from_slice(b"abc");
/// assert_eq!((pages.len(), pages.as_ptr().addr() % 4096), (100, 0));
/// ```
pub struct PageBuffer {
    base: NonNull<u8>,
    len: usize,
}

impl PageBuffer {
    /// Bytes of a page.
    const PAGE: usize = 4096;

    /// `len` bytes, all 0.
    ///
    /// # Panics
    /// More bytes than an address space has.
    pub fn zeroed(len: usize) -> PageBuffer {
        let layout = PageBuffer::layout(len);
        // SAFETY: the size is not 0.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else {
            handle_alloc_error(layout);
        };
        PageBuffer { base, len }
    }

    fn layout(len: usize) -> Layout {
        let layout = Layout::from_size_align(len.max(1), PageBuffer::PAGE);
        layout.expect("no more bytes than isize::MAX")
    }
}

impl Drop for PageBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nothing else has it.
        unsafe { dealloc(self.base.as_ptr(), PageBuffer::layout(self.len)) };
    }
}

// SAFETY: the bytes belong to this value.
unsafe impl Send for PageBuffer {}
// SAFETY: as above; a shared borrow only reads.
unsafe impl Sync for PageBuffer {}

impl Deref for PageBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes were allocated, zeroed.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl DerefMut for PageBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: so many bytes were allocated, zeroed, and the borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

impl fmt::Debug for PageBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageBuffer of {} bytes", self.len)
    }
}

// SAFETY: the bytes were allocated for this value alone, and moving it does not move them.
unsafe impl Buffer for PageBuffer {
    fn stable_ptr(&mut self) -> *mut u8 {
        self.base.as_ptr()
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// The buffers of an operation.
///
/// ```
/// let request = dray::Request::copy(vec![1; 8], vec![0; 8]);
/// let buffers = request.into_buffers();
/// assert_eq!(buffers.source, Some(vec![1; 8]));
/// assert_eq!(buffers.destination, Some(vec![0; 8]));
/// assert_eq!(buffers.second, None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Buffers<B> {
    /// What it reads, or the first of two that it compares; the delta record that it applies.
    pub source: Option<B>,
    /// What it writes, or the second of two that it compares.
    pub destination: Option<B>,
    /// The second destination of a dualcast; the delta record that is made.
    pub second: Option<B>,
}

impl<B> Buffers<B> {
    pub(crate) fn none() -> Buffers<B> {
        Buffers {
            source: None,
            destination: None,
            second: None,
        }
    }
}
