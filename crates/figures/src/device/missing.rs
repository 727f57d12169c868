//! Why a point is modelled only.

use std::collections::BTreeMap;
use std::fmt;

use dray::WaitPolicy;
use dray_platform::{Distance, WaitMode};

use super::nodes::Nodes;
use crate::workload::{What, Workload};

/// What a point needs, and a measurement on a device of this machine does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Missing {
    /// Several devices at once.
    Devices,
    /// Several cores on one device.
    Cores,
    /// Another tenant beside.
    Neighbour,
    /// A core on another socket than the device.
    RemoteCore,
    /// Memory of another socket, which this machine does not have.
    RemoteNode,
    /// Memory behind CXL, which this machine does not have.
    CxlNode,
    /// UMWAIT, which this processor does not have.
    Umwait,
    /// A list of pages.
    Pages,
    /// A burst without end, a fault, a program, a kernel.
    OtherThanOffload,
    /// Another configuration than that of the queue that was named.
    Configuration,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Missing::Devices => "one device is measured at a time",
            Missing::Cores => "one core is measured at a time",
            Missing::Neighbour => "one tenant is measured at a time",
            Missing::RemoteCore => "the core is on the socket of the device",
            Missing::RemoteNode => "this machine has no memory of another socket",
            Missing::CxlNode => "this machine has no memory behind CXL",
            Missing::Umwait => "this processor has no UMWAIT",
            Missing::Pages => "lists of pages are not measured on a device",
            Missing::OtherThanOffload => {
                "only operations in a closed loop are measured on a device"
            }
            Missing::Configuration => "the queue is measured as it is configured",
        })
    }
}

/// What a point of one stream of operations lacks here, but for its configuration.
pub(super) fn missing(w: &Workload, nodes: Nodes) -> Option<Missing> {
    let needs = [
        (w.what != What::Offload, Missing::OtherThanOffload),
        (w.list.is_some(), Missing::Pages),
        (w.tenants.devices > 1, Missing::Devices),
        (w.tenants.neighbour.is_some(), Missing::Neighbour),
        (w.tenants.cores() > 1, Missing::Cores),
        (w.tenants.core_node != Distance::Local, Missing::RemoteCore),
        (
            !w.nodes.iter().all(|node| nodes.has(*node)),
            match w.nodes {
                _ if w.nodes.contains(&Distance::Cxl) => Missing::CxlNode,
                _ => Missing::RemoteNode,
            },
        ),
        (
            w.wait == WaitMode::Umwait && !WaitPolicy::Umwait.is_supported(),
            Missing::Umwait,
        ),
    ];
    let missing = needs.into_iter().find(|(is_needed, _)| *is_needed);
    missing.map(|(_, missing)| missing)
}

/// Points that are modelled only: how many of each figure, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotMeasured {
    points: BTreeMap<(String, Missing), usize>,
}

impl NotMeasured {
    pub(crate) fn add(&mut self, figure: &str, missing: Missing) {
        *self.points.entry((figure.to_owned(), missing)).or_default() += 1;
    }

    /// Points in all.
    pub fn count(&self) -> usize {
        self.points.values().sum()
    }

    /// A line for each figure and reason.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.points.iter().map(|((figure, missing), count)| {
            let points = match count {
                1 => "1 point is".to_owned(),
                count => format!("{count} points are"),
            };
            format!("{figure}: {points} modelled only: {missing}")
        })
    }
}
