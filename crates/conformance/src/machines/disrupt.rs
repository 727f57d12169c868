//! What an administrator does to a queue that a mover has open.

use std::fs;
use std::path::{Path, PathBuf};

use crate::movers::Disruption;

/// Disables or resets a queue, or its device, through the driver's files. The mover goes on to hold its client.
///
/// # Panics
/// The driver refuses it.
pub fn disrupt(queue: &str, how: Disruption) {
    let drivers = Path::new("/sys/bus/dsa/drivers");
    let write = |file: PathBuf, text: &str| {
        fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    };
    match how {
        Disruption::Disabled => write(drivers.join("user/unbind"), queue),
        Disruption::QueueReset => {
            let attributes = Path::new("/sys/bus/dsa/devices").join(queue);
            let said = |name: &str| fs::read_to_string(attributes.join(name)).expect(name);
            let (mode, threshold) = (said("mode"), said("threshold"));
            write(drivers.join("user/unbind"), queue);
            for (name, value) in [
                ("mode", mode.trim()),
                ("threshold", threshold.trim()),
                ("type", "user"),
                ("name", "again"),
                ("priority", "10"),
                ("driver_name", "user"),
            ] {
                if name != "threshold" || mode.trim() == "shared" {
                    write(attributes.join(name), value);
                }
            }
            write(drivers.join("user/bind"), queue);
        }
        Disruption::DeviceReset => {
            let device = queue.trim_start_matches("wq").split('.').next();
            let device = format!("dsa{}", device.unwrap_or_default());
            write(drivers.join("idxd/unbind"), &device);
        }
    }
}
