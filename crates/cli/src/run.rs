//! `dray run` and `dray shell`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use dray_idxd::Profile;
use dray_idxd::driver::Personality;
use dray_run::{RunError, Session};

const EXAMPLES: &str = "\
Examples:
  dray run -- accel-config list -i                 one device, as on a fresh machine
  dray run --profile 4e1w-s -- ./program           configured and enabled
  dray run --profile dsa.conf --personality 5.18 -- sh script.sh
  dray shell --profile 1e1w-d                      look around

The command finds /sys/bus/dsa and /dev/dsa, and so does whatever it starts; nobody else does. It
needs no privilege where users may have namespaces and /dev/fuse.
Exit codes: those of the command; a signal that ends it ends dray. 1 the session failed, 2 usage or
bad input, 126 the command cannot be executed, 127 there is no such command.";

/// Arguments of `dray run`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    machine: Machine,
    /// The command and its arguments, after `--`.
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
}

/// Arguments of `dray shell`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    machine: Machine,
}

/// What the command finds.
#[derive(Debug, clap::Args)]
struct Machine {
    /// accel-config's file, or a name such as 4e1w-s: devices that are configured and enabled.
    #[arg(long, value_name = "FILE|NAME")]
    profile: Option<String>,
    /// The kernel whose driver is shown.
    #[arg(long, value_name = "KERNEL", default_value = "6.8", value_parser = kernel)]
    personality: Personality,
}

fn kernel(text: &str) -> Result<Personality, String> {
    text.parse().map_err(|error| format!("{error}"))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    start(&args.machine, args.command.clone())
}

pub(crate) fn shell(args: &ShellArgs) -> anyhow::Result<ExitCode> {
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    start(&args.machine, vec![shell])
}

fn start(machine: &Machine, command: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let profile = machine.profile.as_deref().map(Profile::resolve).transpose();
    let session = Session {
        command,
        personality: machine.personality,
        profile: profile.map_err(RunError::from)?,
        portal: portal(),
    };
    dray_run::run(&session)?.pass_on()
}

/// The library that gives programs portals, where it is installed.
fn portal() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let beside = program.parent()?;
    let places = [beside.to_owned(), beside.join("../lib/dray")];
    let mut files = places.iter().map(|place| place.join("libdray_portal.so"));
    files.find(|file| file.is_file())
}
