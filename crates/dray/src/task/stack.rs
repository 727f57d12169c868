//! Elements that any thread pushes, also from a signal handler, and that are taken all at once. The links lie in
//! the elements: nothing is allocated, however many there are.

use std::ptr::null_mut;

use super::sync::{AtomicPtr, Ordering};

/// An element that has room for the link of one stack or list at a time.
pub(super) trait Linked: Sized {
    fn next(&self) -> &AtomicPtr<Self>;
}

/// Last in, all out: as all are taken at once, no thread sees an element that another has taken and pushed again.
#[derive(Debug)]
pub(super) struct Stack<T> {
    last: AtomicPtr<T>,
}

impl<T: Linked> Stack<T> {
    pub(super) fn new() -> Stack<T> {
        Stack {
            last: AtomicPtr::new(null_mut()),
        }
    }

    /// Whether it was empty before.
    ///
    /// # Safety
    /// The element is the caller's, and stays valid until it has been taken.
    pub(super) unsafe fn push(&self, element: *mut T) -> bool {
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            // SAFETY: by the caller's promise; nobody else knows it yet.
            unsafe { &*element }.next().store(last, Ordering::Relaxed);
            let pushed =
                self.last
                    .compare_exchange_weak(last, element, Ordering::AcqRel, Ordering::Relaxed);
            match pushed {
                Ok(_) => return last.is_null(),
                Err(other) => last = other,
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.last.load(Ordering::Acquire).is_null()
    }

    /// All elements, in the order in which they were pushed.
    pub(super) fn take_all(&self) -> Fifo<T> {
        let mut element = self.last.swap(null_mut(), Ordering::AcqRel);
        let mut all = Fifo::new();
        while !element.is_null() {
            // SAFETY: it was pushed, and is this call's now.
            let next = unsafe { &*element }.next().load(Ordering::Relaxed);
            // SAFETY: as above.
            unsafe { all.push_front(element) };
            element = next;
        }
        all
    }
}

/// A list of one thread. Its elements are valid as long as they are in it.
#[derive(Debug)]
pub(super) struct Fifo<T> {
    first: *mut T,
    last: *mut T,
}

// SAFETY: it has its elements alone, which are handed over with it.
unsafe impl<T: Sync> Send for Fifo<T> {}

impl<T: Linked> Fifo<T> {
    pub(super) const fn new() -> Fifo<T> {
        Fifo {
            first: null_mut(),
            last: null_mut(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// # Safety
    /// The element is the caller's, and stays valid until it has been popped.
    pub(super) unsafe fn push_front(&mut self, element: *mut T) {
        // SAFETY: by the caller's promise.
        unsafe { &*element }
            .next()
            .store(self.first, Ordering::Relaxed);
        if self.first.is_null() {
            self.last = element;
        }
        self.first = element;
    }

    pub(super) fn pop(&mut self) -> Option<*mut T> {
        let first = self.first;
        if first.is_null() {
            return None;
        }
        // SAFETY: it is in the list, thus valid.
        self.first = unsafe { &*first }.next().load(Ordering::Relaxed);
        Some(first)
    }

    /// Puts all of `behind` behind what is there.
    pub(super) fn append(&mut self, behind: Fifo<T>) {
        if behind.is_empty() {
            return;
        }
        match self.is_empty() {
            true => *self = behind,
            false => {
                // SAFETY: it is in the list, thus valid.
                let last = unsafe { &*self.last };
                last.next().store(behind.first, Ordering::Relaxed);
                self.last = behind.last;
            }
        }
    }
}
