//! Movers for channels.

use dray::hw::{self, HwOptions};
use dray::virt::{Engines, Idle, Options, VirtualDevice};
use dray::{CpuMover, Mover};
use dray_device::{Capabilities, DeviceConfig, WorkQueueConfig, WorkQueueMode};

use super::engine::CopyEngine;
use super::mover::MoverCopier;
use crate::VhostError;

/// Copies that a channel has in flight at most: bursts of 32 packets in both directions, in parts.
const SLOTS: usize = 1024;
/// Entries of a virtual device's queues together.
const ENTRIES: u16 = 128;

/// The core, through the mover's interface.
pub fn open_cpu() -> Box<dyn CopyEngine> {
    Box::new(MoverCopier::new(CpuMover::new(SLOTS), "cpu"))
}

/// A virtual device with so many dedicated work queues (1 to 8), and a mover on each. One thread is
/// dispatcher and engine.
///
/// # Errors
/// It cannot be started.
pub fn open_virtual(queues: u16) -> Result<Vec<Box<dyn CopyEngine>>, VhostError> {
    let error = |source: Box<dyn std::error::Error + Send + Sync>| VhostError::Mover {
        executor: "virtual",
        source,
    };
    let options = Options {
        engines: Engines::Dispatcher,
        idle: Idle::Park {
            after: std::time::Duration::from_micros(50),
        },
        ..Options::default()
    };
    let device = VirtualDevice::start(config(queues.clamp(1, 8)), options)
        .map_err(|e| error(Box::new(e)))?;
    let open = |queue| {
        let mover = device.open(queue, SLOTS).map_err(|e| error(Box::new(e)))?;
        let engine: Box<dyn CopyEngine> = Box::new(MoverCopier::new(mover, "virtual"));
        Ok(engine)
    };
    (0..queues.clamp(1, 8)).map(open).collect()
}

/// A work queue of this machine, by its name or the first that is free.
///
/// # Errors
/// There is none, or it cannot be opened.
pub fn open_hw(name: Option<&str>) -> Result<Box<dyn CopyEngine>, VhostError> {
    let options = HwOptions {
        slots: SLOTS,
        ..HwOptions::default()
    };
    let mover = hw::open(name, options).map_err(|e| VhostError::Mover {
        executor: "hw",
        source: Box::new(e),
    })?;
    debug_assert!(mover.slots() > 0);
    Ok(Box::new(MoverCopier::new(mover, "hw")))
}

/// A device as Sapphire Rapids has it (DSA 1.0), with one engine.
fn config(queues: u16) -> DeviceConfig {
    let queue = |id| WorkQueueConfig {
        max_batch_size: 1024,
        ..WorkQueueConfig::new(id, WorkQueueMode::Dedicated, ENTRIES / queues)
    };
    DeviceConfig {
        capabilities: Capabilities {
            work_queue_size: ENTRIES,
            ..Capabilities::sapphire_rapids()
        },
        user_interrupts: false,
        ..DeviceConfig::sapphire_rapids(1, (0..queues).map(queue).collect())
    }
}
