//! Cores that copy: the calling one, or several.

use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use dray_placement::{Cut, Rest};

use super::{Copied, Copy, CopyError, PageCopier, bytes};

/// Bytes that one thread takes at once.
const SHARE: u64 = 256 << 10;

/// Copies by cores, with stores that go past the caches: the pages that migrate are cold.
#[derive(Debug, Default)]
pub struct Cores {
    helpers: Vec<SyncSender<Arc<Work>>>,
}

/// A list that threads share. It lives in the caller of [`PageCopier::copy`], who waits.
#[derive(Debug)]
struct Work {
    list: Vec<Copy>,
    next: AtomicUsize,
    left: AtomicUsize,
    caller: thread::Thread,
}

impl Work {
    fn take_part(&self) {
        while let Some(copy) = self.list.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            // SAFETY: the caller of `copy` answers for it; each entry is taken once.
            unsafe { copy_past_caches(copy) };
            if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.caller.unpark();
            }
        }
    }
}

impl Cores {
    /// With `threads` threads, the calling one among them.
    pub fn new(threads: usize) -> Cores {
        let helpers = (1..threads)
            .filter_map(|_| {
                let (sender, receiver) = sync_channel(1);
                let help = move || help(&receiver);
                let name = "dray-copy".to_owned();
                // With fewer threads the list is copied all the same.
                thread::Builder::new().name(name).spawn(help).ok()?;
                Some(sender)
            })
            .collect();
        Cores { helpers }
    }
}

fn help(works: &Receiver<Arc<Work>>) {
    for work in works {
        work.take_part();
    }
}

impl PageCopier for Cores {
    fn name(&self) -> &'static str {
        "cpu"
    }

    unsafe fn copy(&mut self, list: &[Copy]) -> Result<Copied, CopyError> {
        let all = bytes(list);
        if self.helpers.is_empty() || all < 2 * SHARE {
            for copy in list {
                // SAFETY: the caller's promise.
                unsafe { copy_past_caches(copy) };
            }
            return Ok(Copied {
                core: all,
                ..Copied::default()
            });
        }
        let list: Vec<Copy> = list.iter().flat_map(shares).collect();
        let work = Arc::new(Work {
            next: AtomicUsize::new(0),
            left: AtomicUsize::new(list.len()),
            list,
            caller: thread::current(),
        });
        for helper in &self.helpers {
            // One that is still at the end of another list is not needed.
            let _ = helper.try_send(work.clone());
        }
        work.take_part();
        while work.left.load(Ordering::Acquire) > 0 {
            thread::park();
        }
        Ok(Copied {
            cores: all,
            ..Copied::default()
        })
    }
}

fn shares(copy: &Copy) -> impl Iterator<Item = Copy> + use<> {
    let copy = *copy;
    let pieces = Rest::new(copy.len).pieces(Cut::bytes(SHARE));
    pieces.map(move |piece| Copy {
        src: copy.src + piece.offset,
        dst: copy.dst + piece.offset,
        len: piece.bytes,
    })
}

/// # Safety
/// As [`PageCopier::copy`].
unsafe fn copy_past_caches(copy: &Copy) {
    let len = copy.len as usize;
    let src = std::ptr::with_exposed_provenance(copy.src as usize);
    // SAFETY: the caller vouches that the run is readable and not written meanwhile.
    let src = unsafe { slice::from_raw_parts(src, len) };
    let dst = std::ptr::with_exposed_provenance_mut(copy.dst as usize);
    // SAFETY: the caller vouches that the run is writable and nobody else's meanwhile.
    let dst = unsafe { slice::from_raw_parts_mut(dst, len) };
    let copied = dray_ops::copy_non_temporal(src, dst);
    debug_assert_eq!(copied, Ok(()), "the lengths are equal");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::memory;

    #[test]
    fn one_thread_and_several_copy_the_same_bytes() {
        let len = 3 << 20;
        let base = memory::reserve(2 * len, 4096).expect("memory");
        let word = |at: u64| std::ptr::with_exposed_provenance_mut::<u64>((base + at) as usize);
        for threads in [1, 3] {
            for at in (0..len).step_by(8) {
                // SAFETY: mapped above.
                unsafe { word(at).write(at * threads as u64) };
            }
            let list = [
                Copy {
                    src: base,
                    dst: base + len,
                    len: 4096,
                },
                Copy {
                    src: base + 4096,
                    dst: base + len + 4096,
                    len: len - 4096,
                },
            ];
            // SAFETY: all of it is ours.
            let copied = unsafe { Cores::new(threads).copy(&list) }.expect("cores do not fail");
            assert_eq!(copied.core + copied.cores, len);
            assert_eq!(copied.cores > 0, threads > 1);
            for at in (0..len).step_by(8) {
                // SAFETY: as above.
                assert_eq!(unsafe { word(len + at).read() }, at * threads as u64);
            }
        }
        // SAFETY: ours.
        unsafe { memory::unmap(base, 2 * len) };
    }
}
