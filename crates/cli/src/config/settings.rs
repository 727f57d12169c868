//! Attributes by option.

use dray_config::{Change, change};
use dray_experiment::parse_bytes;

use super::machine::SysfsTree;
use super::objects::{Kind, below};
use crate::complain::Usage;

/// Attributes of a device.
#[derive(Debug, clap::Args)]
pub(crate) struct Device {
    /// The device, as dsa0.
    device: String,
    /// Read buffers for all groups that use the limit.
    #[arg(short = 'l', long)]
    read_buffer_limit: Option<u64>,
    /// Entries of the event log, 64 to 65535; version 2.
    #[arg(short = 'e', long)]
    event_log_size: Option<u64>,
}

/// Attributes of a group.
#[derive(Debug, clap::Args)]
pub(crate) struct Group {
    /// The group, as dsa0/group0.0.
    group: String,
    /// Read buffers kept for the group.
    #[arg(short = 'r', long)]
    read_buffers_reserved: Option<u64>,
    /// Read buffers that the group may hold.
    #[arg(short = 't', long)]
    read_buffers_allowed: Option<u64>,
    /// Apply the device's limit: 0 or 1.
    #[arg(short = 'l', long)]
    use_read_buffer_limit: Option<u64>,
    /// Traffic class A, 0 to 7.
    #[arg(short = 'a', long)]
    traffic_class_a: Option<u64>,
    /// Traffic class B, 0 to 7.
    #[arg(short = 'b', long)]
    traffic_class_b: Option<u64>,
    /// Work descriptors in progress, divided by 2 to this power, 0 to 3; version 2.
    #[arg(short = 'd', long)]
    desc_progress_limit: Option<u64>,
    /// The same for batches.
    #[arg(short = 'p', long)]
    batch_progress_limit: Option<u64>,
}

/// Attributes of a work queue.
#[derive(Debug, clap::Args)]
pub(crate) struct Wq {
    /// The work queue, as dsa0/wq0.0.
    wq: String,
    /// Group; -1 for none.
    #[arg(short = 'g', long, allow_negative_numbers = true)]
    group_id: Option<i64>,
    /// Entries.
    #[arg(short = 's', long)]
    wq_size: Option<u64>,
    /// Priority, 1 (low) to 15 (high).
    #[arg(short = 'p', long)]
    priority: Option<u64>,
    /// Let descriptors block on faults: 0 or 1.
    #[arg(short = 'b', long)]
    block_on_fault: Option<u64>,
    /// Occupancy up to which the limited portal accepts; shared queues.
    #[arg(short = 't', long)]
    threshold: Option<u64>,
    /// user, kernel or none.
    #[arg(short = 'y', long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Name that applications look for.
    #[arg(short = 'n', long)]
    name: Option<String>,
    /// Driver: user or dmaengine; kernel 6.7 and later.
    #[arg(short = 'd', long)]
    driver_name: Option<String>,
    /// shared or dedicated.
    #[arg(short = 'm', long)]
    mode: Option<String>,
    /// Largest batch, in descriptors.
    #[arg(short = 'c', long)]
    max_batch_size: Option<u64>,
    /// Largest transfer, in bytes.
    #[arg(short = 'x', long, value_name = "SIZE", value_parser = parse_bytes)]
    max_transfer_size: Option<u64>,
    /// No address translation service: 0 or 1.
    #[arg(short = 'a', long)]
    ats_disable: Option<u64>,
    /// No page request service: 0 or 1; version 2.
    #[arg(short = 'r', long)]
    prs_disable: Option<u64>,
    /// Operations that are accepted, as op_cap shows them; version 2.
    #[arg(short = 'o', long)]
    op_config: Option<String>,
}

/// The group of an engine.
#[derive(Debug, clap::Args)]
pub(crate) struct Engine {
    /// The engine, as dsa0/engine0.0.
    engine: String,
    /// Group; -1 for none.
    #[arg(short = 'g', long, allow_negative_numbers = true)]
    group_id: Option<i64>,
}

type Values = Vec<(&'static str, String)>;

fn text(name: &'static str, value: &Option<String>, values: &mut Values) {
    values.extend(value.iter().map(|value| (name, value.clone())));
}

fn number(name: &'static str, value: Option<impl ToString>, values: &mut Values) {
    values.extend(value.map(|value| (name, value.to_string())));
}

fn make(machine: SysfsTree, object: String, values: Values, dry_run: bool) -> anyhow::Result<()> {
    if values.is_empty() {
        return Err(Usage::error(
            format!("nothing to set for {object}"),
            "--help names the attributes",
        ));
    }
    let mut plan = machine.plan();
    change(&mut plan, &Change { object, values })?;
    machine.make(&plan, dry_run)
}

pub(super) fn device(args: &Device, dry_run: bool) -> anyhow::Result<()> {
    let machine = SysfsTree::look()?;
    machine.device(&args.device)?;
    let mut values = Values::new();
    number("read_buffer_limit", args.read_buffer_limit, &mut values);
    number("event_log_size", args.event_log_size, &mut values);
    make(machine, args.device.clone(), values, dry_run)
}

pub(super) fn group(args: &Group, dry_run: bool) -> anyhow::Result<()> {
    let machine = SysfsTree::look()?;
    let group = below(&machine, &args.group, Kind::Group)?;
    let mut values = Values::new();
    for (name, value) in [
        ("read_buffers_reserved", args.read_buffers_reserved),
        ("read_buffers_allowed", args.read_buffers_allowed),
        ("use_read_buffer_limit", args.use_read_buffer_limit),
        ("traffic_class_a", args.traffic_class_a),
        ("traffic_class_b", args.traffic_class_b),
        ("desc_progress_limit", args.desc_progress_limit),
        ("batch_progress_limit", args.batch_progress_limit),
    ] {
        number(name, value, &mut values);
    }
    make(machine, group, values, dry_run)
}

pub(super) fn wq(args: &Wq, dry_run: bool) -> anyhow::Result<()> {
    let machine = SysfsTree::look()?;
    let wq = below(&machine, &args.wq, Kind::WorkQueue)?;
    let mut values = Values::new();
    number("group_id", args.group_id, &mut values);
    for (name, value) in [
        ("size", args.wq_size),
        ("priority", args.priority),
        ("block_on_fault", args.block_on_fault),
        ("threshold", args.threshold),
        ("max_batch_size", args.max_batch_size),
        ("max_transfer_size", args.max_transfer_size),
        ("ats_disable", args.ats_disable),
        ("prs_disable", args.prs_disable),
    ] {
        number(name, value, &mut values);
    }
    for (name, value) in [
        ("type", &args.kind),
        ("name", &args.name),
        ("driver_name", &args.driver_name),
        ("mode", &args.mode),
        ("op_config", &args.op_config),
    ] {
        text(name, value, &mut values);
    }
    make(machine, wq, values, dry_run)
}

pub(super) fn engine(args: &Engine, dry_run: bool) -> anyhow::Result<()> {
    let machine = SysfsTree::look()?;
    let engine = below(&machine, &args.engine, Kind::Engine)?;
    let mut values = Values::new();
    number("group_id", args.group_id, &mut values);
    make(machine, engine, values, dry_run)
}
