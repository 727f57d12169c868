//! Points on DSA devices of this machine: configured, measured, put back as they were.

mod bench;
mod configuration;
mod memory;
mod missing;
mod nodes;
mod points;
mod queue;
mod results;
mod streams;

pub(crate) use bench::DeviceBench;
pub use missing::NotMeasured;
pub use points::{QueuePoint, measure_points, queue_points};

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use dray::hw::{HwError, Paths, QueueInfo};
use dray_config::{Directory, free_devices, survey, sysfs_root};
use dray_idxd::{DeviceProfile, Profile};
use dray_platform::Distance;
use dray_workload::available_cpus;

use missing::{Here, Missing};
use nodes::Nodes;

use crate::FiguresError;
use crate::workload::Workload;

/// Where the kernel says which memory nodes there are.
const NODES: &str = "/sys/devices/system/node";

/// A DSA of this machine to measure on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRequest {
    /// A queue that is measured as it is configured; `None`: the first device that is not in use, whose
    /// configuration is changed from point to point and put back at the end.
    pub queue: Option<String>,
    /// Directory in which `dray config --undo` finds what was there before, if this process is killed.
    pub state: PathBuf,
}

/// What was measured on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredDevice {
    /// What the device is, and on which machine.
    pub description: String,
    /// It is the virtual device of `dray run`.
    pub is_virtual: bool,
    /// Points that are modelled only.
    pub not_measured: NotMeasured,
}

impl MeasuredDevice {
    /// One line for the report.
    pub fn describe(&self) -> String {
        let what = match self.is_virtual {
            true => "; the device is virtual: these are times of the emulation, not of hardware",
            false => "",
        };
        let points = match self.not_measured.count() {
            0 => String::new(),
            1 => "; one point is modelled only".to_owned(),
            n => format!("; {n} points are modelled only"),
        };
        format!("{}{what}{points}", self.description)
    }
}

/// Why the devices of this machine cannot run a point, if they cannot.
pub(crate) fn why_not(w: &Workload, profile: &Profile, request: &DeviceRequest) -> Option<Missing> {
    missing::missing(w, profile, here(), request.queue.is_some())
}

/// What this machine has.
fn here() -> &'static Here {
    static HERE: OnceLock<Here> = OnceLock::new();
    HERE.get_or_init(|| {
        let free = free_devices(&sysfs_root());
        let node = free.first().and_then(|device| device.numa_node);
        let nodes = Nodes::read(Path::new(NODES), node.and_then(|node| node.try_into().ok()));
        let cpus = |distance| {
            nodes
                .cpus(Path::new(NODES), &available_cpus(), distance)
                .len()
        };
        Here {
            nodes,
            devices: free.len() as u16,
            local_cpus: cpus(Distance::Local) as u16,
            remote_cpus: cpus(Distance::Remote) as u16,
        }
    })
}

/// The profile of one queue as it is configured, for the model beside it.
///
/// # Errors
/// There is no driver, or no such queue.
pub fn configured_queue(name: &str) -> Result<Profile, FiguresError> {
    let tree = Directory::open(&sysfs_root()).map_err(dray_config::ConfigError::from)?;
    let machine = survey(&tree)?;
    for device in machine.device_profiles() {
        for group in &device.groups {
            let queues = &group.grouped_workqueues;
            if let Some(queue) = queues.iter().find(|queue| queue.dev == name) {
                let group = dray_idxd::GroupProfile {
                    grouped_workqueues: vec![queue.clone()],
                    ..group.clone()
                };
                return Ok(Profile::of(vec![DeviceProfile {
                    groups: vec![group],
                    ungrouped_workqueues: Vec::new(),
                    ungrouped_engines: Vec::new(),
                    ..device.clone()
                }]));
            }
        }
    }
    let queues: Vec<String> = Paths::from_environment()
        .discover()?
        .iter()
        .map(QueueInfo::name)
        .collect();
    Err(FiguresError::Hardware(HwError::NoSuchQueue {
        name: name.to_owned(),
        available: queues.join(", "),
    }))
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;

    use super::*;

    fn lacks(point: Point, queue: bool) -> Option<Missing> {
        let here = Here {
            nodes: Nodes::default(),
            devices: 2,
            local_cpus: 3,
            remote_cpus: 0,
        };
        let profile = Profile::named("1e1w-d").unwrap();
        let w = Workload::from_point(&point).unwrap();
        missing::missing(&w, &profile, &here, queue)
    }

    #[test]
    fn a_point_that_the_device_cannot_run_names_what_is_missing() {
        let plain = Point::default().with("op", "memmove").with("mode", "async");
        assert_eq!(lacks(plain.clone(), false), None);
        assert_eq!(lacks(plain.clone(), true), None);
        // The queue stays as it is.
        assert_eq!(lacks(plain.with("wq_size", 16), false), None);
        assert_eq!(
            lacks(plain.with("wq_size", 16), true),
            Some(Missing::Configuration)
        );
        assert_eq!(
            lacks(plain.with("kind", "burst"), false),
            Some(Missing::OtherThanOffload)
        );
        assert_eq!(lacks(plain.with("devices", 2), false), None);
        assert_eq!(
            lacks(plain.with("devices", 2), true),
            Some(Missing::Configuration)
        );
        let needed = 3;
        assert_eq!(
            lacks(plain.with("devices", needed), false),
            Some(Missing::Devices {
                needed: 3,
                there: 2
            })
        );
        assert_eq!(lacks(plain.with("cores", 3), false), None);
        let beside = plain.with("neighbour_size", 4096).with("sharing", "device");
        assert_eq!(lacks(beside.clone(), false), None);
        assert_eq!(
            lacks(beside.with("cores", 3), false),
            Some(Missing::Cpus {
                needed: 4,
                there: 3
            })
        );
        assert_eq!(
            lacks(plain.with("core_node", "remote"), false),
            Some(Missing::Cpus {
                needed: 1,
                there: 0
            })
        );
        assert_eq!(
            lacks(plain.with("size", 200 << 20), false),
            Some(Missing::Memory { bytes: 200 << 20 })
        );
    }
}
