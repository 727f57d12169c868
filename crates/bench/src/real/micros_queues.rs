//! Which work queue of this machine each CPU uses.

use dray::hw::{HwMover, HwOptions, QueueInfo};
use dray_device::WorkQueueMode;

use super::device::{self, DeviceChoice};
use super::micros::chosen;
use crate::BenchError;
use crate::micros::{Micros, OPCODES, Submission};

/// A CPU, and the queues that it may use: the first that is free is its own.
pub(super) struct User {
    pub(super) cpu: u16,
    pub(super) queues: Vec<QueueInfo>,
    /// `-K` has named its queue.
    named: bool,
}

/// The CPUs of a measurement (`-k`, `-K`) with the queues of the kind that is asked for (`-w`, `-x`).
pub(super) fn users(
    micros: &Micros,
    cpus: Option<&[u16]>,
    choice: &DeviceChoice,
) -> Result<Vec<User>, BenchError> {
    let shared = match (micros.shared, micros.submission) {
        (None, Some(kind)) => Some(kind == Submission::Enqcmd),
        (shared, _) => shared,
    };
    let queues = choice.queues()?;
    if micros.cpu_queues.is_empty() {
        let wanted = |queue: &&QueueInfo| is_of_kind(queue, shared);
        let queues: Vec<QueueInfo> = queues.iter().filter(wanted).cloned().collect();
        let user = |cpu| User {
            cpu,
            queues: queues.clone(),
            named: false,
        };
        return Ok(chosen(cpus)?.into_iter().map(user).collect());
    }
    let mut users = Vec::new();
    for assigned in &micros.cpu_queues {
        let number = assigned.device.trim_start_matches("dsa");
        let name = format!("wq{number}.{}", assigned.queue);
        let flag = format!("-K ...@{},{}", assigned.device, assigned.queue);
        let queue = queues.iter().find(|queue| queue.name() == name);
        let queue = queue.ok_or_else(|| BenchError::Value {
            flag: flag.clone(),
            reason: format!("there is no work queue {name} for programs here"),
            hint: format!("there are {}", names(&queues)),
        })?;
        if !is_of_kind(queue, shared) {
            return Err(BenchError::Value {
                flag,
                reason: format!("{name} is {}, and the other kind is asked for", mode(queue)),
                hint: format!("-w{}", u8::from(queue.mode == WorkQueueMode::Shared)),
            });
        }
        if queue.mode == WorkQueueMode::Dedicated && assigned.cpus.len() > 1 {
            return Err(BenchError::Value {
                flag,
                reason: format!("{name} is dedicated: it takes one CPU"),
                hint: "a shared queue takes several: dray config list shows them".to_owned(),
            });
        }
        for cpu in chosen(Some(&assigned.cpus))? {
            users.push(User {
                cpu,
                queues: vec![queue.clone()],
                named: true,
            });
        }
    }
    Ok(users)
}

/// Opens with `open` a queue for each CPU: another for each, as long as there are some.
pub(super) fn opened<T>(
    users: &[User],
    shared: Option<bool>,
    open: impl Fn(&[QueueInfo]) -> Result<(T, QueueInfo), BenchError>,
) -> Result<Vec<T>, BenchError> {
    let mut taken: Vec<QueueInfo> = Vec::new();
    let mut all = Vec::new();
    for user in users {
        let is_free = |queue: &&QueueInfo| {
            user.named || !taken.iter().any(|taken| taken.name() == queue.name())
        };
        let mut free: Vec<QueueInfo> = user.queues.iter().filter(is_free).cloned().collect();
        if free.is_empty() {
            let is_shared = |queue: &&QueueInfo| queue.mode == WorkQueueMode::Shared;
            free = user.queues.iter().filter(is_shared).cloned().collect();
        }
        if free.is_empty() {
            let kind = match shared {
                Some(true) => "shared ",
                Some(false) => "dedicated ",
                None => "",
            };
            return Err(BenchError::Value {
                flag: "--device hw".to_owned(),
                reason: format!(
                    "{} CPUs, and {} {kind}work queues are free",
                    users.len(),
                    all.len()
                ),
                hint: "dray config list shows the queues; -w and -k choose others".to_owned(),
            });
        }
        let (one, queue) = open(&free)?;
        taken.push(queue);
        all.push(one);
    }
    Ok(all)
}

/// A mover on a queue for each CPU.
pub(super) fn movers(micros: &Micros, users: &[User]) -> Result<Vec<HwMover>, BenchError> {
    let opcode = micros
        .shape()
        .operation(&device::NOWHERE, 0, false)
        .opcode();
    let name = OPCODES.iter().find(|(_, op, _)| *op == micros.op);
    let name = name.map_or("", |(_, _, name)| *name);
    let in_flight = micros.queue_depth.unwrap_or(micros.descriptors()).max(1) * micros.batch;
    let options = HwOptions {
        slots: in_flight as usize * 2,
        portal_rotates: micros.portal_rotates,
        ..HwOptions::default()
    };
    opened(users, micros.shared, |queues| {
        let mover = device::open(queues, options)?;
        let (info, size) = (mover.info().clone(), u64::from(micros.size));
        device::check(&info, name, opcode, size, micros.batch)?;
        Ok((mover, info))
    })
}

fn is_of_kind(queue: &QueueInfo, shared: Option<bool>) -> bool {
    shared.is_none_or(|shared| (queue.mode == WorkQueueMode::Shared) == shared)
}

fn names(queues: &[QueueInfo]) -> String {
    let names: Vec<String> = queues.iter().map(QueueInfo::name).collect();
    names.join(", ")
}

fn mode(queue: &QueueInfo) -> &'static str {
    match queue.mode {
        WorkQueueMode::Dedicated => "dedicated",
        WorkQueueMode::Shared => "shared",
    }
}
