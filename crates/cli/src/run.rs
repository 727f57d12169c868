//! `dray run` and `dray shell`.

mod chaos;
mod client;
mod cpuid;
mod findings;
mod sarif;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use chaos::Seeds;
use clap::ValueEnum;
use client::Client;
use dray_idxd::Profile;
use dray_idxd::driver::Personality;
use dray_run::{
    Chaos, Deviation, Ended, Ending, InjectedPanic, Presence, Recording, RequestFile, Require,
    RunError, Session, Supervise, Suppressions,
};

use crate::complain::Usage;
use crate::offload::program::starts;
use crate::recording;

const EXAMPLES: &str = "\
Examples:
  dray run -- accel-config list -i                 one device, not configured
  dray run --profile 4e1w-s -- ./program           configured and enabled
  dray run --profile dsa.conf --personality 5.18 -- sh script.sh
  dray run --for dpdk --require work -- dpdk-test ...
  dray run --profile 4e1w-s --stats --trace run.json -- ./program
  dray run --profile 4e1w-s --chaos 1..100 -- timeout 10 ./program
  dray run --profile 1e1w-d --sanitize=thread -- ./built-with-fsanitize-thread
  dray shell --profile 1e1w-d                      a shell that sees it

The command and its children find /sys/bus/dsa and /dev/dsa; no other process
does. No privilege is needed where users may have namespaces and /dev/fuse.
When a program maps a work queue, dray patches its MOVDIR64B, ENQCMD and UMWAIT
instructions. One in code without unwind tables, or in code made or loaded
later, raises SIGILL or SIGSEGV once, for a handler of dray: an alternate signal
stack then needs AT_MINSIGSTKSZ bytes for the kernel's frame alone. With
--supervise always no instruction raises a signal, and each stops the program
for its tracer; where the processor can fault CPUID (cpuid_fault in
/proc/cpuinfo), CPUID then shows these instructions, which was not tried on such
a processor: a thread that blocks SIGSEGV while it asks loses its process's
handler of it.
Exit codes: those of the command; a signal that ends it ends dray. 1 the session
failed, 2 usage or bad input, 126 the command cannot be executed, 127 there is
no such command.";

/// Arguments of `dray run`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    machine: SessionArgs,
    /// The command and its arguments, after `--`.
    // Without `allow_hyphen_values`, with which an option that is misspelled would be the command.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Arguments of `dray shell`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  dray shell --profile 1e1w-d\n\nThe exit code is that of the shell."
)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    machine: SessionArgs,
}

