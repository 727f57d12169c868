//! Who asks for operations on buffers that are given by value.

use std::cell::UnsafeCell;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::ptr::from_ref;
use std::sync::Arc;
use std::task::{Context, Poll};

use atomic_waker::AtomicWaker;
use thiserror::Error;

use super::Submitter;
use super::handle::{Handle, Look};
use super::shared::Shared;
use crate::{
    Buffer, Buffers, ChannelError, Executor, Failure, Operation, Outcome, Output, Request,
};

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
    submitter: Submitter,
    of: std::marker::PhantomData<fn(B) -> B>,
}

impl<B: Buffer + Send> Client<B> {
    pub(super) fn new(submitter: Submitter) -> Client<B> {
        Client {
            submitter,
            of: std::marker::PhantomData,
        }
    }

    /// An operation, which begins when the future is first polled, behind all that were before. The future gives what
    /// it gives and its buffers, or how it failed and its buffers. It allocates once.
    ///
    /// A future that is dropped before the driver has begun with it is not executed. A future is no client: once all
    /// clients are dropped and nothing is in flight, the driver ends, and what begins then is refused. So is all in a child
    /// of fork, which
    /// the driver's thread is not in: what was under way there ends with [`ChannelError::InFlight`].
    ///
    /// # Errors
    /// The future gives the reason, with the buffers: see [`TaskError`].
    pub fn request(&self, request: Request<B>) -> OperationFuture<B> {
        OperationFuture {
            shared: self.submitter.shared.clone(),
            stage: Stage::New(request),
        }
    }
}

impl<B> Clone for Client<B> {
    fn clone(&self) -> Client<B> {
        Client {
            submitter: self.submitter.clone(),
            of: self.of,
        }
    }
}

impl<B> fmt::Debug for Client<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

/// An operation that has succeeded, with its buffers.
///
/// ```
/// # use std::task::{Context, Poll, Waker};
/// use dray::{CpuMover, Executor, Output, Request, task};
///
/// # let mut context = Context::from_waker(Waker::noop());
/// let (client, driver) = task::channel(CpuMover::new(1));
/// let mut future = std::pin::pin!(client.request(Request::crc32c(b"123456789".to_vec(), 0)));
/// # assert!(future.as_mut().poll(&mut context).is_pending());
/// # drop(client);
/// driver.run();
/// # let Poll::Ready(done) = future.poll(&mut context) else { panic!() };
/// let done: task::Done<Vec<u8>> = done?; // .await?
/// assert_eq!((done.output, done.executor), (Output::Crc32(0xe306_9283), Executor::Cpu));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Done<B> {
    /// What it gives.
    pub output: Output,
    /// Who executed it.
    pub executor: Executor,
    /// The caller's number; 0 if none was given.
    pub user_data: u64,
    /// Who did what of it and why.
    pub outcome: Outcome,
    /// The buffers, which are the caller's again.
    pub buffers: Buffers<B>,
}

/// An operation that has not succeeded, with its buffers. It is an [`Error`], for one `?`.
///
/// ```
/// # use std::task::{Context, Poll, Waker};
/// use dray::{ChannelError, CpuMover, Request, task};
///
/// # let mut context = Context::from_waker(Waker::noop());
/// let (client, _driver) = task::channel(CpuMover::new(1));
/// let future = std::pin::pin!(client.request(Request::fill(0, vec![])));
/// # let Poll::Ready(done) = future.poll(&mut context) else { panic!() };
/// let not: Box<task::NotDone<Vec<u8>>> = done.unwrap_err(); // .await
/// assert_eq!(not.error, ChannelError::Length { len: 0 }.into());
/// assert_eq!(not.buffers.destination, Some(vec![]));
/// ```
#[derive(Debug)]
pub struct NotDone<B> {
    /// Why.
    pub error: TaskError,
    /// Who did what of it and why, if it was executed.
    pub outcome: Option<Outcome>,
    /// The buffers, which are the caller's again; none if a device still has them.
    pub buffers: Buffers<B>,
}

/// Why an operation has not succeeded.
///
/// ```
/// use dray::{ChannelError, task::TaskError};
///
/// let error = TaskError::from(ChannelError::Closed);
/// assert_eq!(error.to_string(), "the driver of the channel has ended");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TaskError {
    /// It was not begun.
    #[error(transparent)]
    Refused(#[from] ChannelError),
    /// It has failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl<B> fmt::Display for NotDone<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<B: fmt::Debug> Error for NotDone<B> {}

/// An operation under way. The future has it, and from its start to its end the driver.
#[repr(C)]
struct Node<B> {
    // First, so that its address is that of the node.
    handle: Handle,
    waker: AtomicWaker,
    operation: Operation,
    /// The driver's until it has ended, and then the future's.
    buffers: UnsafeCell<Buffers<B>>,
}

// SAFETY: the buffers are accessed by the future alone, and handed over with the end of the operation.
unsafe impl<B: Send> Send for Node<B> {}
// SAFETY: as above.
unsafe impl<B: Send> Sync for Node<B> {}

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
    shared: Arc<Shared>,
    stage: Stage<B>,
}

