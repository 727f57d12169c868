//! Futures that wait for cells, under loom: the same source, compiled with loom's atomics, in every
//! interleaving (up to two or three preemptions) of small numbers of threads. A wake-up that is lost is a thread
//! that sleeps for ever, and loom says so.

#[allow(dead_code, unreachable_pub, reason = "the models use a part")]
#[path = "../src/task/free_cells.rs"]
mod free_cells;
#[allow(dead_code, unreachable_pub, reason = "the models use a part")]
#[path = "../src/task/list.rs"]
mod list;
#[path = "loom/sync.rs"]
mod sync;
#[allow(dead_code, unreachable_pub, reason = "the models use a part")]
#[path = "../src/task/waiters.rs"]
mod waiters;

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use free_cells::FreeCells;
use loom::future::block_on;
use loom::sync::Arc;
use loom::thread;

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// A future that waits for a cell; dropped before, it leaves its waiter.
struct Taking {
    cells: Arc<FreeCells>,
    waiter: Option<u32>,
}

impl Taking {
    fn new(cells: &Arc<FreeCells>) -> Taking {
        Taking {
            cells: cells.clone(),
            waiter: None,
        }
    }

    fn poll(&mut self, waker: &Waker) -> Option<u32> {
        self.cells.take(&mut self.waiter, waker)
    }

    /// Waits for a cell, or for the end.
    fn wait(self) -> Option<u32> {
        self.wait_with(|| ())
    }

    /// The same where too few can wait: it asks again until another has left, which the model must let it do.
    fn wait_among_too_many(self) -> Option<u32> {
        self.wait_with(thread::yield_now)
    }

    fn wait_with(mut self, between: impl Fn()) -> Option<u32> {
        block_on(poll_fn(move |context: &mut Context<'_>| {
            match self.poll(context.waker()) {
                None if !self.cells.is_closed() => {
                    between();
                    Poll::Pending
                }
                cell => Poll::Ready(cell),
            }
        }))
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        self.cells.leave(&mut self.waiter);
    }
}

/// One cell, which is taken.
fn one_cell(most_waiters: u32) -> (Arc<FreeCells>, u32) {
    let cells = Arc::new(FreeCells::with_waiters(1, most_waiters));
    let cell = cells.take(&mut None, Waker::noop()).expect("a free cell");
    (cells, cell)
}

#[test]
fn futures_that_wait_get_the_cell_one_after_the_other() {
    check(2, || {
        let (cells, cell) = one_cell(2);
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                let cells = cells.clone();
                thread::spawn(move || {
                    let cell = Taking::new(&cells).wait().expect("it is not closed");
                    cells.give_back(cell);
                })
            })
            .collect();
        cells.give_back(cell);
        for thread in waiting {
            thread.join().unwrap();
        }
    });
}

#[test]
fn futures_get_the_cell_in_the_order_in_which_they_asked() {
    check(3, || {
        let (cells, cell) = one_cell(3);
        let mut waiting = [(); 2].map(|()| Taking::new(&cells));
        for taking in &mut waiting {
            assert_eq!(taking.poll(Waker::noop()), None);
        }
        let newcomer = {
            let cells = cells.clone();
            thread::spawn(move || {
                let mut newcomer = Taking::new(&cells);
                assert_eq!(newcomer.poll(Waker::noop()), None, "it has overtaken");
                newcomer
            })
        };
        let giving = {
            let cells = cells.clone();
            thread::spawn(move || cells.give_back(cell))
        };
        let [first, second] = &mut waiting;
        assert_eq!(second.poll(Waker::noop()), None, "it has overtaken");
        giving.join().unwrap();
        let mut newcomer = newcomer.join().unwrap();
        for taking in [first, second, &mut newcomer] {
            assert_eq!(taking.poll(Waker::noop()), Some(cell));
            cells.give_back(cell);
        }
    });
}

#[test]
fn a_cell_that_a_future_was_given_and_does_not_take_is_not_lost() {
    check(3, || {
        let (cells, cell) = one_cell(2);
        let mut first = Taking::new(&cells);
        assert_eq!(first.poll(Waker::noop()), None);
        let dropping = thread::spawn(move || drop(first));
        cells.give_back(cell);
        dropping.join().unwrap();
        assert_eq!(cells.take(&mut None, Waker::noop()), Some(cell));
    });
}

#[test]
fn a_future_that_is_dropped_leaves_its_cell_to_the_next() {
    check(2, || {
        let (cells, cell) = one_cell(2);
        // It waits first, and never looks again.
        let mut first = Taking::new(&cells);
        assert_eq!(first.poll(Waker::noop()), None);
        let second = {
            let cells = cells.clone();
            thread::spawn(move || Taking::new(&cells).wait().is_some())
        };
        let dropping = thread::spawn(move || drop(first));
        cells.give_back(cell);
        dropping.join().unwrap();
        assert!(second.join().unwrap());
    });
}

#[test]
fn waiters_of_futures_that_have_left_are_used_again() {
    check(3, || {
        let (cells, cell) = one_cell(1);
        let mut first = Taking::new(&cells);
        assert_eq!(first.poll(Waker::noop()), None);
        drop(first);
        let second = {
            let cells = cells.clone();
            thread::spawn(move || Taking::new(&cells).wait_among_too_many().is_some())
        };
        cells.give_back(cell);
        assert!(second.join().unwrap());
    });
}

