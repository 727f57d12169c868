//! `dray vm`: a guest with a stock kernel and a virtual device.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use clap::ValueEnum;
use dray_experiment::parse_bytes;
use rustix::process::{Pid, Signal, kill_process};

use crate::complain::Usage;

const EXAMPLES: &str = "\
Examples:
  dray vm                                        a shell; Ctrl-D ends it
  dray vm -- accel-config list -i                a command, with its exit code
  dray vm --inject halt-flr@100 -- sh -c 'dmesg | grep idxd'
  dray vm build ./hello                          builds modules for the guest
  dray vm --module ./idxd.ko                     an own build of the driver
  dray vm --tiers -- cat /sys/devices/system/node/online
  dray vm --net /tmp/a.sock -- sh -c '. /lib.sh; load_network; ip link'
  dray vm --gdb                                  waits for gdb on a socket

The first start downloads QEMU and Debian's kernel (about 500 MB) into the cache
with apt, which must know a Debian archive, and builds the guest's modules.
Nothing is installed. There is no KVM: the guest is slow. Exit codes: those of
the command; 124 the guest was stuck, 125 it ended early.";

/// What is done without a guest.
#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Build the kernel modules of a folder, in it, for the guest's kernel; prints the files for --module.
    ///
    /// The folder has a Makefile or Kbuild with lines such as `obj-m += hello.o`. The compiler and the headers are
    /// those of the guest's kernel, from the cache.
    #[command(
        after_help = "Example:\n  dray vm build ./hello && dray vm --module ./hello/hello.ko"
    )]
    Build {
        /// The folder.
        folder: PathBuf,
    },
}

/// Arguments of `dray vm`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Another kernel image; its modules come with --module.
    #[arg(long, value_name = "PATH")]
    kernel: Option<PathBuf>,
    /// A module for the guest's /lib/modules, in place of one of that name.
    #[arg(long, value_name = "FILE.ko")]
    module: Vec<PathBuf>,
    /// A file for the guest.
    #[arg(long, value_name = "GUEST=FILE")]
    file: Vec<OsString>,
    /// Parameters for the kernel's command line.
    #[arg(long, value_name = "TEXT")]
    append: Vec<OsString>,
    /// Memory of the guest, as in 512M or 2G; 256M at least, and for each of two nodes (--tiers).
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_bytes)]
    memory: u64,
    /// Processors of the guest.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=255))]
    processors: u32,
    /// Two memory nodes: half of the memory with the processors, half slower and without.
    #[arg(long)]
    tiers: bool,
    /// A network device whose back end (`dray vhost`) listens there; `packed=on`: with packed rings.
    #[arg(long, value_name = "SOCKET[,PROPERTY]")]
    net: Vec<OsString>,
    /// The DSA version.
    #[arg(long, value_enum, default_value_t = Version::One)]
    version: Version,
    /// A fault that the device has, as `dray vfio --inject`.
    #[arg(long, value_name = "FAULT")]
    inject: Vec<dray_vfio::Injection>,
    /// Have an adversary choose what the device does, as `dray vfio --chaos`.
    #[arg(long, value_name = "SEED")]
    chaos: Option<dray_vfio::Chaos>,
    /// Have the device do one thing otherwise than the specification says, as `dray vfio --deviation`.
    #[arg(long, value_name = "NAME", conflicts_with = "chaos")]
    deviation: Option<dray_vfio::Deviation>,
    /// Write at the end what went through the work queues, as JSON.
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,
    /// Wait for gdb on a private socket, whose path is printed, before the first instruction.
    #[arg(long)]
    gdb: bool,
    /// Seconds that a command may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    watchdog: u32,
    /// The command and its arguments; without one, a shell.
    #[arg(value_name = "COMMAND", last = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// A memory node of a guest has so much at least.
const LEAST_BYTES: u64 = 256 << 20;

/// VERSION of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Version {
    /// VERSION 0x100.
    #[value(name = "1")]
    One,
    /// VERSION 0x200.
    #[value(name = "2")]
    Two,
}

