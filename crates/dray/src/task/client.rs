//! Who asks for operations.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use super::shared::Shared;
use crate::{Buffers, ChannelError, Completed, Home, Rejected, Request};

/// Asks the driver for operations. Clones ask the same driver, from any thread.
///
/// ```
/// use dray::{CpuMover, Request, task};
///
/// let (client, driver) = task::channel(CpuMover::new(8));
/// let other = client.clone();
/// let future = other.request(Request::fill(0, vec![1; 8]));
/// # drop(future);
/// # drop((client, other, driver));
/// ```
pub struct Client<B> {
    shared: Arc<Shared<B>>,
    home: Home,
}

impl<B> Client<B> {
    pub(super) fn new(shared: Arc<Shared<B>>) -> Client<B> {
        Client {
            shared,
            home: Home::here(),
        }
    }

    /// An operation, which begins when the future is first polled; while all slots are taken it waits
    /// for one. The future gives what became of the operation, and its buffers.
    ///
    /// Futures get slots in the order in which they were first polled, as long as no more than 1024 wait; one of
    /// more than that is polled again until it is one of them. Where 1024 have waited, and some of these were
    /// dropped, the next one removes those; the order of the others may change if another thread gives a slot, or
    /// another future comes, during that. A future is no client: once all clients are
    /// dropped, the driver ends, and what has not begun by then is refused. So is all in a child of fork, which
    /// the driver's thread is not in: what was under way there ends with [`ChannelError::InFlight`].
    ///
    /// # Errors
    /// The future gives the reason, with the buffers, of what the channel does not take; see
    /// [`ChannelError`](crate::ChannelError).
    pub fn request(&self, request: Request<B>) -> OperationFuture<B> {
        OperationFuture {
            shared: self.shared.clone(),
            home: self.home,
            stage: Stage::New(Some(request)),
            waiter: None,
        }
    }
}

impl<B> Clone for Client<B> {
    fn clone(&self) -> Client<B> {
        self.shared.clients.fetch_add(1, Ordering::Relaxed);
        Client {
            shared: self.shared.clone(),
            home: self.home,
        }
    }
}

impl<B> Drop for Client<B> {
    fn drop(&mut self) {
        let is_last = self.shared.clients.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last && !self.home.is_inherited() {
            self.shared.driver.wake();
        }
    }
}

impl<B> fmt::Debug for Client<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

/// Ready when its operation is complete. Dropped before, it leaves its buffers with the driver until
/// the device has done with them.
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
///
/// use dray::{CpuMover, Request, task};
///
/// let (client, driver) = task::channel(CpuMover::new(8));
/// let (mut future, mut driver) = (pin!(client.request(Request::fill(1, vec![0; 8]))), pin!(driver));
/// let mut context = Context::from_waker(Waker::noop());
/// // It begins when it is polled first.
/// assert!(future.as_mut().poll(&mut context).is_pending());
/// let _ = driver.as_mut().poll(&mut context);
/// let Poll::Ready(Ok(done)) = future.poll(&mut context) else { panic!() };
/// assert_eq!(done.buffers.destination, Some(vec![1, 0, 0, 0, 0, 0, 0, 0]));
/// ```
#[must_use = "an operation begins when its future is polled"]
pub struct OperationFuture<B> {
    shared: Arc<Shared<B>>,
    home: Home,
    stage: Stage<B>,
    /// Number of its waiter, while it waits for a cell.
    waiter: Option<u32>,
}

enum Stage<B> {
    /// Not begun; it may wait for a cell.
    New(Option<Request<B>>),
    Requested(u32),
    Ended,
}

// It holds no pointer into itself.
impl<B> Unpin for OperationFuture<B> {}

impl<B> Future for OperationFuture<B> {
    type Output = Result<Completed<B>, Box<Rejected<B>>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.home.is_inherited() {
            return this.refused();
        }
        if let Stage::New(request) = &mut this.stage
            && let Some(wanted) = request.take()
        {
            match this
                .shared
                .request(wanted, &mut this.waiter, context.waker())
            {
                Ok(index) => this.stage = Stage::Requested(index),
                Err(back) if back.closed => {
                    this.shared.leave(&mut this.waiter);
                    this.stage = Stage::Ended;
                    return Poll::Ready(Err(Box::new(Rejected {
                        error: ChannelError::Closed,
                        buffers: back.request.into_buffers(),
                    })));
                }
                Err(back) => {
                    *request = Some(back.request);
                    return Poll::Pending;
                }
            }
        }
        let Stage::Requested(index) = this.stage else {
            return Poll::Pending;
        };
        match this.shared.take(index, context.waker()) {
            Some(answer) => {
                this.stage = Stage::Ended;
                Poll::Ready(answer)
            }
            None => Poll::Pending,
        }
    }
}

impl<B> OperationFuture<B> {
    /// What a child of fork is told: the driver's thread is not there, and others may have had its locks.
    #[cold]
    fn refused(&mut self) -> Poll<<Self as Future>::Output> {
        let (error, buffers) = match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::New(request) => {
                let buffers = request.map_or_else(Buffers::none, Request::into_buffers);
                (ChannelError::Closed, buffers)
            }
            Stage::Requested(_) => (ChannelError::InFlight, Buffers::none()),
            Stage::Ended => return Poll::Pending,
        };
        Poll::Ready(Err(Box::new(Rejected { error, buffers })))
    }
}

impl<B> Drop for OperationFuture<B> {
    fn drop(&mut self) {
        if self.home.is_inherited() {
            return;
        }
        match self.stage {
            Stage::Requested(index) => self.shared.abandon(index),
            // It may have been given a cell that it does not take.
            Stage::New(_) => self.shared.leave(&mut self.waiter),
            Stage::Ended => {}
        }
    }
}

impl<B> fmt::Debug for OperationFuture<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::New(_) => "not begun",
            Stage::Requested(_) => "in flight",
            Stage::Ended => "ended",
        };
        write!(f, "OperationFuture ({stage})")
    }
}