#[test]
fn a_future_that_uses_the_waiter_of_one_that_has_left_keeps_the_order() {
    check(3, || {
        let (cells, cell) = one_cell(4);
        let mut waiting = [(); 4].map(|()| Taking::new(&cells));
        for taking in &mut waiting {
            assert_eq!(taking.poll(Waker::noop()), None);
        }
        let [mut given, mut first, mut second, left] = waiting;
        // It is given the cell, and not polled yet: its number is not in the queue.
        cells.give_back(cell);
        drop(left);
        let mut newcomer = Taking::new(&cells);
        assert_eq!(newcomer.poll(Waker::noop()), None);
        for taking in [&mut given, &mut first, &mut second, &mut newcomer] {
            assert_eq!(taking.poll(Waker::noop()), Some(cell), "it was overtaken");
            cells.give_back(cell);
        }
    });
}

/// Four futures wait for one cell, with so many waiters; the second and the fourth are dropped.
fn two_of_four(most_waiters: u32) -> (Arc<FreeCells>, u32, [Taking; 2]) {
    let (cells, cell) = one_cell(most_waiters);
    let mut waiting = [(); 4].map(|()| Taking::new(&cells));
    for taking in &mut waiting {
        assert_eq!(taking.poll(Waker::noop()), None);
    }
    let [first, _, second, _] = waiting;
    (cells, cell, [first, second])
}

/// A thread whose future comes and waits.
fn coming(cells: &Arc<FreeCells>) -> thread::JoinHandle<Taking> {
    let cells = cells.clone();
    thread::spawn(move || {
        let mut newcomer = Taking::new(&cells);
        assert_eq!(newcomer.poll(Waker::noop()), None, "it has overtaken");
        newcomer
    })
}

/// Each has the cell in its turn.
fn in_turn<'a>(cells: &FreeCells, cell: u32, futures: impl IntoIterator<Item = &'a mut Taking>) {
    for (n, taking) in futures.into_iter().enumerate() {
        let turn = taking.poll(Waker::noop());
        assert_eq!(turn, Some(cell), "number {n} was overtaken");
        cells.give_back(cell);
    }
}

#[test]
fn futures_that_come_at_once_and_use_the_waiters_of_others_keep_the_order() {
    // With three waiters and one for the last, both newcomers look for those of the futures that have left; with
    // one more, one of them does.
    for most_waiters in [3, 4] {
        check(2, move || {
            let (cells, cell, mut waiting) = two_of_four(most_waiters);
            let coming = [(); 2].map(|()| coming(&cells));
            let newcomers = coming.map(|thread| thread.join().unwrap());
            cells.give_back(cell);
            in_turn(&cells, cell, &mut waiting);
            // These came at once: in any order, once there is a waiter for each.
            drop(newcomers);
            assert_eq!(cells.take(&mut None, Waker::noop()), Some(cell));
        });
    }
}

#[test]
fn the_first_gets_the_cell_while_another_uses_the_waiters_of_those_that_have_left() {
    check(2, || {
        let (cells, cell, mut waiting) = two_of_four(3);
        let coming = coming(&cells);
        cells.give_back(cell);
        let mut newcomer = coming.join().unwrap();
        let [first, second] = &mut waiting;
        in_turn(&cells, cell, [first, second, &mut newcomer]);
    });
}

#[test]
fn futures_that_are_dropped_at_once_leave_the_others_in_order() {
    check(3, || {
        let (cells, cell) = one_cell(5);
        let mut waiting = [(); 5].map(|()| Taking::new(&cells));
        for taking in &mut waiting {
            assert_eq!(taking.poll(Waker::noop()), None);
        }
        let [mut first, left, also_left, mut second, last] = waiting;
        let dropping = thread::spawn(move || drop((left, last)));
        let coming = coming(&cells);
        drop(also_left);
        dropping.join().unwrap();
        let mut third = coming.join().unwrap();
        cells.give_back(cell);
        in_turn(&cells, cell, [&mut first, &mut second, &mut third]);
    });
}

#[test]
fn no_waiter_is_lost_or_given_twice() {
    const MOST: u32 = 2;
    check(2, || {
        let (cells, cell) = one_cell(MOST);
        let come_and_go = |cells: &Arc<FreeCells>| {
            let mut taking = Taking::new(cells);
            assert_eq!(taking.poll(Waker::noop()), None);
        };
        let mut first = Taking::new(&cells);
        assert_eq!(first.poll(Waker::noop()), None);
        let other = {
            let cells = cells.clone();
            thread::spawn(move || come_and_go(&cells))
        };
        come_and_go(&cells);
        come_and_go(&cells);
        other.join().unwrap();
        // All but the first have left: each of the others finds a waiter.
        let others = [(); MOST as usize - 1].map(|()| Taking::new(&cells));
        let mut held: Vec<_> = std::iter::once(first).chain(others).collect();
        for taking in &mut held {
            assert_eq!(taking.poll(Waker::noop()), None);
        }
        let mut numbers: Vec<_> = held.iter().map(|taking| taking.waiter).collect();
        assert!(numbers.iter().all(Option::is_some), "a waiter is lost");
        numbers.sort_unstable();
        assert!(
            numbers.windows(2).all(|two| two[0] != two[1]),
            "{numbers:?}"
        );
        drop(held);
        cells.give_back(cell);
        assert_eq!(cells.take(&mut None, Waker::noop()), Some(cell));
    });
}

#[test]
fn no_future_waits_for_cells_that_are_closed() {
    check(2, || {
        let (cells, _) = one_cell(2);
        let waiting = {
            let cells = cells.clone();
            thread::spawn(move || Taking::new(&cells).wait())
        };
        let mut other = Taking::new(&cells);
        assert_eq!(other.poll(Waker::noop()), None);
        cells.close();
        assert_eq!(waiting.join().unwrap(), None);
    });
}
