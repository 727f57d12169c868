//! Enabling and disabling.

use super::machine::SysfsTree;
use crate::complain::Usage;

/// Names of devices.
#[derive(Debug, clap::Args)]
pub(crate) struct Devices {
    /// Devices, as dsa0.
    #[arg(required = true, value_name = "DEVICE")]
    devices: Vec<String>,
    /// Always print what was done.
    #[arg(short, long)]
    verbose: bool,
}

/// Names of devices, and whether clients matter.
#[derive(Debug, clap::Args)]
pub(crate) struct ForcedDevices {
    #[command(flatten)]
    names: Devices,
    /// Even if work queues are in use.
    #[arg(short, long)]
    force: bool,
}

/// Names of work queues.
#[derive(Debug, clap::Args)]
pub(crate) struct Queues {
    /// Work queues, as dsa0/wq0.0 or wq0.0.
    #[arg(required = true, value_name = "WQ")]
    queues: Vec<String>,
    /// Always print what was done.
    #[arg(short, long)]
    verbose: bool,
}

/// Names of work queues, and whether clients matter.
#[derive(Debug, clap::Args)]
pub(crate) struct ForcedQueues {
    #[command(flatten)]
    names: Queues,
    /// Even if they are in use.
    #[arg(short, long)]
    force: bool,
}

/// What a device has that is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    WorkQueue,
    Group,
    Engine,
}

impl Kind {
    /// What its names begin with.
    fn word(self) -> &'static str {
        match self {
            Kind::WorkQueue => "wq",
            Kind::Group => "group",
            Kind::Engine => "engine",
        }
    }
}

/// `wq0.1` of `dsa0/wq0.1`; the device and what it has must be there.
pub(super) fn below(machine: &SysfsTree, name: &str, kind: Kind) -> anyhow::Result<String> {
    let word = kind.word();
    let (device, object) = match name.split_once('/') {
        Some((device, object)) => (Some(device), object),
        None => (None, name),
    };
    let rest = object.strip_prefix(word);
    let number = rest.and_then(|rest| rest.split_once('.'));
    let Some((number, index)) = number else {
        let hint = format!("dsa0/{word}0.0 is {word} 0 of device dsa0");
        return Err(Usage::error(format!("{name:?} names no {word}"), hint));
    };
    let of = format!("dsa{number}");
    if device.is_some_and(|device| device != of) {
        let hint = format!("dsa{number}/{object}, or {word}N.{index} of the device N");
        return Err(Usage::error(
            format!("{object} is not of {}", device.unwrap_or_default()),
            hint,
        ));
    }
    let found = machine.device(&of)?;
    let count = match kind {
        Kind::WorkQueue => found.max_work_queues,
        Kind::Group => found.max_groups,
        Kind::Engine => found.max_engines,
    };
    let count = count.unwrap_or(0);
    match index.parse::<u16>() {
        Ok(index) if i64::from(index) < count => Ok(object.to_owned()),
        _ => Err(Usage::error(
            format!("{of} has no {object}"),
            format!("it has {word}{number}.0 to {word}{number}.{}", count - 1),
        )),
    }
}

pub(super) fn enable_devices(args: &Devices, dry_run: bool) -> anyhow::Result<()> {
    let machine = SysfsTree::look()?;
    let mut plan = machine.plan();
    for device in &args.devices {
        machine.device(device)?;
        plan.enable_device(device)?;
    }
    machine.make(&plan, dry_run)
}

pub(super) fn disable_devices(args: &ForcedDevices, dry_run: bool) -> anyhow::Result<()> {
    let machine = SysfsTree::look()?;
    let mut plan = machine.plan();
    for device in &args.names.devices {
        machine.device(device)?;
        plan.disable_device(device, args.force)?;
    }
    machine.make(&plan, dry_run)
}

pub(super) fn enable_queues(args: &Queues, dry_run: bool) -> anyhow::Result<()> {
    let machine = SysfsTree::look()?;
    let mut plan = machine.plan();
    for queue in &args.queues {
        plan.enable_queue(&below(&machine, queue, Kind::WorkQueue)?)?;
    }
    machine.make(&plan, dry_run)
}

pub(super) fn disable_queues(args: &ForcedQueues, dry_run: bool) -> anyhow::Result<()> {
    let machine = SysfsTree::look()?;
    let mut plan = machine.plan();
    for queue in &args.names.queues {
        plan.disable_queue(&below(&machine, queue, Kind::WorkQueue)?, args.force)?;
    }
    machine.make(&plan, dry_run)
}