/// What the command finds.
#[derive(Debug, clap::Args)]
struct SessionArgs {
    /// The devices, configured and enabled: a file of accel-config, or a name; 4e1w-s has 4 engines and 1 shared
    /// work queue, 1e1w-d 1 engine and 1 dedicated work queue. Without it one device that is not configured.
    #[arg(long, value_name = "FILE|NAME")]
    profile: Option<String>,
    /// Name of every work queue of the profile, which some programs look for.
    #[arg(long, value_name = "NAME")]
    queue_name: Option<String>,
    /// Work queues as a program looks for them, by mode and name; without --profile a device with one.
    #[arg(long = "for", value_enum, value_name = "CLIENT")]
    client: Option<Client>,
    /// Kernel release whose idxd driver the command finds.
    #[arg(long, value_name = "KERNEL", default_value = "6.8", value_parser = kernel)]
    personality: Personality,
    /// Show an IAX, too, which stays disabled: for scripts that require one.
    #[arg(long)]
    iax: bool,
    /// Result of an access to a page that is not in memory, by a descriptor that does not block on faults.
    #[arg(long, value_enum, default_value_t = Faults::Strict)]
    faults: Faults,
    /// The only way to submit, or what must have happened; without it, the ways that the kernel has.
    ///
    /// With `work` a session whose work queues completed no descriptor with success is an error (exit code 1).
    /// With `portal` a session in which a program opened a work queue and got no portal, or in which no
    /// program mapped one, is an error (exit code 1).
    #[arg(long, value_enum)]
    require: Option<Requirement>,
    /// Work without namespaces and FUSE, as in containers that forbid them, where it is the default.
    ///
    /// The preload library redirects paths to plain files. Programs that are static or setuid, make
    /// system calls themselves, become another user or lose LD_PRELOAD find no device.
    #[arg(long, conflicts_with = "supervise")]
    redirect: bool,
    /// Which programs are traced to give them portals: slower, but it works without the preload library.
    ///
    /// With `auto`, each process that opens a work queue without the preload library, or that makes
    /// system calls itself, however it was started. Files are examined before they are executed.
    #[arg(long, value_enum, default_value_t = Supervised::Auto)]
    supervise: Supervised,
    /// Print at the end what was submitted to the work queues, with advice.
    #[arg(long)]
    stats: bool,
    /// Report races with the device and broken rules: overlapping descriptors in flight, shared or stale completion
    /// records, wrong resumption after a partial completion, refused fields, work in flight at the end, lost descriptors.
    ///
    /// Before descriptors start the program has some 0.2 ms of a processor to submit more, so that descriptors that are
    /// submitted together are seen together: the first 64 of each place in the program, later ones for a sixteenth of the time, with
    /// --chaos all. At most 20 findings of a class and a place are printed. With `error` the session ends with code 1 if there
    /// is one. With `thread` the ThreadSanitizer of the program (gcc -fsanitize=thread, clang -fsanitize=thread
    /// -shared-libsan) judges its threads against the devices, and nothing else is looked for.
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "say")]
    sanitize: Option<Sanitize>,
    /// Write the findings to a file: FILE.sarif for SARIF 2.1.0, JSON otherwise.
    #[arg(long, value_name = "FILE", requires = "sanitize")]
    sanitize_file: Option<PathBuf>,
    /// Findings that are not reported: lines of CLASS:PATTERN, where the pattern is part of a function, source file or object.
    #[arg(long, value_name = "FILE", requires = "sanitize")]
    suppressions: Option<PathBuf>,
    /// Have an adversary choose what the devices do, among what the specification allows: `SEED[..SEED][:KINDS][@FIRST-LAST]`.
    ///
    /// Descriptors are executed late and in any order that one engine, fences and drains leave open (delay), records
    /// come long after data (record), the lines of a destination are written in any order (lines), a descriptor that does not
    /// block on faults has a page fault at any page (fault), shared queues answer retry with room (retry), records
    /// go to the event log (log; where a device has one). These
    /// are the profile `legal`, the default. `errors` adds hardware errors and page requests that are refused (error),
    /// `broken-hardware` interrupts that are lost, late or sent twice (interrupt). `outages` is legal with queues that are
    /// disabled for a while (disable) or aborted (abort) and devices that halt and are reset (halt): descriptors get lost, and a
    /// program without a limit to its waits hangs. `dead`, of no profile, is a device that halts for good.
    /// With `prompt`, of no profile, every second record is there when the instruction that submits returns.
    /// KINDS is a profile or kinds with +.
    /// @FIRST-LAST disturbs these submissions of each queue and process alone, counted from 0.
    ///
    /// The same seed and submissions meet the same choices. A program whose threads submit to one queue, or that reacts
    /// to completions later than 0.1 ms, may submit in another order.
    ///
    /// With 1..1000 the command runs once for each seed, without input. Seeds with which it ends with an error are printed with
    /// their command lines, and the choices of the first eight are reduced to those that matter. A command that may hang needs
    /// timeout(1). The exit code is 1 if there is such a seed.
    #[arg(long, value_name = "SEEDS")]
    chaos: Option<Seeds>,
    /// Have the devices do one thing otherwise than the specification says, for tests of tests: does yours fail?
    ///
    /// NAME is one of overlap-status, opcode-status, reserved-bytes, compare-result, compare-status, fault-bytes, fault-address,
    /// fault-access, no-fence, record-first, status-first, crc-seed, crc-inverted, batch-count, batch-status, delta-size,
    /// delta-overflow, no-drain, dualcast-alignment, last-byte; docs/commands/attest.md says of each what is wrong.
    #[arg(long, value_name = "NAME", conflicts_with = "chaos")]
    deviation: Option<Deviation>,
    /// Write each descriptor to a file: FILE.json for Perfetto, FILE.csv.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write each request of the programs to a file as they go, for `dray replay`: thread, size, CPU time of the thread
    /// since the end that it saw before, and which end that was. A request takes 32 bytes.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Most bytes of the recording; later requests are counted, and not recorded.
    #[arg(long, value_name = "BYTES", default_value = "1g", requires = "record")]
    record_limit: String,
    /// A thread panics when it has done so much: dispatcher:N, driver:N, files:N; with :MS, programs are killed so
    /// much later. For tests.
    #[arg(long, value_name = "THREAD:N[:MS]", hide = true)]
    inject_panic: Option<InjectedPanic>,
}

impl SessionArgs {
    /// An option that names a file for one session.
    fn file_option(&self) -> Option<&'static str> {
        let options = [
            ("--trace", &self.trace),
            ("--sanitize-file", &self.sanitize_file),
            ("--record", &self.record),
        ];
        let given = options.into_iter().find(|(_, file)| file.is_some());
        given.map(|(name, _)| name)
    }
}

/// Which programs are traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Supervised {
    /// The command and all that it starts. LeakSanitizer is switched off, which traces the program itself.
    Always,
    /// Those that have no portal otherwise: static ones, those with privileges of their own, those that
    /// have lost LD_PRELOAD or make their system calls themselves.
    Auto,
    /// None.
    Never,
}

