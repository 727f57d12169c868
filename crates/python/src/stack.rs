//! A list that any thread pushes to without a lock: a fork could leave a lock taken in the child for ever.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Values that are taken all at once.
#[derive(Debug)]
pub(crate) struct Stack<T> {
    last: AtomicPtr<Node<T>>,
}

#[derive(Debug)]
struct Node<T> {
    value: T,
    next: *mut Node<T>,
}

impl<T: Send> Stack<T> {
    pub(crate) const fn new() -> Stack<T> {
        Stack {
            last: AtomicPtr::new(null_mut()),
        }
    }

    pub(crate) fn push(&self, value: T) {
        let next = self.last.load(Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node { value, next }));
        let mut last = next;
        while let Err(other) =
            self.last
                .compare_exchange_weak(last, node, Ordering::AcqRel, Ordering::Relaxed)
        {
            // SAFETY: it was made above, and nobody else knows it yet.
            unsafe { (*node).next = other };
            last = other;
        }
    }

    /// All values, the last one first.
    pub(crate) fn take(&self) -> Vec<T> {
        let mut node = self.last.swap(null_mut(), Ordering::AcqRel);
        let mut values = Vec::new();
        while !node.is_null() {
            // SAFETY: it was made in `push`, and is this call's alone.
            let taken = unsafe { Box::from_raw(node) };
            values.push(taken.value);
            node = taken.next;
        }
        values
    }
}

impl<T> Drop for Stack<T> {
    fn drop(&mut self) {
        let mut node = *self.last.get_mut();
        while !node.is_null() {
            // SAFETY: it was made in `push`, and nobody else has the list.
            node = unsafe { Box::from_raw(node) }.next;
        }
    }
}
