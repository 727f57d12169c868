//! Verbs that read or write whole profiles.

use std::io;
use std::path::PathBuf;

use clap::ValueEnum;
use dray_config::{ConfigError, Listing, check, fit, listed, saved};
use dray_experiment::parse_bytes;
use dray_idxd::Profile;

use super::machine::SysfsTree;
use crate::print;

/// accel-config's default.
const CONFIG_FILE: &str = "/etc/accel-config/accel-config.conf";

/// Arguments of `list`.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// This device only.
    #[arg(short, long, value_name = "DEVICE")]
    device: Option<String>,
    /// Include devices and queues that are not enabled.
    #[arg(short, long)]
    idle: bool,
}

/// Arguments of `load-config`.
#[derive(Debug, clap::Args)]
pub(crate) struct Load {
    /// The file.
    #[arg(short, long, default_value = CONFIG_FILE)]
    config_file: PathBuf,
    /// Enable what was configured.
    #[arg(short, long)]
    enable: bool,
    /// Disable devices that are enabled first.
    #[arg(short, long)]
    forced: bool,
    /// Always print what was done.
    #[arg(short, long)]
    verbose: bool,
}

/// Arguments of `save-config`.
#[derive(Debug, clap::Args)]
pub(crate) struct Save {
    /// The file.
    #[arg(short, long, default_value = CONFIG_FILE)]
    saved_file: PathBuf,
}

/// Mode of the work queues that `setup` configures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// One client.
    #[value(alias = "d")]
    Dedicated,
    /// Many clients.
    #[value(alias = "s")]
    Shared,
}

/// Arguments of `setup`.
#[derive(Debug, clap::Args)]
pub(crate) struct Setup {
    /// The device.
    #[arg(short, long, default_value = "dsa0")]
    device: String,
    /// Number of work queues.
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=255))]
    work_queues: u16,
    /// Mode of the work queues: one client or many; `d` and `s` are short forms.
    #[arg(short, long, value_enum, default_value_t = Mode::Dedicated)]
    mode: Mode,
    /// Number of engines, all in group 0.
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=255))]
    engines: u16,
    /// Entries of each work queue; by default all are shared out.
    #[arg(short, long)]
    size: Option<u16>,
    /// Largest batch, in descriptors; by default the device's.
    #[arg(short, long, visible_alias = "max-batch-size")]
    batch: Option<u32>,
    /// Largest transfer, in bytes; by default the device's.
    #[arg(short = 'x', long, value_name = "SIZE", value_parser = parse_bytes)]
    max_transfer_size: Option<u64>,
    /// Priority of each work queue.
    #[arg(short, long, default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=15))]
    priority: u8,
    /// Descriptors may block on faults.
    #[arg(long)]
    block_on_fault: bool,
    /// Even if work queues are in use.
    #[arg(short, long)]
    force: bool,
}

pub(super) fn list(args: &List) -> anyhow::Result<()> {
    let machine = SysfsTree::look()?;
    let mut profile = listed(&machine.profile, Listing { idle: args.idle });
    if let Some(name) = &args.device {
        let device = machine.device(name)?;
        let one = Profile::of(vec![device.clone()]);
        profile = listed(&one, Listing { idle: args.idle });
    }
    if profile.device_profiles().is_empty() && !args.idle {
        eprintln!("note: nothing is enabled; -i shows all");
    }
    print::all(&mut io::stdout().lock(), &profile.to_json())?;
    Ok(())
}

pub(super) fn save(args: &Save) -> anyhow::Result<()> {
    let machine = SysfsTree::look()?;
    let profile = saved(&machine.profile);
    dray_output::write(&args.saved_file, profile.to_json().as_bytes())?;
    Ok(())
}

pub(super) fn load(args: &Load, dry_run: bool) -> anyhow::Result<()> {
    let profile = Profile::load(&args.config_file).map_err(ConfigError::from)?;
    let machine = SysfsTree::look()?;
    for note in iaa_notes(&profile) {
        eprintln!("note: {note}");
    }
    let mut fitted = Vec::new();
    for device in profile.device_profiles() {
        let (device, differences) = fit(device, machine.device(&device.dev)?);
        for difference in differences {
            eprintln!("warning: {difference}");
        }
        fitted.push(device);
    }
    let title = args.config_file.display().to_string();
    check(&title, &fitted, machine.kernel())?;
    let mut plan = machine.plan();
    for device in &fitted {
        let is = machine.device(&device.dev)?;
        if is.state.as_deref() != Some("disabled") {
            match args.forced {
                true => plan.disable_device(&device.dev, true)?,
                false => {
                    let name = device.dev.clone();
                    return Err(ConfigError::Enabled { name }.into());
                }
            }
        }
        dray_config::load(&mut plan, device, args.enable)?;
    }
    machine.make(&plan, dry_run)
}

pub(super) fn setup(args: &Setup, dry_run: bool) -> anyhow::Result<()> {
    let machine = SysfsTree::look()?;
    let device = machine.device(&args.device)?;
    let setup = dray_config::Setup {
        device: args.device.clone(),
        work_queues: args.work_queues,
        dedicated: args.mode == Mode::Dedicated,
        engines: args.engines,
        size: args.size,
        max_batch: args.batch,
        max_transfer: args.max_transfer_size,
        priority: args.priority,
        block_on_fault: args.block_on_fault,
    };
    let (fitted, _) = fit(&setup.profile(device), device);
    check("setup", std::slice::from_ref(&fitted), machine.kernel())?;
    let mut plan = machine.plan();
    plan.disable_device(&args.device, args.force)?;
    dray_config::load(&mut plan, &fitted, true)?;
    machine.make(&plan, dry_run)
}

/// Devices of a file that are left as they are.
pub(super) fn iaa_notes(profile: &Profile) -> Vec<String> {
    let note = |name: &String| {
        format!("{name} is an IAA (analytics accelerator), not a DSA: it is left alone")
    };
    profile.iaa().iter().map(note).collect()
}
