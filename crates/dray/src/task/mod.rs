//! Operations that any thread starts and anyone waits for: by futures, or by handles.
//!
//! A [`Driver`] polls the mover: as a task (it is a future), or on a thread ([`Driver::run`]).
//! [`channel`] gives a [`Client`] with it, whose requests on buffers by value are [`OperationFuture`]s, on any runtime;
//! one that is dropped in flight leaves its buffers with the driver until the device has done with them. [`share`]
//! gives a [`Submitter`], which starts operations on memory that the caller vouches for, each with a [`Handle`] in the
//! caller's storage: threads poll it, sleep until it has ended, or wait for a file descriptor.
//!
//! ```
//! use dray::{CpuMover, Output, Request, task};
//!
//! let (client, driver) = task::channel(CpuMover::new(8));
//! let driver = std::thread::spawn(move || driver.run());
//! # fn block_on<F: Future>(future: F) -> F::Output {
//! #     let mut future = std::pin::pin!(future);
//! #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! #     loop {
//! #         if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) { return output; }
//! #         std::thread::yield_now();
//! #     }
//! # }
//! let copied = block_on(async {
//!     let done = client.request(Request::copy(vec![7_u8; 64], vec![0; 64])).await?;
//!     assert_eq!(done.output, Output::Done);
//!     Ok::<_, Box<dyn std::error::Error>>(done.buffers)
//! });
//! assert_eq!(copied.unwrap().destination, Some(vec![7; 64]));
//! // Without clients the driver ends.
//! drop(client);
//! driver.join().unwrap();
//! ```

mod client;
mod driver;
mod handle;
mod shared;
mod stack;
mod submitter;
mod sync;
mod work;

pub use client::{Client, Done, NotDone, OperationFuture, TaskError};
pub use driver::Driver;
pub use handle::{Handle, Look, StartError};
pub use submitter::Submitter;
pub use work::{Segment, VectorError, Work};

use std::sync::Arc;

use crate::{Buffer, Mover};

/// A client and a driver for a mover that nothing else uses.
pub fn channel<M: Mover, B: Buffer + Send>(mover: M) -> (Client<B>, Driver<M>) {
    let (submitter, driver) = share(mover);
    (Client::new(submitter), driver)
}

/// A submitter and a driver for a mover that nothing else uses.
pub fn share<M: Mover>(mover: M) -> (Submitter, Driver<M>) {
    let shared = Arc::new(shared::Shared::new(mover.capabilities()));
    let driver = Driver::new(mover, shared.clone());
    (Submitter::new(shared), driver)
}
