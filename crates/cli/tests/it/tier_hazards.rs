//! Programs that met something else under `dray tier` than without it, each beside itself without: what it prints and how
//! it ends is the same, or it is refused by name before it starts. Pages move as fast as they can meanwhile.
//!
//! `tests/tier-hazards --seconds N` goes on for N seconds, in rounds with other options.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::directory;

/// The sources, each a program of its own.
const SOURCES: [&str; 26] = [
    "advises",
    "alone",
    "barriers",
    "calls",
    "children",
    "dumps",
    "ends",
    "executes",
    "filter",
    "futexes",
    "guards",
    "huge",
    "joins",
    "limits",
    "locks",
    "own",
    "pins",
    "readers",
    "remaps",
    "rights",
    "robust",
    "rseqs",
    "signals",
    "still",
    "threads",
    "transfers",
];

/// How a program ends under `dray tier`, beside itself without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The same, and pages have moved.
    Equal,
    /// The same; it is too short, or its memory is locked: no page moves.
    EqualStill,
    /// It is not started, and this is said.
    Refused(&'static str),
}
use Expected::{Equal, EqualStill, Refused};

/// What a row shows, the program with its argument, how it ends.
const ROWS: [(&str, &str, Expected); 60] = [
    (
        "threads end and are joined, by pthreads and C11",
        "./joins",
        Equal,
    ),
    (
        "threads that nobody joins, or that are cancelled",
        "./threads",
        Equal,
    ),
    ("restartable sequences on moving pages", "./rseqs", Equal),
    ("signals on stacks that move", "./signals", Equal),
    ("locks of every kind", "./futexes", Equal),
    (
        "robust mutexes of a process that is killed",
        "./robust",
        Equal,
    ),
    ("children by fork(3)", "./children fork", Equal),
    (
        "children of a program with threads",
        "./children threads",
        Equal,
    ),
    ("children by _Fork(3)", "./children _Fork", Equal),
    ("children by clone(3)", "./children clone", Equal),
    (
        "children by clone(3) on the same memory",
        "./children clone-vm",
        Equal,
    ),
    (
        "children on the same memory for which their parent waits",
        "./children vfork",
        Equal,
    ),
    (
        "children by posix_spawn(3) and system(3)",
        "./children spawn",
        Equal,
    ),
    (
        "children by syscall(SYS_fork)",
        "./children SYS_fork",
        Equal,
    ),
    (
        "children by syscall(SYS_clone)",
        "./children SYS_clone",
        Equal,
    ),
    (
        "children by syscall(SYS_clone3)",
        "./children SYS_clone3",
        Equal,
    ),
    (
        "children by a system call instruction",
        "./children inline",
        Equal,
    ),
    ("children end in all ways", "./ends", Equal),
    ("the last thread ends the program", "./alone", Equal),
    ("a program executes itself", "./alone exec", Equal),
    (
        "arguments of execve(2) on moving pages",
        "./executes",
        Equal,
    ),
    ("execve(2) by another thread", "./executes thread", Equal),
    ("a core dump", "./dumps", Equal),
    (
        "process_vm_readv(2), process_vm_writev(2)",
        "./readers call",
        Equal,
    ),
    (
        "/proc/PID/mem of a program that has stopped",
        "./readers stopped",
        Equal,
    ),
    ("ptrace(2)", "./readers traced", Equal),
    ("system calls that read and write memory", "./calls", Equal),
    ("O_DIRECT", "./transfers direct", Equal),
    ("vmsplice(2)", "./transfers vmsplice", Equal),
    ("MSG_ZEROCOPY", "./transfers zerocopy", Equal),
    (
        "io_uring with registered buffers",
        "./transfers fixed",
        Equal,
    ),
    (
        "io_uring whose workers read memory",
        "./transfers workers",
        Equal,
    ),
    ("memory that AF_XDP pins", "./pins", Equal),
    (
        "madvise(2), mincore(2), mlock(2), mseal(2)",
        "./advises",
        Equal,
    ),
    ("mremap(2)", "./remaps", Equal),
    ("mprotect(2) and SIGSEGV", "./barriers", Equal),
    ("guard regions", "./guards", Equal),
    ("huge pages, transparent and of a pool", "./huge", Equal),
    ("a userfaultfd of the program's own", "./own", Equal),
    ("all memory is locked first", "./locks before", EqualStill),
    ("all memory is locked later", "./locks after", Equal),
    ("a limit of open files", "./limits files", Equal),
    ("a limit of data", "./limits data", Equal),
    ("a limit of address space", "./limits address", EqualStill),
    ("a daemon becomes another user", "./rights daemon", Equal),
    (
        "a daemon with threads becomes another user",
        "./rights threads",
        Equal,
    ),
    (
        "capabilities are kept over setuid, and dropped",
        "./rights capabilities",
        Equal,
    ),
    (
        "a program that may not be dumped",
        "./rights undumpable",
        Equal,
    ),
    (
        "a program with another root directory",
        "./rights root",
        Equal,
    ),
    (
        "a filter for all threads: calls fail",
        "./filter eperm",
        Equal,
    ),
    (
        "a filter for all threads: calls kill",
        "./filter kill",
        Equal,
    ),
    (
        "setpriv",
        "setpriv --reuid=65534 --regid=65534 --clear-groups /bin/echo hello",
        EqualStill,
    ),
    ("su", "su -s /bin/sh -c id nobody", EqualStill),
    (
        "unshare of a user namespace",
        "unshare --user /bin/echo hello",
        EqualStill,
    ),
    (
        "unshare of a process namespace",
        "unshare --pid --fork /bin/echo hello",
        EqualStill,
    ),
    (
        "a shell with a limit of address space",
        "sh limited.sh",
        EqualStill,
    ),
    (
        "a static program",
        "./still-static",
        Refused("still-static is statically linked"),
    ),
    (
        "a setuid program",
        "./still-setuid",
        Refused("still-setuid has privileges of its own"),
    ),
    (
        "a Go program",
        "go version",
        Refused("go is statically linked"),
    ),
    ("a program that is none", "./missing", EqualStill),
];

