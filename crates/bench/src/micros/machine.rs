//! Which device and queue each CPU uses.

use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};
use dray_idxd::Profile;
use dray_platform::Topology;

use super::options::Micros;
use crate::BenchError;
use crate::modelled::queues::supported;

/// Devices with the names that `-K` knows, and a work queue for each CPU.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) devices: Vec<DeviceConfig>,
    /// CPU, its socket, device and queue.
    pub(super) users: Vec<User>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct User {
    pub(super) socket: u16,
    pub(super) device: u16,
    pub(super) queue: u16,
    pub(super) shared: bool,
    /// Entries that this CPU may fill.
    pub(super) entries: u32,
}

impl Machine {
    /// From a profile, or without one from what was asked for: dedicated queues are 1e1w-d, one
    /// device for each CPU; shared ones 1e1w-s, on the devices that are named.
    pub(super) fn new(
        micros: &Micros,
        profile: Option<&Profile>,
        topology: &Topology,
    ) -> Result<Machine, BenchError> {
        let cpus: Vec<u16> = match micros.cpu_queues.is_empty() {
            true => micros.cpus.clone(),
            false => micros
                .cpu_queues
                .iter()
                .flat_map(|q| q.cpus.clone())
                .collect(),
        };
        let cores = topology.sockets * topology.cores_per_socket;
        if let Some(cpu) = cpus.iter().find(|cpu| **cpu >= cores) {
            return Err(BenchError::Value {
                flag: format!("-k {cpu}"),
                reason: format!("the platform has CPUs 0 to {}", cores - 1),
                hint: "-k0-3, or a platform with more cores".to_owned(),
            });
        }
        let (names, devices) = match profile {
            Some(profile) => (names(profile), profile.devices()?),
            None => standing_for(micros, &cpus, topology)?,
        };
        let mut machine = Machine {
            devices,
            users: Vec::new(),
        };
        for (index, cpu) in cpus.iter().enumerate() {
            let socket = cpu / topology.cores_per_socket.max(1);
            let at = match assigned(micros, *cpu) {
                Some((device, queue)) => machine.named(&names, device, queue)?,
                None => machine.any(micros, index, socket, topology)?,
            };
            machine.take(micros, socket, at)?;
        }
        machine.share();
        Ok(machine)
    }

    fn queue(&self, device: usize, id: u16) -> Option<&WorkQueueConfig> {
        let queues = &self.devices.get(device)?.work_queues;
        queues.iter().find(|queue| queue.id == id)
    }

    /// The queue that `-K` names.
    fn named(
        &self,
        names: &[String],
        device: &str,
        queue: u16,
    ) -> Result<(usize, u16), BenchError> {
        let flag = format!("-K ...@{device},{queue}");
        let position = names.iter().position(|name| name == device);
        let Some(position) = position else {
            return Err(BenchError::Value {
                flag,
                reason: format!("there is no {device}"),
                hint: format!("devices are {}", names.join(", ")),
            });
        };
        match self.queue(position, queue) {
            Some(_) => Ok((position, queue)),
            None => {
                let queues = &self.devices[position].work_queues;
                let queues: Vec<String> = queues.iter().map(|q| q.id.to_string()).collect();
                Err(BenchError::Value {
                    flag,
                    reason: format!("{device} has no work queue {queue}"),
                    hint: format!("its work queues are {}", queues.join(", ")),
                })
            }
        }
    }

    /// A queue of the wanted kind on the CPU's socket: its own if it is dedicated.
    fn any(
        &self,
        micros: &Micros,
        index: usize,
        socket: u16,
        topology: &Topology,
    ) -> Result<(usize, u16), BenchError> {
        let shared = micros.shared.unwrap_or(false);
        let wanted = match shared {
            true => WorkQueueMode::Shared,
            false => WorkQueueMode::Dedicated,
        };
        let flag = format!("-w{}", u8::from(shared));
        let mut free = Vec::new();
        let mut kinds = 0;
        for (number, device) in self.devices.iter().enumerate() {
            let near = topology.socket_of_device(number as u16) == socket;
            for queue in &device.work_queues {
                kinds += usize::from(queue.mode == wanted);
                let used = |u: &User| usize::from(u.device) == number && u.queue == queue.id;
                if near && queue.mode == wanted && (shared || !self.users.iter().any(used)) {
                    free.push((number, queue.id));
                }
            }
        }
        let kind = if shared { "shared" } else { "dedicated" };
        match free.len() {
            0 if kinds == 0 => Err(BenchError::Value {
                flag,
                reason: format!("no work queue of the profile is {kind}"),
                hint: format!(
                    "-w{}, or --config {}",
                    u8::from(!shared),
                    if shared { "1e1w-s" } else { "1e1w-d" }
                ),
            }),
            0 => Err(BenchError::Value {
                flag: format!("-k: CPU number {}", index + 1),
                reason: format!("no {kind} work queue is left on its socket"),
                hint: "fewer CPUs, shared queues (-w1), or a profile with more queues".to_owned(),
            }),
            count => Ok(free[if shared { index % count } else { 0 }]),
        }
    }

