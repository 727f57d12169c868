//! The stack of handles under loom: the same source, compiled with loom's atomics, in every interleaving (up to
//! two preemptions) of small numbers of threads. A wake-up that is lost is a thread that sleeps for ever, and loom
//! says so.

#[allow(dead_code, unreachable_pub, reason = "the models use a part")]
#[path = "../src/task/stack.rs"]
mod stack;
#[path = "loom/sync.rs"]
mod sync;

use std::ptr::null_mut;
use std::task::Poll;

use loom::future::{AtomicWaker, block_on};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering, fence};
use loom::thread;
use stack::{Linked, Stack};
use sync::AtomicPtr;

struct Element {
    next: AtomicPtr<Element>,
    number: usize,
}

impl Linked for Element {
    fn next(&self) -> &AtomicPtr<Element> {
        &self.next
    }
}

/// A new element, which `number` frees.
fn element(number: usize) -> *mut Element {
    let next = AtomicPtr::new(null_mut());
    Box::into_raw(Box::new(Element { next, number }))
}

fn number(element: *mut Element) -> usize {
    // SAFETY: made by `element`, and taken from a stack once.
    unsafe { Box::from_raw(element) }.number
}

fn take(stack: &Stack<Element>) -> Vec<usize> {
    let mut all = stack.take_all();
    std::iter::from_fn(|| all.pop()).map(number).collect()
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

/// Two threads push two each, two threads take: each is taken once, by whom it may be, those of a thread in its order.
#[test]
fn what_threads_push_is_taken_once_and_in_order() {
    check(|| {
        let stack = Arc::new(Stack::new());
        let pushing = [10, 20].map(|first| {
            let stack = stack.clone();
            thread::spawn(move || {
                for number in [first, first + 1] {
                    // SAFETY: a new one, which is freed when it was taken.
                    unsafe { stack.push(element(number)) };
                }
            })
        });
        let first = take(&stack);
        let _ = pushing.map(|thread| thread.join().expect("no panic"));
        let second = take(&stack);
        let of = |ten: usize| {
            let all = first.iter().chain(&second).copied();
            all.filter(|number| number / 10 == ten).collect::<Vec<_>>()
        };
        assert_eq!((of(1), of(2)), (vec![10, 11], vec![20, 21]));
        assert!(stack.is_empty());
    });
}

/// One of those that push finds the stack empty: it tells the others' reader once for all that is there.
#[test]
fn who_pushes_on_an_empty_stack_learns_it() {
    check(|| {
        let stack = Arc::new(Stack::new());
        let pushing = [1, 2].map(|number| {
            let stack = stack.clone();
            // SAFETY: as above.
            thread::spawn(move || unsafe { stack.push(element(number)) })
        });
        let taken = take(&stack).len();
        let empty = pushing.map(|thread| thread.join().expect("no panic"));
        let told = empty.iter().filter(|empty| **empty).count();
        // What was taken in between had its own.
        assert!((1..=1 + taken.min(1)).contains(&told), "{told} {taken}");
        take(&stack);
    });
}

/// As `Shared::start` and `Driver::rest`: a driver that sleeps is woken by what is pushed, and by the end.
#[test]
fn a_driver_that_goes_to_sleep_misses_nothing() {
    check(|| {
        let shared = Arc::new((Stack::new(), AtomicWaker::new()));
        let driver = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (stack, waker) = &*shared;
                let mut seen = 0;
                block_on(std::future::poll_fn(|context| {
                    seen += take(stack).len();
                    waker.register_by_ref(context.waker());
                    match (seen == 2, stack.is_empty()) {
                        (true, _) => Poll::Ready(()),
                        (false, true) => Poll::Pending,
                        (false, false) => {
                            context.waker().wake_by_ref();
                            Poll::Pending
                        }
                    }
                }));
            })
        };
        let pushing = [1, 2].map(|number| {
            let shared = shared.clone();
            thread::spawn(move || {
                // SAFETY: as above.
                unsafe { shared.0.push(element(number)) };
                shared.1.wake();
            })
        });
        let _ = pushing.map(|thread| thread.join().expect("no panic"));
        driver.join().expect("it has seen both");
    });
}

/// As `Shared::start` and the end of a driver: what is pushed meanwhile is taken by one of them.
#[test]
fn what_is_pushed_while_the_driver_ends_is_taken() {
    check(|| {
        let shared = Arc::new((Stack::new(), AtomicBool::new(false)));
        let starting = {
            let shared = shared.clone();
            thread::spawn(move || {
                // SAFETY: as above.
                unsafe { shared.0.push(element(1)) };
                fence(Ordering::SeqCst);
                match shared.1.load(Ordering::SeqCst) {
                    true => take(&shared.0).len(),
                    false => 0,
                }
            })
        };
        shared.1.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let by_driver = take(&shared.0).len();
        assert_eq!(by_driver + starting.join().expect("no panic"), 1);
    });
}
