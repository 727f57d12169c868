//! The virtio-user driver of Debian's dpdk-testpmd, without huge pages, as peer. Its other ports are files
//! of packets, so that input and output are compared byte by byte.
//!
//! One test runs at a time: testpmd polls on a core, and the back end on the other.

#![allow(unreachable_pub, dead_code, clippy::tests_outside_test_module)]

mod capture;
mod channels;
mod echo;
#[path = "../it/engines.rs"]
mod engines;
mod paths;
mod ports;
mod reconnect;
mod testpmd;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A run in which nothing happens for so long has failed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Held by the test that runs.
fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