/// The bench, as it stands in the repository: path there and text.
macro_rules! bundle {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../../../", $path)))),*]
    };
}

const BUNDLE: [(&str, &str); 37] = bundle![
    "tests/qemu/vm",
    "tests/qemu/packages.lock",
    "tests/qemu/lib/cache.sh",
    "tests/qemu/lib/fetch.sh",
    "tests/qemu/lib/modules.sh",
    "tests/qemu/lib/initramfs.sh",
    "tests/qemu/lib/boot.sh",
    "tests/qemu/guest/init",
    "tests/qemu/guest/lib.sh",
    "tests/qemu/guest/copy.c",
    "tests/qemu/guest/migrate.c",
    "tests/qemu/guest/tier.c",
    "tests/qemu/guest/migrate.sh",
    "kernel/Makefile",
    "kernel/btf.c",
    "kernel/btf.h",
    "kernel/dray_instructions.c",
    "kernel/iommu.c",
    "kernel/dray_migrate/call.c",
    "kernel/dray_migrate/call.h",
    "kernel/dray_migrate/channel.c",
    "kernel/dray_migrate/channel.h",
    "kernel/dray_migrate/copy.c",
    "kernel/dray_migrate/copy.h",
    "kernel/dray_migrate/counters.h",
    "kernel/dray_migrate/device.c",
    "kernel/dray_migrate/hook.c",
    "kernel/dray_migrate/hook.h",
    "kernel/dray_migrate/knobs.c",
    "kernel/dray_migrate/knobs.h",
    "kernel/dray_migrate/layout.c",
    "kernel/dray_migrate/layout.h",
    "kernel/dray_migrate/main.c",
    "kernel/dray_migrate/threads.c",
    "kernel/dray_migrate/timer.c",
    "kernel/dray_migrate/timer.h",
    "kernel/dray_migrate/trace.h",
];

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    check(args)?;
    let folder = tempfile::tempdir().context("no temporary folder")?;
    unpack(folder.path())?;
    // The script ends the guest when this process ends, by SIGKILL too.
    let mut vm = Command::new("setpriv");
    vm.args(["--pdeathsig", "TERM", "bash"]);
    vm.arg(folder.path().join("tests/qemu/vm"));
    let dray = std::env::current_exe().context("the path of this program is not known")?;
    vm.env("DRAY", dray);
    if let Some(Verb::Build { folder }) = &args.verb {
        vm.arg("build").arg(folder);
        return pass_on(vm);
    }
    if args.command.is_empty() {
        vm.arg("shell");
    } else {
        vm.arg("boot");
        let script = folder.path().join("script");
        std::fs::write(&script, line(&args.command)).context("no script")?;
        vm.arg(script)
            .arg("--watchdog")
            .arg(args.watchdog.to_string());
    }
    options(&mut vm, args);
    pass_on(vm)
}

/// Runs the script, passes signals on, and gives its exit code.
fn pass_on(mut vm: Command) -> anyhow::Result<ExitCode> {
    // The script ends the guest. A terminal's Ctrl-C reaches it without us, a signal to us alone does not.
    let signal = Arc::new(Signalled::default());
    let handler = signal.clone();
    ctrlc::set_handler(move || handler.came()).context("no signal handler")?;
    let mut script = vm
        .spawn()
        .context("setpriv (util-linux), which starts bash, cannot be started")?;
    signal.is_for(Pid::from_child(&script));
    let status = script.wait().context("the script was lost")?;
    Ok(ExitCode::from(status.code().unwrap_or(1) as u8))
}

