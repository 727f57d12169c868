//! Which work queues programs look for, as their sources say.

use clap::ValueEnum;
use dray_idxd::Profile;
use dray_idxd::driver::Personality;

use crate::complain::Usage;

/// A program or library that uses work queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    /// Dedicated queues whose names begin with `dpdk_` (`drivers/dma/idxd/idxd_bus.c`).
    Dpdk,
    /// Dedicated queues, with `dsa_scan_accel_module -k` (`lib/idxd/idxd_kernel.c`).
    Spdk,
    /// Shared queues (`hw_dispatcher`).
    Dml,
    /// Shared queues (`dto.c`).
    Dto,
    /// Shared queues, of each device the first (`prov/shm/src/smr_dsa.c`).
    Libfabric,
}

impl Client {
    fn takes_dedicated(self) -> bool {
        matches!(self, Client::Dpdk | Client::Spdk)
    }

    /// The name that it looks for; others do not look at names.
    fn queue_name(self) -> Option<&'static str> {
        (self == Client::Dpdk).then_some("dpdk_0")
    }

    /// Devices that it can use.
    fn profile(self) -> &'static str {
        match self.takes_dedicated() {
            // One engine a queue, as dpdk_idxd_cfg.py: descriptors complete in order.
            true => "1e1w-d",
            false => "4e1w-s",
        }
    }
}

/// The devices of a session, as the arguments say.
///
/// # Errors
/// A profile that cannot be read, or that has nothing for the client.
pub(super) fn profile(
    given: Option<&str>,
    client: Option<Client>,
    queue_name: Option<&str>,
    kernel: Personality,
) -> anyhow::Result<Option<Profile>> {
    let named = given.or(client.map(Client::profile));
    let Some(named) = named else {
        return match queue_name {
            None => Ok(None),
            Some(_) => Err(Usage::error(
                "--queue-name: no work queue is configured without --profile",
                "--profile 4e1w-s",
            )),
        };
    };
    let profile = Profile::resolve(named).map_err(dray_run::RunError::from)?;
    if let Some(client) = client {
        has_queue_for(&profile, named, client, kernel)?;
        if let Some(group) = group_without_order(&profile).filter(|_| client == Client::Dpdk) {
            eprintln!(
                "note: --for dpdk: {group} of {named} has several engines, which complete descriptors in any order; \
                 DPDK expects them in the order of submission, and configures one engine for each group"
            );
        }
    }
    Ok(Some(
        match queue_name.or(client.and_then(Client::queue_name)) {
            Some(name) => profile.with_queue_name(name),
            None => profile,
        },
    ))
}

/// A group whose descriptors complete in any order: one with several engines (spec 3.9). DPDK's driver takes all for
/// completed when the last is (`drivers/dma/idxd/idxd_common.c`, `idxd_vchan_status`).
fn group_without_order(profile: &Profile) -> Option<&str> {
    let mut groups = profile.device_profiles().iter().flat_map(|d| &d.groups);
    let found = groups
        .find(|group| !group.grouped_workqueues.is_empty() && group.grouped_engines.len() > 1)?;
    Some(&found.dev)
}

fn has_queue_for(
    profile: &Profile,
    named: &str,
    client: Client,
    kernel: Personality,
) -> anyhow::Result<()> {
    let groups = profile.device_profiles().iter().flat_map(|d| &d.groups);
    let mut queues = groups.flat_map(|group| &group.grouped_workqueues);
    let dedicated = client.takes_dedicated();
    let fits = queues.any(|queue| {
        let is_dedicated = queue.mode.as_deref() == Some("dedicated");
        queue.driver(kernel) == Some("user") && is_dedicated == dedicated
    });
    let mode = if dedicated { "dedicated" } else { "shared" };
    let client_name = client.to_possible_value();
    let client_name = client_name.as_ref().map_or("", |value| value.get_name());
    match fits {
        true => Ok(()),
        false => Err(Usage::error(
            format!(
                "--for {client_name}: it takes {mode} work queues of type user, and {named} has none"
            ),
            format!("--profile {}", client.profile()),
        )),
    }
}