/// What a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sanitize {
    /// Print findings.
    Say,
    /// Print findings, and end with code 1 if there is one.
    Error,
    /// Tell the ThreadSanitizer of programs what devices do: it prints, and ends them with its code.
    Thread,
}

/// What happens when a page is not in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Faults {
    /// A page fault, as on hardware.
    Strict,
    /// The page is made present, as when a processor accesses it.
    Touch,
}

/// What a session must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Requirement {
    /// Through a mapped portal; write(2) is refused, as before kernel 6.10.
    Portal,
    /// By write(2); to map takes CAP_SYS_RAWIO, as from kernel 6.10 on.
    Write,
    /// Either way, and descriptors must have been submitted and completed.
    Work,
}

fn kernel(text: &str) -> Result<Personality, String> {
    text.parse().map_err(|error| format!("{error}"))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    start(&args.machine, args.command.clone())
}

pub(crate) fn shell(args: &ShellArgs) -> anyhow::Result<ExitCode> {
    if args.machine.chaos.as_ref().is_some_and(Seeds::are_many) {
        return Err(Usage::error(
            "a shell is one session, and has one seed",
            "dray run --chaos 1..100 -- COMMAND tries many",
        ));
    }
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    start(&args.machine, vec![shell])
}

/// The session that the arguments ask for.
fn session(
    machine: &SessionArgs,
    command: Vec<OsString>,
    profile: Option<Profile>,
    chaos: Option<Chaos>,
) -> anyhow::Result<Session> {
    let needs_work = machine.require == Some(Requirement::Work);
    Ok(Session {
        personality: machine.personality,
        profile,
        iax: machine.iax,
        portal: dray_preload::library(),
        presence: match machine.faults {
            Faults::Strict => Presence::Strict,
            Faults::Touch => Presence::Touch,
        },
        require: match machine.require {
            Some(Requirement::Portal) => Some(Require::Portal),
            Some(Requirement::Write) => Some(Require::Write),
            Some(Requirement::Work) | None => None,
        },
        redirect: machine.redirect || !has_namespaces(machine.supervise)?,
        supervise: match machine.supervise {
            Supervised::Always => Supervise::Always,
            Supervised::Auto => Supervise::Auto,
            Supervised::Never => Supervise::Never,
        },
        recording: Recording {
            stats: machine.stats || needs_work,
            trace: machine.trace.clone(),
            sanitize: device_side(machine)?,
            requests: requests(machine, &command)?,
        },
        thread_sanitizer: machine.sanitize == Some(Sanitize::Thread),
        chaos,
        deviation: machine.deviation,
        injected_panic: machine.inject_panic,
        command,
    })
}

/// Where requests are recorded, if they are.
fn requests(machine: &SessionArgs, command: &[OsString]) -> anyhow::Result<Option<RequestFile>> {
    let Some(path) = machine.record.clone() else {
        return Ok(None);
    };
    // A recording that is there stays if the program does not start, which says why.
    if !command.first().is_some_and(|name| starts(name)) {
        return Ok(None);
    }
    Ok(Some(RequestFile {
        path,
        limit_bytes: recording::limit(&machine.record_limit)?,
        command: recording::command(command),
    }))
}

/// What `--sanitize` looks for on the device's side; nothing where ThreadSanitizer does.
fn device_side(machine: &SessionArgs) -> anyhow::Result<Option<dray_run::Sanitize>> {
    match machine.sanitize {
        Some(Sanitize::Say | Sanitize::Error) => {}
        Some(Sanitize::Thread)
            if machine.suppressions.is_some() || machine.sanitize_file.is_some() =>
        {
            return Err(Usage::error(
                "--sanitize=thread has the program's ThreadSanitizer report, which has a log and suppressions of its own",
                "TSAN_OPTIONS=log_path=FILE:suppressions=FILE dray run --sanitize=thread -- COMMAND",
            ));
        }
        Some(Sanitize::Thread) if machine.supervise == Supervised::Always => {
            return Err(Usage::error(
                "--sanitize=thread works within programs, which --supervise always traces instead",
                "dray run --sanitize=thread -- COMMAND",
            ));
        }
        Some(Sanitize::Thread) | None => return Ok(None),
    }
    let suppressions = match &machine.suppressions {
        Some(path) => findings::suppressions(path)?,
        None => Suppressions::default(),
    };
    Ok(Some(dray_run::Sanitize { suppressions }))
}