enum Stage<B> {
    New(Request<B>),
    Started(Arc<Node<B>>),
    Ended,
}

// It holds no pointer into itself.
impl<B> Unpin for OperationFuture<B> {}

impl<B: Buffer + Send> Future for OperationFuture<B> {
    type Output = Result<Done<B>, Box<NotDone<B>>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let node = match std::mem::replace(&mut this.stage, Stage::Ended) {
            Stage::New(request) => match this.start(request, context) {
                Ok(node) => node,
                Err(refused) => return Poll::Ready(Err(refused)),
            },
            Stage::Started(node) => {
                node.waker.register(context.waker());
                node
            }
            Stage::Ended => return Poll::Pending,
        };
        match node.handle.look() {
            Look::Ended(outcome) => Poll::Ready(node.ended(outcome)),
            Look::Lost | Look::Inherited => {
                Poll::Ready(Err(refused(ChannelError::InFlight, Buffers::none())))
            }
            Look::Idle | Look::Pending => {
                this.stage = Stage::Started(node);
                Poll::Pending
            }
        }
    }
}

fn refused<B>(error: ChannelError, buffers: Buffers<B>) -> Box<NotDone<B>> {
    Box::new(NotDone {
        error: error.into(),
        outcome: None,
        buffers,
    })
}

impl<B> OperationFuture<B> {
    /// Takes the operation back if the driver has not begun with it; the future is ready in any case once the operation has
    /// ended, with what was executed or with [`ChannelError::Closed`].
    pub fn cancel(&self) {
        if let Stage::Started(node) = &self.stage {
            node.handle.cancel();
        }
    }

    /// Leaves an operation that has begun to the driver, which executes it though nobody waits, and drops its buffers then.
    pub fn detach(mut self) {
        self.stage = Stage::Ended;
    }
}

impl<B: Buffer + Send> OperationFuture<B> {
    fn start(
        &self,
        mut request: Request<B>,
        context: &Context<'_>,
    ) -> Result<Arc<Node<B>>, Box<NotDone<B>>> {
        let made = request.operation().and_then(|operation| {
            match self.shared.capabilities.supports(&operation) {
                true => Ok(operation),
                false => Err(ChannelError::Unsupported {
                    opcode: operation.opcode(),
                    len: operation.len() as usize,
                }),
            }
        });
        let operation = match made {
            Ok(operation) => operation.with_user_data(request.user_data),
            Err(error) => return Err(refused(error, request.into_buffers())),
        };
        let node = Arc::new(Node {
            handle: Handle::new(),
            waker: AtomicWaker::new(),
            operation,
            buffers: UnsafeCell::new(request.into_buffers()),
        });
        node.waker.register(context.waker());
        // The driver's.
        let given = Arc::into_raw(node.clone());
        // SAFETY: the node, and the buffers in it, stay until `after` has dropped what was given.
        let started = unsafe {
            self.shared.start(
                given.cast::<Handle>().cast_mut(),
                operation.into(),
                false,
                Some(after::<B>),
            )
        };
        if started.is_err() {
            // SAFETY: given above, and not taken.
            drop(unsafe { Arc::from_raw(given) });
            return Err(refused(ChannelError::Closed, node.take()));
        }
        Ok(node)
    }
}

/// Wakes the future of a node that has ended. What a device still has is left where it is.
///
/// # Safety
/// The handle is that of a node that was given to the driver, and is dropped here.
unsafe fn after<B>(handle: *mut Handle, is_ended: bool) {
    // SAFETY: the handle is a node's first field, and was made of one; by the caller's promise it is taken once.
    let node = unsafe { Arc::from_raw(handle.cast_const().cast::<Node<B>>()) };
    node.waker.wake();
    if !is_ended {
        std::mem::forget(node);
    }
}

impl<B> Node<B> {
    /// The buffers, which no operation has.
    fn take(&self) -> Buffers<B> {
        // SAFETY: it has not begun or has ended, and its future alone calls this.
        unsafe { self.buffers.get().replace(Buffers::none()) }
    }

    fn ended(&self, outcome: Outcome) -> Result<Done<B>, Box<NotDone<B>>> {
        let buffers = self.take();
        if outcome.withdrawn {
            return Err(refused(ChannelError::Closed, buffers));
        }
        match outcome.output(&self.operation) {
            Ok(output) => Ok(Done {
                output,
                executor: outcome.executor(),
                user_data: self.operation.user_data(),
                outcome,
                buffers,
            }),
            Err(failure) => Err(Box::new(NotDone {
                error: failure.into(),
                outcome: Some(outcome),
                buffers,
            })),
        }
    }
}

impl<B> Drop for OperationFuture<B> {
    fn drop(&mut self) {
        // What a child of fork has inherited is the parent's: its state does not matter there.
        self.cancel();
    }
}

impl<B> fmt::Debug for OperationFuture<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.stage {
            Stage::New(_) => f.write_str("OperationFuture (not begun)"),
            Stage::Started(node) => write!(f, "OperationFuture ({:?})", from_ref(&node.handle)),
            Stage::Ended => f.write_str("OperationFuture (ended)"),
        }
    }
}
