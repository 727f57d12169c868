//! A future for each operation, on any runtime.
//!
//! [`channel`] makes a [`Client`], which takes requests and gives [`OperationFuture`]s, and a [`Driver`],
//! which polls the mover: as a task (it is a future), or on a thread ([`Driver::run`]). A future that
//! is dropped in flight leaves its buffers with the driver until the device has done with them.
//! Neither allocates or locks on the path of an operation.
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
//!     assert_eq!(done.result, Ok(Output::Done));
//!     Ok::<_, Box<dray::Rejected<Vec<u8>>>>(done.buffers)
//! });
//! assert_eq!(copied.unwrap().destination, Some(vec![7; 64]));
//! // Without clients the driver ends.
//! drop(client);
//! driver.join().unwrap();
//! ```

mod client;
mod driver;
mod free_cells;
mod list;
mod shared;
mod sync;
mod waiters;

pub use client::{Client, OperationFuture};
pub use driver::Driver;

use std::sync::Arc;

use crate::{Buffer, Channel, Mover};

/// A client and a driver for a mover that nothing else uses.
pub fn channel<M: Mover, B: Buffer>(mover: M) -> (Client<B>, Driver<M, B>) {
    let shared = Arc::new(shared::Shared::new(mover.slots()));
    let driver = Driver::new(Channel::new(mover), shared.clone());
    (Client::new(shared), driver)
}
