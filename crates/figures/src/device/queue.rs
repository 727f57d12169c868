//! Queues that the kernel has just enabled.

use std::time::{Duration, Instant};

use dray::hw::{HwError, Paths, QueueInfo};

use crate::FiguresError;

/// How long the kernel may take to make the file of a queue that it has enabled.
const DEVICE_FILE: Duration = Duration::from_secs(5);

/// A queue that was enabled, once its file is there.
pub(super) fn queue_file(name: &str) -> Result<QueueInfo, FiguresError> {
    let start = Instant::now();
    loop {
        let found = Paths::from_environment().discover();
        let queue = match &found {
            Ok(queues) => queues.iter().find(|queue| queue.name() == name).cloned(),
            Err(_) => None,
        };
        match (queue, found) {
            (Some(queue), _) => return Ok(queue),
            (None, Err(error)) if start.elapsed() >= DEVICE_FILE => return Err(error.into()),
            (None, Ok(queues)) if start.elapsed() >= DEVICE_FILE => {
                let names: Vec<String> = queues.iter().map(QueueInfo::name).collect();
                return Err(FiguresError::Hardware(HwError::NoSuchQueue {
                    name: name.to_owned(),
                    available: names.join(", "),
                }));
            }
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
