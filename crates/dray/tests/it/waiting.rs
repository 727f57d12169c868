//! Futures that wait for a slot, some of them dropped: the others end all the same.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use dray::task::{self, Client, Driver, OperationFuture};
use dray::{ChannelError, CpuMover, Request};

type Bytes = Vec<u8>;

/// Whether a task was woken.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A future, polled only when it was woken, as a runtime does.
struct Task {
    future: OperationFuture<Bytes>,
    woken: Arc<Flag>,
}

impl Task {
    fn new(client: &Client<Bytes>, byte: u8) -> Task {
        Task {
            future: client.request(Request::copy(vec![byte; 64], vec![0; 64])),
            woken: Arc::new(Flag(AtomicBool::new(true))),
        }
    }

    /// Polls it if it was woken. Whether it is ready.
    fn poll(&mut self) -> Poll<()> {
        if !self.woken.0.swap(false, Ordering::SeqCst) {
            return Poll::Pending;
        }
        self.poll_anyway()
    }

    /// Polls it, woken or not.
    fn poll_anyway(&mut self) -> Poll<()> {
        let waker = Waker::from(self.woken.clone());
        let mut context = Context::from_waker(&waker);
        match Pin::new(&mut self.future).poll(&mut context) {
            Poll::Ready(done) => {
                assert!(done.is_ok());
                Poll::Ready(())
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::SeqCst)
    }
}

fn drive(driver: &mut Driver<CpuMover>) {
    let mut context = Context::from_waker(Waker::noop());
    let _ = Pin::new(driver).poll(&mut context);
}

/// Runs tasks and driver until all tasks are ready. A task that nothing wakes is a failure.
fn run(mut tasks: Vec<Task>, driver: &mut Driver<CpuMover>) {
    while !tasks.is_empty() {
        drive(driver);
        let woken = tasks.iter().filter(|task| task.is_woken()).count();
        assert!(woken > 0, "{} tasks wait, and none is woken", tasks.len());
        tasks.retain_mut(|task| task.poll().is_pending());
    }
}

/// A slot that is taken, and `count` tasks that wait for it.
fn waiting(count: u8) -> (Client<Bytes>, Driver<CpuMover>, Task, Vec<Task>) {
    let (client, driver) = task::channel(CpuMover::new(1));
    let mut holder = Task::new(&client, 0xff);
    assert!(holder.poll().is_pending());
    let mut tasks: Vec<Task> = (0..count).map(|n| Task::new(&client, n)).collect();
    for task in &mut tasks {
        assert!(task.poll().is_pending());
        assert!(!task.is_woken());
    }
    (client, driver, holder, tasks)
}

#[test]
fn tasks_that_are_dropped_while_they_wait_take_no_wake_up_along() {
    for count in 2..6_u8 {
        for dropped in 0..1_usize << count {
            let (_client, mut driver, mut holder, mut tasks) = waiting(count);
            let mut n = 0;
            tasks.retain(|_| {
                n += 1;
                dropped >> (n - 1) & 1 == 0
            });
            drive(&mut driver);
            assert!(holder.poll().is_ready());
            run(tasks, &mut driver);
        }
    }
}

#[test]
fn tasks_that_are_polled_again_and_again_wait_once() {
    let (_client, mut driver, mut holder, mut tasks) = waiting(3);
    for _ in 0..5000 {
        for task in &mut tasks {
            assert!(task.poll_anyway().is_pending());
            assert!(!task.is_woken(), "it asks again");
        }
    }
    drive(&mut driver);
    assert!(holder.poll().is_ready());
    run(tasks, &mut driver);
}

#[test]
fn more_tasks_than_places_to_wait_all_end() {
    let (client, mut driver, mut holder, mut tasks) = waiting(10);
    // Thousands come and go before their turn.
    for n in 0..5000_u32 {
        let mut task = Task::new(&client, n as u8);
        assert!(task.poll().is_pending());
        assert!(!task.is_woken(), "task {n} asks again");
    }
    // And thousands stay.
    for n in 0..3000_u32 {
        let mut task = Task::new(&client, n as u8);
        assert!(task.poll().is_pending());
        tasks.push(task);
    }
    drive(&mut driver);
    assert!(holder.poll().is_ready());
    run(tasks, &mut driver);
}

#[test]
fn tasks_that_wait_are_told_that_the_driver_has_ended() {
    let (client, driver, _holder, mut tasks) = waiting(3);
    drop(tasks.remove(0));
    drop(driver);
    for task in &mut tasks {
        assert!(task.is_woken());
        let waker = Waker::noop();
        let mut context = Context::from_waker(waker);
        let Poll::Ready(Err(rejected)) = Pin::new(&mut task.future).poll(&mut context) else {
            panic!("no driver, and it waits");
        };
        assert_eq!(rejected.error, ChannelError::Closed.into());
    }
    drop(client);
}

#[test]
fn tasks_that_wait_keep_their_order_whatever_threads_drop() {
    let (client, mut driver, mut holder, tasks) = waiting(200);
    let threads = [(); 4].map(|()| {
        let client = client.clone();
        std::thread::spawn(move || {
            for n in 0..1000_u32 {
                let mut task = Task::new(&client, n as u8);
                assert!(task.poll().is_pending());
            }
        })
    });
    for thread in threads {
        thread.join().expect("no panic");
    }
    drive(&mut driver);
    assert!(holder.poll().is_ready());
    for mut task in tasks {
        assert!(!task.is_woken(), "it is not its turn");
        drive(&mut driver);
        assert!(task.poll().is_ready());
    }
}
