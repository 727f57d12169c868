//! Who polls the mover.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use super::shared::Shared;
use crate::channel::Refused;
use crate::idle::Idle;
use crate::{Buffer, Buffers, Channel, ChannelError, Mover, Rejected, Request};

/// Polls a mover, and answers its clients. As a future it ends when all clients are gone; dropped before,
/// it waits for what is in flight, and refuses the rest. After ten seconds without a completion
/// ([`with_drop_timeout`](Driver::with_drop_timeout)) the futures of what a device still holds end with
/// [`ChannelError::InFlight`]: no future waits for ever.
///
/// While operations are in flight the future wakes itself: devices of this interface do not interrupt.
///
/// ```
/// use std::time::Duration;
///
/// use dray::{CpuMover, task};
///
/// let (client, driver) = task::channel::<_, Vec<u8>>(CpuMover::new(8));
/// let driver = driver.with_drop_timeout(Duration::from_secs(1));
/// drop(client);
/// // Without clients it ends at once.
/// driver.run();
/// ```
pub struct Driver<M: Mover, B: Buffer> {
    channel: Channel<M, B>,
    shared: Arc<Shared<B>>,
    /// A request that the channel had no slot for.
    held: Option<(u32, Request<B>)>,
}

impl<M: Mover, B: Buffer> Driver<M, B> {
    pub(super) fn new(channel: Channel<M, B>, shared: Arc<Shared<B>>) -> Driver<M, B> {
        Driver {
            channel,
            shared,
            held: None,
        }
    }

    /// The same, but dropping it waits no longer than this without a completion. The mover has a timeout
    /// of its own.
    #[must_use]
    pub fn with_drop_timeout(mut self, drop_timeout: Duration) -> Driver<M, B> {
        self.channel.set_drop_timeout(drop_timeout);
        self
    }

    /// Polls on the calling thread until all clients are gone. It sleeps while nothing is in flight.
    pub fn run(mut self) {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        while Pin::new(&mut self).poll(&mut context).is_pending() {
            match self.is_busy() {
                true => thread::yield_now(),
                false => thread::park(),
            }
        }
    }

    fn is_busy(&self) -> bool {
        self.channel.in_flight() > 0 || self.held.is_some()
    }

    /// Takes requests, hands them over, and answers what has ended.
    fn step(&mut self) {
        // A mover without slots takes nothing: the channel says so.
        let slots = self.channel.mover().slots().max(1);
        while self.channel.in_flight() < slots {
            let next = self.held.take().or_else(|| self.shared.next_request());
            let Some((index, request)) = next else {
                break;
            };
            let request = request.with_user_data(index.into());
            match self.channel.try_push(request) {
                Ok(_) => {}
                Err(Refused::Rejected(rejected)) => self.shared.answer(index, Err(rejected)),
                Err(Refused::Full(_, request)) => {
                    self.held = Some((index, request));
                    break;
                }
            }
        }
        while let Some(completed) = self.channel.poll() {
            let index = completed.user_data as u32;
            self.shared.answer(index, Ok(completed));
        }
    }
}

// It holds no pointer into itself.
impl<M: Mover, B: Buffer> Unpin for Driver<M, B> {}

impl<M: Mover, B: Buffer> Future for Driver<M, B> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.step();
        if self.is_busy() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.shared.driver.register(context.waker());
        // What came before the waker was there.
        let clients = self.shared.clients.load(Ordering::Acquire);
        match (self.shared.has_requests(), clients) {
            (true, _) => context.waker().wake_by_ref(),
            (false, 0) => return Poll::Ready(()),
            (false, _) => {}
        }
        Poll::Pending
    }
}

impl<M: Mover, B: Buffer> Drop for Driver<M, B> {
    fn drop(&mut self) {
        self.shared.close();
        if let Some((index, request)) = self.held.take() {
            let rejected = Rejected {
                error: ChannelError::Closed,
                buffers: request.into_buffers(),
            };
            self.shared.answer(index, Err(Box::new(rejected)));
        }
        self.channel.withdraw();
        let timeout = self.channel.drop_timeout();
        let mut idle = Idle::new(timeout);
        while self.channel.in_flight() > 0 {
            if let Some(completed) = self.channel.poll() {
                let index = completed.user_data as u32;
                self.shared.answer(index, Ok(completed));
                idle = Idle::new(timeout);
            } else if !idle.rest() {
                break;
            }
        }
        for user_data in self.channel.leave() {
            let rejected = Rejected {
                error: ChannelError::InFlight,
                buffers: Buffers::none(),
            };
            self.shared
                .answer(user_data as u32, Err(Box::new(rejected)));
        }
    }
}

impl<M: Mover, B: Buffer> fmt::Debug for Driver<M, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Driver ({} in flight)", self.channel.in_flight())
    }
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
