//! `dray tier` on programs of others. It needs root, or userfaultfd for users, and Linux 6.8.

use std::fs;
use std::io::{BufRead, Read};

use crate::common::{directory, dray};
use crate::tier_refused::refused;

/// A program that checks what it has written, and forks.
pub(crate) const PYTHON: &str = r#"
import faulthandler, hashlib, os, random, signal, sys
# If it stands still: says where, or ends without a word if it cannot.
faulthandler.dump_traceback_later(600, exit=True)
signal.alarm(660)
random.seed(1)
blocks = [bytearray(random.randbytes(65536)) for _ in range(600)]
sums = [hashlib.sha256(block).digest() for block in blocks]
for step in range(4000):
    index = int(random.paretovariate(1.0)) % len(blocks)
    assert hashlib.sha256(blocks[index]).digest() == sums[index], "lost"
    blocks[index][random.randrange(65536)] ^= 0x55
    sums[index] = hashlib.sha256(blocks[index]).digest()
    if step % 1000 == 500:
        child = os.fork()
        if child == 0:
            ok = all(hashlib.sha256(b).digest() == s for b, s in zip(blocks, sums))
            os._exit(0 if ok else 1)
        assert os.waitpid(child, 0)[1] == 0, "lost in a child"
assert all(hashlib.sha256(b).digest() == s for b, s in zip(blocks, sums)), "lost"
print("whole")
"#;

fn json(stderr: &[u8]) -> serde_json::Value {
    serde_json::from_slice(stderr).expect("statistics alone are on stderr")
}

fn sum(stats: &serde_json::Value, name: &str) -> u64 {
    let processes = stats["processes"].as_array().expect("a list");
    let values = processes.iter().map(|process| &process["values"][name]);
    values.map(|value| value.as_u64().expect("a number")).sum()
}

/// Statistics of the script, which `dray SESSION tier ARGUMENTS` runs.
fn script_by(session: &[&str], arguments: &str) -> serde_json::Value {
    let dir = directory();
    let script = dir.path().join("script.py");
    fs::write(&script, PYTHON).expect("a file");
    let tier = format!(
        "tier --back-end uffd --fast 16M --knob interval_ms=5 --stats-file=/dev/stderr {arguments} --"
    );
    let output = dray(dir.path(), "")
        .args(session)
        .args(tier.split_whitespace())
        .arg("/usr/bin/python3")
        .arg(&script)
        .assert()
        .success()
        .stdout("whole\n")
        .get_output()
        .clone();
    json(&output.stderr)
}

fn python(arguments: &str) -> serde_json::Value {
    let stats = script_by(&[], arguments);
    assert!(sum(&stats, "demoted_pages") > 0, "{stats:#}");
    stats
}

#[test]
fn python_keeps_its_memory_while_pages_move() {
    let stats = python("");
    assert_eq!(stats["policy"], "counts");
    let bytes = &stats["timer"][0]["bytes"];
    assert!(bytes["core"].as_u64() > Some(0), "{stats:#}");
    assert_eq!(bytes["device"], 0);
}

/// `checked` where the kernel reports references; an error where not.
#[test]
fn reuse_frames_selects_the_frames_that_are_reported() {
    let frames = |option: &str| python(option)["frames"].clone();
    assert_eq!(frames(""), "new frames");
    assert_eq!(frames("--reuse-frames"), "reused frames");
    if dray_tier::sys::references::can_be_checked() {
        assert_eq!(frames("--reuse-frames=checked"), "checked frames");
    } else {
        let dir = directory();
        dray(
            dir.path(),
            "tier --back-end uffd --reuse-frames=checked -- true",
        )
        .assert()
        .code(2);
    }
}

#[test]
fn python_keeps_its_memory_in_order_shared_read() {
    python("--order shared-read --policy counts --tracking hints");
}

#[test]
fn the_virtual_device_copies() {
    let stats = python("--mover virtual --policy memtis");
    let bytes = &stats["timer"][0]["bytes"];
    assert!(bytes["device"].as_u64() > Some(0), "{stats:#}");
}

/// Memory of the device's own threads never moves: they would wait for themselves. The policy moves all managed pages
/// in turn, again and again, except those that a child shares.
#[test]
fn pages_of_the_virtual_device_s_threads_do_not_move() {
    let every = "--mover virtual --policy rotate --knob interval_ms=1 --knob promote_rate_limit_MBps=100000";
    let stats = python(every);
    let bytes = &stats["timer"][0]["bytes"];
    assert!(bytes["device"].as_u64() > Some(0), "{stats:#}");
}

/// The work queues are those of `dray run`.
#[test]
fn a_work_queue_copies() {
    let dray = env!("CARGO_BIN_EXE_dray");
    let stats = script_by(&["run", "--profile", "1e1w-s", "--", dray], "--mover hw");
    let bytes = &stats["timer"][0]["bytes"];
    assert!(bytes["device"].as_u64() > Some(0), "{stats:#}");
}