    fn take(
        &mut self,
        micros: &Micros,
        socket: u16,
        (device, id): (usize, u16),
    ) -> Result<(), BenchError> {
        let Some(queue) = self.queue(device, id) else {
            return Err(BenchError::NoWorkQueue { node: None });
        };
        let shared = queue.mode == WorkQueueMode::Shared;
        if let Some(wanted) = micros.shared
            && wanted != shared
        {
            let kind = if shared { "shared" } else { "dedicated" };
            return Err(BenchError::Value {
                flag: format!("-w{}", u8::from(wanted)),
                reason: format!("work queue {id} is {kind}"),
                hint: format!("-w{}", u8::from(shared)),
            });
        }
        BenchError::check_limit(
            "-b",
            micros.batch.into(),
            queue.max_batch_size.into(),
            "max_batch_size",
        )?;
        BenchError::check_limit(
            "-s",
            micros.shape().transfer().into(),
            queue.max_transfer_size,
            "max_transfer_size",
        )?;
        if let Some(owner) = self.devices.get(device) {
            supported(owner, queue, micros.op)?;
        }
        self.users.push(User {
            socket,
            device: device as u16,
            queue: id,
            shared,
            entries: queue.size.into(),
        });
        Ok(())
    }

    /// CPUs of one dedicated queue divide its entries: what is written to a full one is lost.
    fn share(&mut self) {
        let users = self.users.clone();
        for user in &mut self.users {
            let same = |u: &&User| (u.device, u.queue) == (user.device, user.queue);
            let count = users.iter().filter(same).count() as u32;
            user.entries = (user.entries / count.max(1)).max(1);
        }
    }
}

fn assigned(micros: &Micros, cpu: u16) -> Option<(&str, u16)> {
    let found = micros.cpu_queues.iter().find(|q| q.cpus.contains(&cpu))?;
    Some((found.device.as_str(), found.queue))
}

fn names(profile: &Profile) -> Vec<String> {
    let devices = profile.device_profiles().iter();
    devices.map(|device| device.dev.clone()).collect()
}

/// Devices that make a command line work as it stands. Linux numbers them 0, 2, 4 and so on: the
/// odd numbers are the analytics devices beside them.
fn standing_for(
    micros: &Micros,
    cpus: &[u16],
    topology: &Topology,
) -> Result<(Vec<String>, Vec<DeviceConfig>), BenchError> {
    let names: Vec<String> = (0..topology.devices())
        .map(|n| format!("dsa{}", n * 2))
        .collect();
    let one = Profile::named(micros.stands_for())?.devices()?;
    let shared = micros.stands_for().ends_with('s');
    // An idle device costs nothing, but bandwidth is shared out more slowly among several: no
    // more than are used.
    let last = match micros.cpu_queues.is_empty() {
        false => micros
            .cpu_queues
            .iter()
            .filter_map(|q| names.iter().position(|name| *name == q.device))
            .max()
            .unwrap_or(0),
        true => {
            let mut sockets = vec![0u16; usize::from(topology.sockets)];
            for cpu in cpus {
                sockets[usize::from(cpu / topology.cores_per_socket.max(1))] += 1;
            }
            let needed = |(socket, users): (usize, &u16)| match (*users, shared) {
                (0, _) => 0,
                (_, true) => socket * usize::from(topology.devices_per_socket) + 1,
                (users, false) => {
                    let here = users.min(topology.devices_per_socket);
                    socket * usize::from(topology.devices_per_socket) + usize::from(here)
                }
            };
            sockets.iter().enumerate().map(needed).max().unwrap_or(1) - 1
        }
    };
    let devices = (0..=last).flat_map(|_| one.clone()).collect();
    Ok((names, devices))
}
