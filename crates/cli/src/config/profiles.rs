//! Verbs that read or write whole profiles.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use dray_config::{
    Assumed, ConfigError, Listing, Plan, check, findings, fit, listed, model, saved,
};
use dray_experiment::parse_bytes;
use dray_idxd::driver::{Driver, Options, Personality};
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
    note_iaa(&profile);
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

/// Says which devices of a file are left as they are.
fn note_iaa(profile: &Profile) {
    for name in profile.iaa() {
        eprintln!("note: {name} is an IAA (analytics accelerator), not a DSA: it is left alone");
    }
}

/// The devices that a profile is judged on, and a model of their driver.
struct Judge {
    devices: Vec<DeviceProfile>,
    model: Driver,
}

impl Judge {
    fn find(described: Option<&Path>) -> anyhow::Result<Judge> {
        if let Some(file) = described {
            let profile = Profile::load(file).map_err(ConfigError::from)?;
            let (model, _) = model(&profile, Assumed::default());
            return Ok(Judge {
                devices: profile.device_profiles().to_vec(),
                model,
            });
        }
        match SysfsTree::look() {
            Ok(machine) => Ok(Judge {
                devices: machine.profile.device_profiles().to_vec(),
                model: machine.plan().into_model(),
            }),
            Err(error) => match error.downcast_ref() {
                Some(ConfigError::NoDriver { .. }) => Ok(Judge {
                    devices: Vec::new(),
                    model: Driver::new(Options::new(Personality::NEWEST), Vec::new()),
                }),
                _ => Err(error),
            },
        }
    }

    fn kernel(&self) -> Personality {
        self.model.options().personality
    }

    /// What is left out of a profile without findings when it is loaded.
    fn notes(&self, fitted: &[DeviceProfile]) -> anyhow::Result<Vec<String>> {
        let known = |device: &DeviceProfile| self.devices.iter().any(|d| d.dev == device.dev);
        if !fitted.iter().all(known) {
            let profile = Profile::of(fitted.to_vec());
            return Ok(dray_run::notes(&profile, self.kernel())?);
        }
        let mut plan = Plan::new(self.model.clone());
        for device in fitted {
            plan.disable_device(&device.dev, true)?;
            dray_config::load(&mut plan, device, true)?;
        }
        Ok(plan.notes().to_vec())
    }
}

pub(super) fn validate(args: &Validate) -> anyhow::Result<ExitCode> {
    let profile = Profile::resolve(&args.file).map_err(ConfigError::from)?;
    note_iaa(&profile);
    let judge = Judge::find(args.device.as_deref())?;
    let mut fitted = Vec::new();
    for device in profile.device_profiles() {
        let there = judge.devices.iter().find(|other| other.dev == device.dev);
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
    let findings = findings(&fitted, judge.kernel());
    if findings.is_empty() {
        for note in judge.notes(&fitted)? {
            eprintln!("note: {note}");
        }
    }
    let mut text: String = findings
        .iter()
        .map(|finding| format!("{finding}\n"))
        .collect();
    let (code, refused) = match findings.len() {
        0 => (ExitCode::SUCCESS, "nothing".to_owned()),
        1 => (ExitCode::FAILURE, "1 setting".to_owned()),
        n => (ExitCode::FAILURE, format!("{n} settings")),
    };
    text.push_str(&format!("{}: {refused} would be refused\n", args.file));
    print::all(&mut io::stdout().lock(), &text)?;
    Ok(code)
}
