//! What the machine and its device are: nothing that says whose they are.

use std::fs;

use dray_device::{DeviceConfig, WorkQueueMode};
use serde::{Deserialize, Serialize};

use crate::target::Target;

/// The machine: processor and kernel, no names of hosts or users, no serial numbers, no addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name, as the kernel has it.
    pub processor: Option<String>,
    /// Family, model and stepping.
    pub processor_signature: Option<String>,
    /// Revision of its microcode.
    pub microcode: Option<String>,
    /// Release of the kernel, up to the first character that is neither a digit nor a dot.
    pub kernel_release: Option<String>,
    /// The device is a virtual one: the times are the emulation's.
    pub is_virtual: bool,
}

/// The device and its queue, as the driver describes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// VERSION register: 256 is 1.0.
    pub version: u32,
    /// GENCAP, in hexadecimal.
    pub gen_cap: String,
    /// OPCAP, in hexadecimal, operations 0 to 63 last.
    pub op_cap: String,
    /// `dedicated` or `shared`.
    pub mode: String,
    /// How descriptors are submitted: `movdir64b`, `enqcmd` or `write`.
    pub submitted_by: String,
    /// Entries.
    pub entries: u16,
    /// Occupancy up to which a shared queue accepts.
    pub threshold: u16,
    /// 1 to 15.
    pub priority: u8,
    /// Whether descriptors may block on a page fault.
    pub block_on_fault: bool,
    /// The queue does not use ATS.
    pub ats_disable: bool,
    /// Largest transfer.
    pub max_transfer_bytes: u64,
    /// Largest batch.
    pub max_batch_descriptors: u32,
    /// Engines of its group.
    pub engines: usize,
    /// Work queues of the device.
    pub device_work_queues: u16,
    /// Entries of the device.
    pub device_entries: u16,
    /// Engines of the device.
    pub device_engines: u16,
}

impl Machine {
    /// This one.
    pub fn here(is_virtual: bool) -> Machine {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find(|line| {
                line.strip_prefix(name)
                    .is_some_and(|rest| rest.trim_start().starts_with(':'))
            })?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let signature = ["cpu family", "model", "stepping"].map(field);
        let signature: Option<Vec<String>> = signature.into_iter().collect();
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        Machine {
            processor: field("model name"),
            processor_signature: signature.map(|parts| parts.join("-")),
            microcode: field("microcode"),
            kernel_release: release.map(|text| version(&text)),
            is_virtual,
        }
    }
}

/// What distributions and owners append to a release says who they are.
fn version(release: &str) -> String {
    let is_name = |c: char| !c.is_ascii_digit() && c != '.';
    let version = release.trim().split(is_name).next().unwrap_or_default();
    version.trim_end_matches('.').to_owned()
}

impl Queue {
    pub(crate) fn of(target: &Target) -> Queue {
        let (config, queue): (&DeviceConfig, _) = (target.config(), target.queue());
        let device = &config.capabilities;
        let op_cap = device.op_cap.iter().rev();
        let op_cap: Vec<String> = op_cap.map(|word| format!("{word:016x}")).collect();
        Queue {
            version: device.version,
            gen_cap: format!("{:#x}", device.gen_cap),
            op_cap: op_cap.join("_"),
            mode: match queue.mode {
                WorkQueueMode::Dedicated => "dedicated",
                WorkQueueMode::Shared => "shared",
            }
            .to_owned(),
            submitted_by: target.submit_path().to_owned(),
            entries: queue.size,
            threshold: queue.threshold,
            priority: queue.priority,
            block_on_fault: queue.block_on_fault,
            ats_disable: queue.ats_disable,
            max_transfer_bytes: queue.max_transfer_size,
            max_batch_descriptors: queue.max_batch_size,
            engines: config.groups.iter().map(|group| group.engines.len()).sum(),
            device_work_queues: device.max_work_queues,
            device_entries: device.work_queue_size,
            device_engines: device.max_engines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_release_are_cut_off() {
        for (release, expected) in [
            ("6.8.0-45-generic\n", "6.8.0"),
            ("6.18.5", "6.18.5"),
            ("5.15.0.alice-laptop", "5.15.0"),
            ("custom", ""),
        ] {
            assert_eq!(version(release), expected);
        }
    }
}