fn start(machine: &SessionArgs, command: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let chaos = match &machine.chaos {
        Some(seeds) if seeds.are_many() => {
            return chaos::try_all(seeds, command.len(), machine.file_option());
        }
        seeds => seeds.as_ref().map(Seeds::first),
    };
    let profile = client::profile(
        machine.profile.as_deref(),
        machine.client,
        machine.queue_name.as_deref(),
        machine.personality,
    )?;
    for name in profile.iter().flat_map(Profile::iaa) {
        eprintln!(
            "note: {name} is an IAA (analytics accelerator): it is shown, and stays disabled"
        );
    }
    if let Some(profile) = &profile {
        for note in dray_run::notes(profile, machine.personality)? {
            eprintln!("note: {note}");
        }
    }
    // Before anything runs: a file that cannot be written ends it.
    let findings_file = match &machine.sanitize_file {
        Some(path) => Some((findings::create(path)?, path.as_path())),
        None => None,
    };
    let session = session(machine, command, profile, chaos)?;
    let mut ended = dray_run::run(&session)?;
    if let Some(stats) = ended.stats.as_ref().filter(|_| machine.stats) {
        eprintln!("\n{}", stats.to_string().trim_end());
    }
    if let (Some(closed), Some(path)) = (&ended.requests, &machine.record) {
        eprintln!("dray run: {}", recording::report(path, closed));
    }
    if let Some(traced) = &ended.traced {
        if traced.dropped > 0 {
            eprintln!(
                "warning: {} of {} descriptors are not in {}: they came faster than it could be written",
                traced.dropped,
                traced.dropped + traced.written,
                traced.path.display()
            );
        }
        if traced.failure.is_some() && ended.ending == Ending::Exited(0) {
            ended.ending = Ending::Exited(1);
        }
    }
    let failed = matches!(ended.ending, Ending::Exited(code) if code != 0);
    let found = ended
        .findings
        .as_ref()
        .is_some_and(|findings| findings::say(findings, failed));
    if let (Some(findings), Some((file, path))) = (&ended.findings, findings_file) {
        findings::write(findings, file, path)?;
    }
    if found && machine.sanitize == Some(Sanitize::Error) && ended.ending == Ending::Exited(0) {
        ended.ending = Ending::Exited(1);
    }
    if asked_nothing(&ended, machine.require)
        && let Some(note) = session.command.first().and_then(|name| {
            let unsupervised = session.supervise != Supervise::Always;
            cpuid::note(name, unsupervised && dray_run::can_fault_cpuid())
        })
    {
        eprintln!("note: {note}");
    }
    let met = match machine.require {
        Some(Requirement::Portal) => has_portals(&ended),
        Some(Requirement::Work) => has_work(&ended, machine.stats),
        Some(Requirement::Write) | None => true,
    };
    if !met {
        // A command that failed by itself has the first word.
        if ended.ending == Ending::Exited(0) {
            ended.ending = Ending::Exited(1);
        }
    }
    ended.ending.pass_on()
}

/// Whether a session may have namespaces and a file system of its own; where it may not, a note says what is missing,
/// and what a session without them is not.
fn has_namespaces(supervised: Supervised) -> anyhow::Result<bool> {
    match dray_run::can_be_private() {
        Ok(()) => Ok(true),
        // What is asked for cannot be done without: the session says what is missing, as an error.
        Err(RunError::Forbidden { .. }) if supervised == Supervised::Always => Ok(true),
        Err(error @ RunError::Forbidden { .. }) => {
            eprintln!(
                "note: {error}; the session is as with --redirect: static and setuid programs find no device"
            );
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether no program has opened a work queue, as far as that was to be watched.
fn asked_nothing(ended: &Ended, required: Option<Requirement>) -> bool {
    let watched = ended.stats.is_some() || required == Some(Requirement::Portal);
    let worked = ended
        .stats
        .as_ref()
        .is_some_and(|stats| stats.submitted() > 0);
    watched && !worked && ended.portals == 0 && ended.unreached.is_empty()
}

/// Whether descriptors were submitted and completed; what was missing goes to stderr.
fn has_work(ended: &Ended, advised: bool) -> bool {
    let Some(stats) = &ended.stats else {
        return false;
    };
    match (stats.submitted(), stats.succeeded()) {
        (_, 1..) => return true,
        (0, _) => eprintln!("error: --require work: no descriptor was submitted"),
        (submitted, _) => eprintln!(
            "error: --require work: of {submitted} descriptors none completed with success"
        ),
    }
    // With --stats it stands above.
    for advice in stats.advice().iter().filter(|_| !advised) {
        let said = "no descriptor was submitted: ";
        eprintln!("hint: {}", advice.strip_prefix(said).unwrap_or(advice));
    }
    false
}

/// Whether the programs had the portals that were required; what was missing goes to stderr.
fn has_portals(ended: &Ended) -> bool {
    for program in &ended.unreached {
        eprintln!("error: --require portal: {program}");
    }
    if ended.portals == 0 {
        eprintln!("error: --require portal: no program has mapped a portal");
        eprintln!(
            "hint: --stats says what the work queues got; `dray doctor` what programs look for"
        );
    }
    ended.unreached.is_empty() && ended.portals > 0
}
