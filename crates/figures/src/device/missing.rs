//! Why a point is modelled only.

use std::fmt;

use dray::WaitPolicy;
use dray_idxd::Profile;
use dray_platform::{Distance, WaitMode};

use super::configuration::configuration;
use super::nodes::Nodes;
use super::{memory, streams};
use crate::point_counts::PointCounts;
use crate::workload::{What, Workload};

/// What this machine has for measurements on its devices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Here {
    pub(super) nodes: Nodes,
    /// Devices that no program uses.
    pub(super) devices: u16,
    /// CPUs on the socket of the device.
    pub(super) local_cpus: u16,
    /// CPUs on another.
    pub(super) remote_cpus: u16,
}

/// What a point needs, and a measurement on devices of this machine does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Missing {
    /// More devices at once.
    Devices { needed: u16, there: u16 },
    /// A CPU for each thread.
    Cpus { needed: u16, there: u16 },
    /// Memory of another socket, which this machine does not have.
    RemoteNode,
    /// Memory behind CXL, which this machine does not have.
    CxlNode,
    /// UMWAIT, which this processor does not have.
    Umwait,
    /// Buffers of so many bytes.
    Memory { bytes: u64 },
    /// A burst without end, a fault, a program, a kernel.
    OtherThanOffload,
    /// Another configuration than that of the queue that was named.
    Configuration,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Missing::Devices { needed, there } => {
                return write!(
                    f,
                    "{needed} devices are needed, and programs leave {there} of this machine free"
                );
            }
            Missing::Cpus { needed, there } => {
                return write!(
                    f,
                    "{needed} threads need a CPU each on one socket, and there are {there}"
                );
            }
            Missing::Memory { bytes } => {
                return write!(
                    f,
                    "buffers of {bytes} bytes are more than there is room for"
                );
            }
            Missing::RemoteNode => "this machine has no memory of another socket",
            Missing::CxlNode => "this machine has no memory behind CXL",
            Missing::Umwait => "this processor has no UMWAIT",
            Missing::OtherThanOffload => {
                "only operations in a closed loop are measured on a device"
            }
            Missing::Configuration => "the queue is measured as it is configured",
        })
    }
}

/// What a point lacks here. `is_named`: one queue was named, which stays as it is.
pub(super) fn missing(
    w: &Workload,
    profile: &Profile,
    here: &Here,
    is_named: bool,
) -> Option<Missing> {
    let tenants = w.tenants;
    let (devices, threads) = (tenants.devices, streams::count(&tenants));
    let cpus = match tenants.core_node {
        Distance::Local => here.local_cpus,
        _ => here.remote_cpus,
    };
    // The queue that was named is there.
    let most = if is_named {
        u16::MAX
    } else {
        here.devices.max(1)
    };
    let stays = || configuration(profile, w).is_ok_and(|new| new.to_json() == profile.to_json());
    let needs = [
        (w.what != What::Offload, Missing::OtherThanOffload),
        (is_named && !stays(), Missing::Configuration),
        (
            devices > most,
            Missing::Devices {
                needed: devices,
                there: here.devices,
            },
        ),
        (
            threads > cpus,
            Missing::Cpus {
                needed: threads,
                there: cpus,
            },
        ),
        (
            !w.nodes.iter().all(|node| here.nodes.has(*node)),
            match w.nodes {
                _ if w.nodes.contains(&Distance::Cxl) => Missing::CxlNode,
                _ => Missing::RemoteNode,
            },
        ),
        (
            w.wait == WaitMode::Umwait && !WaitPolicy::Umwait.is_supported(),
            Missing::Umwait,
        ),
        (!memory::has_room(w), Missing::Memory { bytes: w.largest() }),
    ];
    let missing = needs.into_iter().find(|(is_needed, _)| *is_needed);
    missing.map(|(_, missing)| missing)
}

/// Points that are modelled only: how many of each figure, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotMeasured {
    points: PointCounts<Missing>,
}

impl NotMeasured {
    pub(crate) fn add(&mut self, figure: &str, missing: Missing) {
        self.points.add(figure, missing);
    }

    /// Points in all.
    pub fn count(&self) -> usize {
        self.points.count()
    }

    /// A line for each figure and reason.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.points.lines("modelled only")
    }
}
