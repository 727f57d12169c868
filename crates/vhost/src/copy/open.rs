//! Movers for channels.

use dray::hw::{self, HwOptions};
use dray::virt::{Options, VirtualDevice};
use dray::{CpuMover, Mover};
use dray_device::{DeviceConfig, WorkQueueMode};

use super::engine::CopyEngine;
use super::mover::MoverCopier;
use crate::VhostError;

/// Copies that a channel has in flight at most: bursts of 32 packets in both directions, in parts.
const SLOTS: usize = 1024;

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
    let queues = queues.clamp(1, 8);
    let config = DeviceConfig::embedded(WorkQueueMode::Dedicated, queues, 2 << 20);
    let device =
        VirtualDevice::start(config, Options::default()).map_err(|e| error(Box::new(e)))?;
    let open = |queue| {
        let mover = device.open(queue, SLOTS).map_err(|e| error(Box::new(e)))?;
        let engine: Box<dyn CopyEngine> = Box::new(MoverCopier::new(mover, "virtual"));
        Ok(engine)
    };
    (0..queues).map(open).collect()
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