/// Pages of a mapping of its own, which it serves by a userfaultfd of its own.
const SERVES_ITSELF: &str = r#"
import ctypes, faulthandler, mmap, os, signal, struct, sys, threading, time
# If it stands still: says where, or ends without a word if it cannot.
faulthandler.dump_traceback_later(600, exit=True)
signal.alarm(660)
# By the names that programs are linked with.
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
PAGES = 256
start = libc.mmap(None, PAGES * 4096, 3, 0x22, -1, 0)
# Read only, so that nothing else is next to it that is mapped alike.
guard = libc.mmap(None, 4096, 1, 0x22, -1, 0)
memory = [bytearray(os.urandom(65536)) for _ in range(600)]
sums = [hash(bytes(block)) for block in memory]
# Until its memory is tiered, and this mapping with it.
def managed():
    flags, inside = "", False
    for line in open("/proc/self/smaps"):
        if "-" in line.split()[0] and not line.split()[0].endswith(":"):
            first, last = (int(word, 16) for word in line.split()[0].split("-"))
            inside = first <= start < last
        elif inside and line.startswith("VmFlags"):
            flags = line
    return " um" in flags
for _ in range(100000):
    if managed():
        break
    time.sleep(0.005)
else:
    sys.exit("its memory is not managed")
uffd = libc.syscall(323, os.O_CLOEXEC)
assert uffd >= 0
def call(request, *words):
    argument = ctypes.create_string_buffer(struct.pack("<%dQ" % len(words), *words))
    if libc.ioctl(uffd, request, ctypes.addressof(argument)) != 0:
        sys.exit("ioctl %x: %s" % (request, os.strerror(ctypes.get_errno())))
call(0xC018AA3F, 0xAA, 0, 0)
call(0xC020AA00, start, PAGES * 4096, 1, 0)
page = ctypes.create_string_buffer(8192)
source = (ctypes.addressof(page) + 4095) & ~4095
ctypes.memset(source, 0x5A, 4096)
def serve():
    for _ in range(PAGES):
        message = os.read(uffd, 32)
        address = struct.unpack_from("<Q", message, 16)[0] & ~4095
        call(0xC028AA03, address, source, 4096, 0, 0)
server = threading.Thread(target=serve)
server.start()
for index in range(PAGES):
    assert libc.memcmp(start + index * 4096, source, 4096) == 0
server.join()
assert all(hash(bytes(block)) == known for block, known in zip(memory, sums)), "lost"
print("whole")
"#;

#[test]
fn a_program_with_its_own_userfaultfd_keeps_its_memory() {
    let dir = directory();
    let script = dir.path().join("script.py");
    fs::write(&script, SERVES_ITSELF).expect("a file");
    dray(
        dir.path(),
        "tier --back-end uffd --fast 16M --knob interval_ms=5 --",
    )
    .arg("/usr/bin/python3")
    .arg(&script)
    .assert()
    .success()
    .stdout("whole\n");
}

