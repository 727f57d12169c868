//! `dray vfio`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use dray_idxd::Profile;
use dray_vfio::{Chaos, Deviation, Injection, Options, Report, Server};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::print;

const EXAMPLES: &str = "\
Examples:
  dray vfio --socket /tmp/dsa.sock
  dray vfio --socket /tmp/dsa.sock --version 2 --counts counts.json
  dray vfio --socket /tmp/dsa.sock --profile 4e1w-s

QEMU 10.1 or later connects to it. The guest's memory must be shared:
  qemu-system-x86_64 -machine q35,memory-backend=mem -m 1G \\
    -object memory-backend-memfd,id=mem,size=1G,share=on \\
    -device '{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\",\"path\":\"/tmp/dsa.sock\"}}' ...

Clients are served one after the other; each finds a device as after power-on.
SIGINT and SIGTERM end it. Exit codes: 0 ok, 1 failed, 2 usage or bad input.";

/// Arguments of `dray vfio`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The unix socket to listen on. One that a server has left behind is replaced.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    #[command(flatten)]
    part: Part,
    /// Stop when the first client has left.
    #[arg(long)]
    once: bool,
    /// A fault that the device has: once `halt@N` after N descriptors (`halt-flr@N` needs a function
    /// level reset), `CODE=ERROR` for the next command of that code, as in 6=0x21; `fault/N`: each N-th
    /// write of an operation is a page fault.
    #[arg(long, value_name = "FAULT")]
    inject: Vec<Injection>,
    /// Have an adversary choose what each client's device does, as with `dray run --chaos`: `SEED[:KINDS][@FIRST-LAST]`.
    #[arg(long, value_name = "SEED")]
    chaos: Option<Chaos>,
    /// Have each client's device do one thing otherwise than the specification says, as with `dray run --deviation`.
    #[arg(long, value_name = "NAME", conflicts_with = "chaos")]
    deviation: Option<Deviation>,
    /// Write at the end what went through the work queues, as JSON.
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,
}

/// Which device.
#[derive(Debug, clap::Args)]
pub(crate) struct Part {
    /// The DSA version: 1 as on fourth and fifth generation Xeon, 2 a preset with an event log and
    /// interrupt handles.
    #[arg(long = "version", value_enum, default_value_t = PartVersion::One)]
    version: PartVersion,
    /// accel-config's file, or a name such as 4e1w-s: a device whose configuration the driver cannot
    /// change (GENCAP bit 31 is 0).
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "version")]
    profile: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PartVersion {
    /// VERSION 0x100.
    #[value(name = "1")]
    One,
    /// VERSION 0x200.
    #[value(name = "2")]
    Two,
}

impl Part {
    /// What a client finds.
    pub(crate) fn options(&self) -> anyhow::Result<Options> {
        if let Some(name) = &self.profile {
            let devices = Profile::resolve(name)?.devices()?;
            let config = devices
                .into_iter()
                .next()
                .with_context(|| format!("{name} has no device"))?;
            let mut options = Options::new(dray_config::hardware(config.capabilities.clone()));
            options.fixed = Some(config);
            return Ok(options);
        }
        let version = match self.version {
            PartVersion::One => 0x100,
            PartVersion::Two => 0x200,
        };
        let capabilities =
            dray_idxd::known_capabilities(version).context("no such version is known")?;
        Ok(Options::new(dray_config::hardware(capabilities)))
    }
}

/// A guest's memory may be a file for each page that its IOMMU maps.
fn open_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Where it stays as it is, a mapping beyond it is refused.
    let _ = setrlimit(Resource::Nofile, most);
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut options = args.part.options()?;
    options.injections.clone_from(&args.inject);
    options.chaos = args.chaos;
    options.deviation = args.deviation;
    // A profile that the part cannot have is an error before a client comes.
    options.function()?;
    let server = Server::bind(&args.socket, |what| {
        eprintln!("warning: {what}: refused or not modelled; counted from here on");
    })?;
    let stopper = server.stopper();
    ctrlc::set_handler(move || stopper.stop()).context("no signal handler")?;
    open_many_files();
    eprintln!("listening on {}", args.socket.display());
    server.serve(&options, args.once, |report| match report {
        Report::Connected => eprintln!("a client has connected"),
        Report::Waiting => eprintln!("another client waits until this one has left"),
        Report::Left(None) => eprintln!("the client has left"),
        Report::Left(Some(error)) => eprintln!("the client was dropped: {error}"),
    })?;
    eprintln!("fidelity: {} (dray fidelity)", server.counts().fidelity);
    if let Some(path) = &args.counts {
        let document = print::document(&server.counts().to_json())?;
        dray_output::write(path, document.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}
