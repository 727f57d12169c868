//! `dray config`.

mod machine;
mod objects;
mod profiles;
mod settings;
mod validate;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

const EXAMPLES: &str = "\
Examples:
  dray config list -i                                  all, as accel-config does
  sudo dray config setup -d dsa0 -w 1 -m d -e 4 -s 128 -b 64
  dray config validate dsa.conf                        refused settings
  sudo dray config load-config -c dsa.conf -e -f       all of it, or nothing
  sudo dray config --undo                              as it was before
  dray config new-tree /tmp/sys && DRAY_SYSFS_PATH=/tmp/sys dray config list -i

Verbs, options and files are accel-config's, but list has no selection by -g, -q,
-e, -D, -G, -E and -Q, and config-user-default is not there: setup, or
load-config of its file, does that. DRAY_SYSFS_PATH names a directory
in the place of /sys, or its bus/dsa/devices; in a plain directory dray applies
the rules of the driver itself. Every write is tried on a model of the machine
first. The former configuration is kept in DRAY_STATE_DIR, or in the user's
state directory.
Exit codes: 0 ok, 1 failed, 2 usage or bad input, 3 there is no DSA driver.";

/// Arguments of `dray config`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Restore what was there before the last change; a second --undo makes the change again.
    #[arg(long, required = true)]
    undo: bool,
    /// Say what would be written, and write nothing.
    #[arg(long, global = true)]
    dry_run: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print devices, groups, engines and work queues as JSON.
    #[command(after_help = "Example:\n  dray config list -i")]
    List(profiles::List),
    /// Configure devices as a file says.
    #[command(after_help = "Example:\n  sudo dray config load-config -c dsa.conf -e")]
    LoadConfig(profiles::Load),
    /// Write the settings of what is enabled to a file.
    #[command(after_help = "Example:\n  dray config save-config -s dsa.conf")]
    SaveConfig(profiles::Save),
    /// Enable devices.
    #[command(after_help = "Example:\n  sudo dray config enable-device dsa0")]
    EnableDevice(objects::Devices),
    /// Disable devices and their work queues.
    #[command(after_help = "Example:\n  sudo dray config disable-device dsa0")]
    DisableDevice(objects::ForcedDevices),
    /// Enable work queues.
    #[command(after_help = "Example:\n  sudo dray config enable-wq dsa0/wq0.0")]
    EnableWq(objects::Queues),
    /// Disable work queues.
    #[command(after_help = "Example:\n  sudo dray config disable-wq dsa0/wq0.0")]
    DisableWq(objects::ForcedQueues),
    /// Set attributes of a device.
    #[command(after_help = "Example:\n  sudo dray config config-device dsa0 -l 8")]
    ConfigDevice(settings::Device),
    /// Set attributes of a group.
    #[command(after_help = "Example:\n  sudo dray config config-group dsa0/group0.0 -t 16")]
    ConfigGroup(settings::Group),
    /// Set attributes of a work queue.
    #[command(
        after_help = "Example:\n  sudo dray config config-wq dsa0/wq0.0 -g 0 -m dedicated -s 16 -y user -n app -d user"
    )]
    ConfigWq(settings::Wq),
    /// Put an engine into a group.
    #[command(after_help = "Example:\n  sudo dray config config-engine dsa0/engine0.0 -g 0")]
    ConfigEngine(settings::Engine),
    /// Disable a device, configure work queues and engines by numbers, and enable all.
    #[command(after_help = "Example:\n  sudo dray config setup -d dsa0 -w 1 -m dedicated -e 4")]
    Setup(profiles::Setup),
    /// Say what a file has that would be refused, and what would be right.
    #[command(after_help = "Example:\n  dray config validate dsa.conf")]
    Validate(validate::Validate),
    /// Make a directory that looks like /sys on a machine with DSA.
    #[command(
        after_help = "Example:\n  dray config new-tree /tmp/sys && DRAY_SYSFS_PATH=/tmp/sys dray config list -i"
    )]
    NewTree(NewTree),
}

/// Arguments of `new-tree`.
#[derive(Debug, clap::Args)]
struct NewTree {
    /// The directory; it is empty, or not there.
    directory: PathBuf,
    /// Which kernel.
    #[arg(long, default_value = "6.8")]
    kernel: String,
    /// Which DSA: 1 or 2.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    version: u32,
    /// How many devices: dsa0, dsa2, ...
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    devices: u32,
}

/// The directory in which what was there before a change is kept.
pub(crate) fn state() -> PathBuf {
    machine::state()
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let dry_run = args.dry_run;
    let Some(verb) = &args.verb else {
        machine::undo(dry_run)?;
        return Ok(ExitCode::SUCCESS);
    };
    match verb {
        Verb::List(args) => profiles::list(args)?,
        Verb::LoadConfig(args) => profiles::load(args, dry_run)?,
        Verb::SaveConfig(args) => profiles::save(args)?,
        Verb::EnableDevice(args) => objects::enable_devices(args, dry_run)?,
        Verb::DisableDevice(args) => objects::disable_devices(args, dry_run)?,
        Verb::EnableWq(args) => objects::enable_queues(args, dry_run)?,
        Verb::DisableWq(args) => objects::disable_queues(args, dry_run)?,
        Verb::ConfigDevice(args) => settings::device(args, dry_run)?,
        Verb::ConfigGroup(args) => settings::group(args, dry_run)?,
        Verb::ConfigWq(args) => settings::wq(args, dry_run)?,
        Verb::ConfigEngine(args) => settings::engine(args, dry_run)?,
        Verb::Setup(args) => profiles::setup(args, dry_run)?,
        Verb::Validate(args) => return validate::validate(args),
        Verb::NewTree(args) => {
            machine::new_tree(&args.directory, &args.kernel, args.version, args.devices)?
        }
    }
    Ok(ExitCode::SUCCESS)
}