/// Pages that were out when the command was killed are put back by the program's process.
#[test]
fn a_program_goes_on_when_dray_is_killed() {
    let dir = directory();
    let script = dir.path().join("script.py");
    let text = format!("print('begins', flush=True)\n{PYTHON}");
    fs::write(&script, text).expect("a file");
    let mut tier = std::process::Command::new(env!("CARGO_BIN_EXE_dray"))
        .current_dir(dir.path())
        .args([
            "tier",
            "--back-end",
            "uffd",
            "--fast",
            "16M",
            "--knob",
            "interval_ms=2",
            "--",
        ])
        .args(["/usr/bin/python3".as_ref(), script.as_os_str()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut output = std::io::BufReader::new(tier.stdout.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("it begins");
    assert_eq!(line, "begins\n");
    // SIGKILL; the pipe ends with the program.
    tier.kill().expect("it runs");
    tier.wait().expect("it ends");
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, "whole\n");
}

/// What redis-server says of so many values of 64 KiB under a command, at the end of a BGSAVE, and on standard error.
fn redis(values: u32, command: &[&str]) -> (String, Vec<u8>) {
    let dir = directory();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/offload/redis.py");
    let mut python = assert_cmd::Command::new("/usr/bin/python3");
    python.arg(script).arg(dir.path());
    python.args([&values.to_string(), "65536"]).args(command);
    let output = python.assert().success().get_output().clone();
    (
        String::from_utf8(output.stdout).expect("text"),
        output.stderr,
    )
}

/// `dray tier` with pages that move all the time.
fn rotating(arguments: &str) -> Vec<String> {
    let tier = format!(
        "tier --back-end uffd {arguments} --policy rotate --knob promote_rate_limit_MBps=1000 --stats-file=/dev/stderr --"
    );
    let dray = env!("CARGO_BIN_EXE_dray");
    std::iter::once(dray)
        .chain(tier.split_whitespace())
        .map(str::to_owned)
        .collect()
}

fn redis_rotating(values: u32, session: &[&str], arguments: &str) -> (String, serde_json::Value) {
    let tier = rotating(arguments);
    let command: Vec<&str> = session
        .iter()
        .copied()
        .chain(tier.iter().map(String::as_str))
        .collect();
    let (said, stderr) = redis(values, &command);
    (said, json(&stderr))
}

#[test]
fn redis_keeps_its_data_and_saves_it_while_pages_move() {
    if dray_skip::lacks(&["redis-server"]) {
        return;
    }
    let (plain, _) = redis(600, &[]);
    assert!(plain.contains("bgsave_status:ok\ndump 0"), "{plain}");
    // Debian's redis uses jemalloc, whose mappings and threads differ from those of the C library.
    assert!(plain.contains("mem_allocator:jemalloc"), "{plain}");
    for order in ["strict", "shared-read"] {
        let arguments = format!("--fast 16M --order {order} --knob interval_ms=2");
        let (tiered, stats) = redis_rotating(600, &[], &arguments);
        assert_eq!(tiered, plain, "{order}");
        assert!(sum(&stats, "demoted_pages") > 0, "{order}: {stats:#}");
    }
}

/// Its memory is tiered from its first moments on, while it starts its threads.
#[test]
fn redis_starts_under_tier_eight_times() {
    if dray_skip::lacks(&["redis-server"]) {
        return;
    }
    let (plain, _) = redis(40, &[]);
    let mut demoted = 0;
    for start in 0..8 {
        let (tiered, stats) = redis_rotating(40, &[], "--fast 1M --knob interval_ms=1");
        assert_eq!(tiered, plain, "start {start}");
        demoted += sum(&stats, "demoted_pages");
    }
    assert!(demoted > 0);
}

/// The work queues are those of `dray run`, and the program is one of others.
#[test]
fn redis_keeps_its_data_while_a_work_queue_copies() {
    if dray_skip::lacks(&["redis-server"]) {
        return;
    }
    let (plain, _) = redis(200, &[]);
    let run = [
        env!("CARGO_BIN_EXE_dray"),
        "run",
        "--profile",
        "1e1w-s",
        "--",
    ];
    let arguments = "--fast 8M --mover hw --knob interval_ms=5";
    let (tiered, stats) = redis_rotating(200, &run, arguments);
    assert_eq!(tiered, plain);
    assert!(sum(&stats, "demoted_pages") > 0, "{stats:#}");
    let bytes = &stats["timer"][0]["bytes"];
    assert!(bytes["device"].as_u64() > Some(0), "{stats:#}");
}

#[test]
fn sqlite_keeps_its_table_while_pages_move() {
    if dray_skip::lacks(&["sqlite3"]) {
        return;
    }
    let dir = directory();
    let sql = "create table t(k integer primary key, v text);\
        with recursive n(x) as (select 1 union all select x+1 from n where x<60000)\
        insert into t select x, hex(zeroblob(200)) || x from n;\
        update t set v = v || k where k % 7 = 0;\
        select count(*), sum(length(v)) from t; pragma integrity_check;";
    let run = |program: &mut assert_cmd::Command| {
        let output = program.args([":memory:", sql]).assert().success();
        String::from_utf8(output.get_output().stdout.clone()).expect("text")
    };
    let plain = run(&mut assert_cmd::Command::new("/usr/bin/sqlite3"));
    let tier = "tier --back-end uffd --fast 8M --knob interval_ms=2 -- /usr/bin/sqlite3";
    let tiered = run(&mut dray(dir.path(), tier));
    assert_eq!(plain, tiered);
    assert!(tiered.ends_with("ok\n"), "{tiered}");
}

#[test]
fn exit_codes_and_signals_of_programs_are_passed_on() {
    let dir = directory();
    let tier = "tier --back-end uffd --fast 64M -- /bin/sh -c";
    dray(dir.path(), tier)
        .arg("(exit 3); echo $?; exit 5")
        .assert()
        .code(5)
        .stdout("3\n");
    dray(
        dir.path(),
        "tier --back-end uffd --fast 64M -- no-such-program",
    )
    .assert()
    .code(127);
    dray(dir.path(), tier)
        .arg("kill -TERM $$")
        .assert()
        .interrupted();
}

#[test]
fn tier_bench_program_measures_with_and_without_dray() {
    let dir = directory();
    let arguments = "tier bench program --runs 2 --format json -- /bin/sh -c :";
    let text = crate::common::output(dir.path(), arguments);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let cost = &json["programs"][0];
    assert_eq!(cost["program"], "/bin/sh");
    assert_eq!(cost["plain_s"].as_array().map(Vec::len), Some(2));
    assert!(cost["percent"]["low"].is_number(), "{json}");
    // The time of the agent and the command is part of that with dray.
    let seconds = |name: &str| cost[name][0].as_f64().expect("a number");
    assert!(
        seconds("own_s") > 0.0 && seconds("own_s") <= seconds("tiered_s"),
        "{json}"
    );
    refused("tier bench gups -- /bin/true", "nothing to measure");
    refused("tier bench fits small", "each runs alone");
    dray(dir.path(), "tier bench program --runs 2 -- /bin/false")
        .assert()
        .code(1);
}

#[test]
fn tier_bench_gups_loses_no_update() {
    let dir = directory();
    let arguments = "tier bench gups --fast 4M --time 0.2 --knob interval_ms=5 --format json";
    let text = crate::common::output(dir.path(), arguments);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let runs = json["workloads"].as_array().expect("a list");
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| run["lost"] == 0));
}
