//! Verbs that read or write whole profiles.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use dray_config::{ConfigError, Listing, check, findings, fit, listed, saved};
use dray_idxd::{DeviceProfile, Profile};

use super::machine::SysfsTree;
use crate::complain::Usage;
use crate::print;

/// accel-config's default.
const CONFIG_FILE: &str = "/etc/accel-config/accel-config.conf";

/// Arguments of `list`.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// This device only.
    #[arg(short, long, value_name = "DEVICE")]
    device: Option<String>,
    /// What is not enabled, too.
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
    /// What was done is said in any case.
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
    /// Who submits to a work queue: one client or many; `d` and `s` do as well.
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
    #[arg(short = 'x', long)]
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

/// Arguments of `validate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Validate {
    /// The profile: a file, or a name such as 4e1w-s.
    file: String,
    /// The device: what `list -i` printed there. By default the device of that name here, or where
    /// there is none what the profile says of it.
    #[arg(long, value_name = "FILE")]
    device: Option<PathBuf>,
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
    let mut fitted = Vec::new();
    for device in profile.device_profiles() {
        let (device, differences) = fit(device, machine.device(&device.dev)?);
        for difference in differences {
            eprintln!("warning: {difference}");
        }
        fitted.push(device);
    }
    check(&args.config_file.display().to_string(), &fitted)?;
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
    check("setup", std::slice::from_ref(&fitted))?;
    let mut plan = machine.plan();
    plan.disable_device(&args.device, args.force)?;
    dray_config::load(&mut plan, &fitted, true)?;
    machine.make(&plan, dry_run)
}

pub(super) fn validate(args: &Validate) -> anyhow::Result<ExitCode> {
    let profile = Profile::resolve(&args.file).map_err(ConfigError::from)?;
    let devices = match &args.device {
        Some(file) => Some(described(file)?),
        None => here()?,
    };
    let mut fitted = Vec::new();
    for device in profile.device_profiles() {
        let there = devices
            .iter()
            .flatten()
            .find(|other| other.dev == device.dev);
        match (there, &args.device) {
            (Some(there), _) => {
                let (device, differences) = fit(device, there);
                for difference in differences {
                    eprintln!("warning: {difference}");
                }
                fitted.push(device);
            }
            (None, Some(file)) => {
                return Err(Usage::error(
                    format!("{} describes no {}", file.display(), device.dev),
                    "what `dray config list -i` prints on the machine is the description",
                ));
            }
            (None, None) => {
                eprintln!(
                    "note: no {} here; the profile's own description counts",
                    device.dev
                );
                fitted.push(device.clone());
            }
        }
    }
    let findings = findings(&fitted);
    let mut text = String::new();
    for finding in &findings {
        text.push_str(&format!("{finding}\n"));
    }
    let (code, end) = match findings.len() {
        0 => (
            ExitCode::SUCCESS,
            format!("{}: nothing would be refused\n", args.file),
        ),
        1 => (
            ExitCode::FAILURE,
            format!("{}: 1 setting would be refused\n", args.file),
        ),
        n => (
            ExitCode::FAILURE,
            format!("{}: {n} settings would be refused\n", args.file),
        ),
    };
    text.push_str(&end);
    print::all(&mut io::stdout().lock(), &text)?;
    Ok(code)
}

fn described(file: &Path) -> anyhow::Result<Vec<DeviceProfile>> {
    let profile = Profile::load(file).map_err(ConfigError::from)?;
    Ok(profile.device_profiles().to_vec())
}

/// The devices of this machine; none where there is no driver.
fn here() -> anyhow::Result<Option<Vec<DeviceProfile>>> {
    match SysfsTree::look() {
        Ok(machine) => Ok(Some(machine.profile.device_profiles().to_vec())),
        Err(error) => match error.downcast_ref() {
            Some(ConfigError::NoDriver { .. }) => Ok(None),
            _ => Err(error),
        },
    }
}
