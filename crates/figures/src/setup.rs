//! What a workload runs on: the devices as the profile and the point have them together.

use dray_device::{DeviceConfig, WorkQueueMode};
use dray_idxd::Profile;
use dray_platform::{Distance, NodeId, PlatformFile};

use crate::tenants::Sharing;
use crate::workload::{What, Workload};
use crate::{FiguresError, vhost};

/// Devices, queues and depth of a workload.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The devices.
    pub(crate) devices: Vec<DeviceConfig>,
    /// Work queue of the workload, the same on each device.
    pub(crate) wq: u16,
    /// Work queue of the neighbour.
    pub(crate) neighbour: u16,
    /// Descriptors outstanding on each channel.
    pub(crate) depth: u32,
}

impl Setup {
    /// Puts profile and workload together.
    ///
    /// # Errors
    /// What the profile or the platform cannot do, with the limit and the field that sets it.
    pub(crate) fn new(
        platform: &PlatformFile,
        profile: &Profile,
        w: &Workload,
    ) -> Result<Setup, FiguresError> {
        for distance in w.nodes.into_iter().chain([w.tenants.core_node]) {
            node(platform, distance)?;
        }
        let software = w.what == What::Software;
        let profile = match software {
            true => profile.clone(),
            false => changed(profile, w)?,
        };
        let configured = profile.devices()?;
        if configured.is_empty() {
            return Err(FiguresError::NoWorkQueue);
        }
        let topology = &platform.topology;
        let there = topology.sockets * topology.devices_per_socket;
        if w.tenants.devices > there {
            return Err(FiguresError::Limit {
                what: "devices",
                value: w.tenants.devices.into(),
                limit: there.into(),
                field: "topology.devices_per_socket",
            });
        }
        let cores = w.tenants.cores() + u16::from(w.tenants.neighbour.is_some());
        if !software && cores > topology.cores_per_socket {
            return Err(FiguresError::Limit {
                what: "cores",
                value: cores.into(),
                limit: topology.cores_per_socket.into(),
                field: "topology.cores_per_socket",
            });
        }
        let count = usize::from(w.tenants.devices.max(1));
        // Where the profile says nothing of a device, it is as the ones before.
        let mut devices: Vec<DeviceConfig> =
            configured.iter().cycle().take(count).cloned().collect();
        let mut neighbour = 0;
        for device in &mut devices {
            for queue in &mut device.work_queues {
                queue.block_on_fault |= w.block_on_fault;
                if w.what == What::Overflow {
                    // Payloads above the usual limit of a queue hold its engines up for longest.
                    queue.max_transfer_size = device.capabilities.max_transfer_size;
                }
            }
            if let Some(buffers) = w.read_buffers {
                let most = device.capabilities.max_read_buffers;
                limit(
                    "read_buffers",
                    buffers.into(),
                    most.into(),
                    "max_read_buffers",
                )?;
                for group in &mut device.groups {
                    group.read_buffers_allowed = buffers;
                    group.read_buffers_reserved = group.read_buffers_reserved.min(buffers);
                }
            }
            if !software {
                neighbour = w.tenants.arrange(device)?;
            }
        }
        let Some(queue) = devices.first().and_then(|d| d.work_queues.first()) else {
            return Err(FiguresError::NoWorkQueue);
        };
        let depth = match w.what {
            What::Burst | What::Overflow => w.count,
            What::Software => 1,
            What::Vhost => {
                let most = u64::from(queue.size) / tenants(w).max(1);
                w.depth
                    .unwrap_or_else(|| vhost::bursts_in_flight(w, most as u32))
            }
            _ => w.depth.unwrap_or(u32::from(queue.size)),
        };
        if !software {
            let many = match (queue.mode, w.what) {
                (_, What::Burst | What::Overflow) | (WorkQueueMode::Shared, _) => 1,
                // A client that has more in flight than a dedicated queue holds loses descriptors.
                (WorkQueueMode::Dedicated, _) => u64::from(depth) * tenants(w),
            };
            limit("depth", many, u64::from(queue.size), "size")?;
            let most = u64::from(queue.max_batch_size);
            limit("batch", u64::from(w.batch), most, "max_batch_size")?;
            let size = w.largest().max(u64::from(w.payload));
            limit("size", size, queue.max_transfer_size, "max_transfer_size")?;
            if let Some(beside) = w.tenants.neighbour {
                let most = queue.max_transfer_size;
                limit(
                    "neighbour_size",
                    beside.size.into(),
                    most,
                    "max_transfer_size",
                )?;
            }
        }
        Ok(Setup {
            wq: queue.id,
            devices,
            neighbour,
            depth,
        })
    }
}

/// Whether a workload can run.
///
/// # Errors
/// What the profile or the platform cannot do, with the limit and the field that sets it.
pub(crate) fn check(
    platform: &PlatformFile,
    profile: &Profile,
    w: &Workload,
) -> Result<(), FiguresError> {
    match w.switching {
        Some(switching) => vhost::arranged(platform, profile, w, switching).map(drop),
        None => Setup::new(platform, profile, w).map(drop),
    }
}

/// Channels of the workload on one dedicated queue.
fn tenants(w: &Workload) -> u64 {
    u64::from(w.tenants.cores().div_ceil(w.tenants.devices.max(1)))
}

fn limit(
    what: &'static str,
    value: u64,
    limit: u64,
    field: &'static str,
) -> Result<(), FiguresError> {
    match value > limit {
        true => Err(FiguresError::Limit {
            what,
            value,
            limit,
            field,
        }),
        false => Ok(()),
    }
}

/// The profile with what the point says otherwise.
pub(crate) fn changed(profile: &Profile, w: &Workload) -> Result<Profile, FiguresError> {
    let mut profile = profile.clone();
    if let Some(engines) = w.engines {
        profile = profile.with_engines(engines)?;
    }
    let shares = w.tenants.neighbour.map(|b| b.sharing == Sharing::Queue);
    if let Some(shared) = shares.filter(|s| *s).or(w.shared) {
        profile = profile.with_mode(match shared {
            true => WorkQueueMode::Shared,
            false => WorkQueueMode::Dedicated,
        })?;
    }
    if let Some(size) = w.wq_size {
        profile = profile.with_wq_size(size)?;
    }
    Ok(profile)
}

/// Memory as the devices of socket 0 see it.
///
/// # Errors
/// A machine that has no such memory.
pub(crate) fn node(platform: &PlatformFile, distance: Distance) -> Result<NodeId, FiguresError> {
    let topology = &platform.topology;
    let none = |node, field| FiguresError::NoNode {
        node,
        platform: platform.origin.clone(),
        field,
    };
    match distance {
        Distance::Local => Ok(NodeId(0)),
        Distance::Remote if topology.sockets > 1 => Ok(NodeId(1)),
        Distance::Remote => Err(none("remote", "sockets")),
        Distance::Cxl => topology.cxl_node().ok_or_else(|| none("cxl", "cxl_nodes")),
    }
}