/// Pages are out for whole intervals, and what reads memory without waiting is named at the start: it does not run.
const HINTS: &str = "--tracking hints --overhead 20";
const READ_WITHOUT_WAITING: [&str; 3] = ["./dumps", "./readers stopped", "./readers traced"];

/// Options of rounds after the first.
const ROUNDS: [&str; 4] = ["", "--reuse-frames=checked", HINTS, "--order shared-read"];

/// Fails still, in about half of its runs: a mapping that the agent has registered in parts is moved in part. It runs by its
/// name alone (`tests/tier-hazards --only remaps`).
const NOT_MENDED: &str = "./remaps";

/// A program that hangs is ended after so long.
const MOST: &str = "150";

/// Compiles the programs; `false` without a compiler.
fn compiled(dir: &Path) -> bool {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/hazards");
    let compile = |name: &str, more: &[&str], output: &str| {
        let source = format!("{sources}/{name}.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-pthread", "-o", output, &source]);
        let status = compiler.args(more).current_dir(dir).status();
        status.map(|status| assert!(status.success(), "{name}.c"))
    };
    if compile("still", &["-static"], "still-static").is_err() {
        return false;
    }
    for name in SOURCES {
        compile(name, &[], name).expect("cc starts");
    }
    true
}

/// What programs need besides: a script, and a setuid program, if this user can make one.
fn prepared(dir: &Path) {
    use std::os::unix::fs::{PermissionsExt, chown};
    let script = "ulimit -v 1500000; echo hello; ls -d /; (echo child)\n";
    std::fs::write(dir.join("limited.sh"), script).expect("a file");
    let program = dir.join("still-setuid");
    std::fs::copy(dir.join("still"), &program).expect("a program");
    // Changing the owner takes the bit away, so it comes last.
    if chown(&program, Some(1), None).is_ok() {
        let setuid = std::fs::Permissions::from_mode(0o4755);
        std::fs::set_permissions(&program, setuid).expect("our own file");
    }
}

/// What a command printed, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    said: String,
    notes: String,
}