/// What would be found out by a guest that does not start.
fn check(args: &Args) -> anyhow::Result<()> {
    let mut files: Vec<&Path> = Vec::new();
    files.extend(args.module.iter().chain(&args.kernel).map(PathBuf::as_path));
    for file in &args.file {
        let bytes = file.as_bytes();
        let Some(at) = bytes.iter().position(|byte| *byte == b'=') else {
            return Err(Usage::error(
                format!("--file {}: no `=`", file.display()),
                "the name in the guest comes first: --file etc/my.conf=./my.conf",
            ));
        };
        files.push(Path::new(OsStr::from_bytes(&bytes[at + 1..])));
    }
    for file in files {
        if !file.is_file() {
            return Err(Usage::error(
                format!("{}: no such file", file.display()),
                "name a file of this machine; the guest gets a copy of it",
            ));
        }
    }
    let least = LEAST_BYTES << u32::from(args.tiers);
    if args.memory < least {
        return Err(Usage::error(
            format!(
                "--memory: {} bytes are too few for a guest, which needs {} MiB",
                args.memory,
                least >> 20
            ),
            format!("--memory {}M", least >> 20),
        ));
    }
    Ok(())
}

/// A signal that ends a process, which may come before the process is known.
#[derive(Debug, Default)]
struct Signalled {
    came: AtomicBool,
    process: OnceLock<Pid>,
}

impl Signalled {
    fn came(&self) {
        self.came.store(true, Ordering::SeqCst);
        self.pass_on();
    }

    fn is_for(&self, process: Pid) {
        self.process.get_or_init(|| process);
        self.pass_on();
    }

    fn pass_on(&self) {
        if let Some(process) = self.process.get()
            && self.came.load(Ordering::SeqCst)
        {
            // It may have ended already.
            let _ = kill_process(*process, Signal::TERM);
        }
    }
}

fn options(vm: &mut Command, args: &Args) {
    vm.arg("--memory").arg(format!("{}M", args.memory >> 20));
    vm.args(["--processors", &args.processors.to_string()]);
    if args.tiers {
        vm.arg("--tiers");
    }
    if args.version == Version::Two {
        vm.args(["--version", "2"]);
    }
    if let Some(kernel) = &args.kernel {
        vm.arg("--kernel").arg(kernel);
    }
    if let Some(counts) = &args.counts {
        vm.arg("--counts").arg(counts);
    }
    for module in &args.module {
        vm.arg("--module").arg(module);
    }
    for file in &args.file {
        vm.arg("--file").arg(file);
    }
    for net in &args.net {
        vm.arg("--net").arg(net);
    }
    for text in &args.append {
        vm.arg("--append").arg(text);
    }
    for injection in &args.inject {
        vm.arg("--inject").arg(injection.to_string());
    }
    if let Some(chaos) = &args.chaos {
        vm.arg("--chaos").arg(chaos.to_string());
    }
    if let Some(deviation) = args.deviation {
        vm.arg("--deviation").arg(deviation.name());
    }
    if args.gdb {
        vm.arg("--gdb");
    }
}

fn unpack(folder: &Path) -> anyhow::Result<()> {
    for (path, text) in BUNDLE {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).context("no temporary folder")?;
        }
        std::fs::write(&path, text).with_context(|| format!("{}", path.display()))?;
    }
    Ok(())
}

/// A command as a shell reads it.
fn line(command: &[String]) -> String {
    let quoted = command
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ") + "\n"
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// A file that is missing here is missing in the guest of a user who has the program alone.
    #[test]
    fn the_bundle_has_every_file_that_a_boot_needs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folders = [
            "tests/qemu/lib",
            "tests/qemu/guest",
            "kernel",
            "kernel/dray_migrate",
        ];
        for folder in folders {
            for entry in std::fs::read_dir(root.join(folder)).expect("a checkout") {
                let name = entry.expect("an entry").file_name();
                let path = format!("{folder}/{}", name.to_string_lossy());
                let source = path.ends_with(".c") || path.ends_with(".h");
                let shell = path.ends_with(".sh") && !path.ends_with("endless.sh");
                if source || shell {
                    let is_there = super::BUNDLE.iter().any(|(known, _)| *known == path);
                    assert!(is_there, "{path}");
                }
            }
        }
    }

    #[test]
    fn words_of_a_command_are_quoted_for_the_shell() {
        let command = ["sh", "-c", "echo 'a b' $x"].map(str::to_owned);
        assert_eq!(
            super::line(&command),
            r"'sh' '-c' 'echo '\''a b'\'' $x'".to_owned() + "\n"
        );
    }
}