fn outcome(dir: &Path, words: &[&str]) -> Outcome {
    let output = Command::new("timeout")
        .args(["-k", "5", MOST])
        .args(words)
        .current_dir(dir)
        .output()
        .expect("timeout starts");
    Outcome {
        said: format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            output.status
        ),
        notes: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Pages that moved, by the statistics on standard error.
fn demoted(said: &str) -> u64 {
    let json = said.find("{\n").map_or("", |at| &said[at..]);
    let mut documents = serde_json::Deserializer::from_str(json).into_iter::<serde_json::Value>();
    let stats = documents.next().and_then(Result::ok).unwrap_or_default();
    let processes = stats["processes"].as_array().into_iter().flatten();
    let values = processes.map(|process| process["values"]["demoted_pages"].as_u64());
    values.map(|value| value.unwrap_or(0)).sum()
}

/// Whether a row ended as it is to; otherwise what happened.
fn judge(row: (&str, &str, Expected), plain: &Outcome, tiered: &Outcome) -> Result<(), String> {
    let (what, _, expected) = row;
    let met = match expected {
        Equal => plain.said == tiered.said && demoted(&tiered.notes) > 0,
        EqualStill => plain.said == tiered.said,
        Refused(reason) => {
            let unstarted = tiered.said == "exit status: 2" && plain.said != tiered.said;
            unstarted && tiered.notes.contains(reason)
        }
    };
    match met {
        true => Ok(()),
        false => Err(format!(
            "{what}: {expected:?}, {} pages demoted\nplain: {}\ntiered: {}\n{}",
            demoted(&tiered.notes),
            plain.said,
            tiered.said,
            tiered.notes
        )),
    }
}

/// Rows that this machine cannot run: their program is not installed, or cannot be made.
fn can_run(dir: &Path, row: (&str, &str, Expected)) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let (_, command, _) = row;
    if command.starts_with("go ") {
        return Command::new("go").arg("version").output().is_ok();
    }
    let setuid = || {
        let about = std::fs::metadata(dir.join("still-setuid")).expect("a program");
        about.permissions().mode() & 0o4000 != 0
    };
    !command.ends_with("-setuid") || setuid()
}

/// One round of the rows, on two threads, so that others use the cores too: what failed.
fn round(
    dir: &Path,
    rows: &[(&str, &str, Expected)],
    plain: &[Outcome],
    options: &str,
) -> Vec<String> {
    let tier = format!(
        "tier --back-end uffd --fast 4M --policy rotate --knob interval_ms=1 --knob promote_rate_limit_MBps=8000 \
         --stats-file=/dev/stderr {options} --"
    );
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let works = || {
        while let Some((row, plain)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            rows.get(index).zip(plain.get(index))
        } {
            if options == HINTS && READ_WITHOUT_WAITING.contains(&row.1) {
                continue;
            }
            let mut words = vec![env!("CARGO_BIN_EXE_dray")];
            words.extend(tier.split_whitespace());
            words.extend(row.1.split(' '));
            if let Err(failure) = judge(*row, plain, &outcome(dir, &words)) {
                failures.lock().expect("no panic").push(failure);
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(works);
        works();
    });
    failures.into_inner().expect("no panic")
}

fn number(variable: &str) -> u64 {
    let text = std::env::var(variable).unwrap_or_default();
    text.parse().unwrap_or(0)
}

#[test]
fn programs_meet_the_same_under_tier_as_without() {
    let dir = directory();
    if !compiled(dir.path()) {
        dray_skip::skip("there is no cc");
        return;
    }
    prepared(dir.path());
    let only = std::env::var("DRAY_HAZARDS_ONLY").unwrap_or_default();
    let chosen = ROWS
        .iter()
        .filter(|row| row.1.contains(&only) && can_run(dir.path(), **row))
        .filter(|row| row.1 != NOT_MENDED || !only.is_empty());
    let rows: Vec<_> = chosen.copied().collect();
    assert!(!rows.is_empty(), "no program has {only:?} in its command");
    let alone =
        |row: &(&str, &str, Expected)| outcome(dir.path(), &row.1.split(' ').collect::<Vec<_>>());
    let plain: Vec<Outcome> = rows.iter().map(alone).collect();
    let end = Instant::now() + Duration::from_secs(number("DRAY_HAZARDS_SECONDS"));
    let (mut rounds, mut failures) = (0, Vec::new());
    while rounds == 0 || Instant::now() < end {
        let options = ROUNDS[rounds % ROUNDS.len()];
        let failed = round(dir.path(), &rows, &plain, options);
        failures.extend(
            failed
                .iter()
                .map(|text| format!("round {rounds} {options}: {text}")),
        );
        rounds += 1;
    }
    let refused = rows
        .iter()
        .filter(|row| matches!(row.2, Refused(_)))
        .count();
    eprintln!(
        "{} programs, {rounds} rounds: {} meet the same, {refused} are refused by name, {} otherwise",
        rows.len(),
        rows.len() - refused,
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// By the kernel's migration every row is without agent; on one node none begins.
#[test]
fn the_kernels_migration_begins_no_program_on_one_node() {
    if Path::new("/sys/devices/system/node/node1").exists() {
        dray_skip::skip("this machine has several nodes");
        return;
    }
    let dir = directory();
    let words = [env!("CARGO_BIN_EXE_dray"), "tier", "--", "echo", "ran"];
    let refused = outcome(dir.path(), &words);
    assert_eq!(refused.said, "exit status: 2");
    assert!(refused.notes.contains("one NUMA node"), "{}", refused.notes);
}
