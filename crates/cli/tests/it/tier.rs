//! `dray tier` on programs that we did not write. It needs root, or users' userfaultfd, and Linux 6.8.

use std::fs;
use std::io::{BufRead, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{directory, dray};

/// A program that checks what it has written, and forks.
const PYTHON: &str = r#"
import hashlib, os, random, sys
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
    let tier = format!("tier --fast 16M --knob interval_ms=5 --stats=json {arguments} --");
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
fn python_keeps_its_memory_and_its_children() {
    let stats = python("");
    assert_eq!(stats["policy"], "tpp");
    let bytes = &stats["timer"][0]["bytes"];
    assert!(bytes["core"].as_u64() > Some(0), "{stats:#}");
    assert_eq!(bytes["device"], 0);
}

#[test]
fn shared_read_keeps_them_too() {
    python("--order shared-read --policy lru");
}

#[test]
fn the_virtual_device_copies() {
    let stats = python("--mover virtual --policy memtis");
    let bytes = &stats["timer"][0]["bytes"];
    assert!(bytes["device"].as_u64() > Some(0), "{stats:#}");
}

/// Memory of the device's own threads never moves: they would wait for themselves. Here all managed pages are to move,
/// each in its turn and without end; those that a child shares cannot.
#[test]
fn the_virtual_device_does_not_wait_for_itself() {
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
import ctypes, mmap, os, struct, sys, threading, time
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
fn a_program_that_serves_its_own_faults_gets_its_memory_back() {
    let dir = directory();
    let script = dir.path().join("script.py");
    fs::write(&script, SERVES_ITSELF).expect("a file");
    dray(dir.path(), "tier --fast 16M --knob interval_ms=5 --")
        .arg("/usr/bin/python3")
        .arg(&script)
        .assert()
        .success()
        .stdout("whole\n");
}

/// What was out when the command was killed is put back by the program itself.
#[test]
fn a_program_goes_on_when_dray_is_killed() {
    let dir = directory();
    let script = dir.path().join("script.py");
    let text = format!("print('begins', flush=True)\n{PYTHON}");
    fs::write(&script, text).expect("a file");
    let mut tier = std::process::Command::new(env!("CARGO_BIN_EXE_dray"))
        .current_dir(dir.path())
        .args(["tier", "--fast", "16M", "--knob", "interval_ms=2", "--"])
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

/// What redis-server says of its data, at the end of a BGSAVE, and on standard error.
fn redis(tier: &str) -> (String, Vec<u8>) {
    let dir = directory();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/offload/redis.py");
    let mut command = assert_cmd::Command::new("/usr/bin/python3");
    command.arg(script).arg(dir.path()).args(["600", "65536"]);
    if !tier.is_empty() {
        command.arg(env!("CARGO_BIN_EXE_dray"));
        command.args(tier.split(' '));
    }
    let output = command.assert().success().get_output().clone();
    (
        String::from_utf8(output.stdout).expect("text"),
        output.stderr,
    )
}

#[test]
fn redis_keeps_its_data_and_saves_it_while_pages_move() {
    let (plain, _) = redis("");
    assert!(plain.contains("bgsave_status:ok\ndump 0"), "{plain}");
    for order in ["strict", "shared-read"] {
        let tier = format!(
            "tier --fast 16M --order {order} --policy rotate --knob interval_ms=2 \
             --knob promote_rate_limit_MBps=1000 --stats=json --"
        );
        let (tiered, stderr) = redis(&tier);
        assert_eq!(tiered, plain, "{order}");
        let stats = json(&stderr);
        assert!(sum(&stats, "demoted_pages") > 0, "{order}: {stats:#}");
    }
}

#[test]
fn sqlite_finds_its_table_whole() {
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
    let tier = "tier --fast 8M --knob interval_ms=2 -- /usr/bin/sqlite3";
    let tiered = run(&mut dray(dir.path(), tier));
    assert_eq!(plain, tiered);
    assert!(tiered.ends_with("ok\n"), "{tiered}");
}

#[test]
fn programs_end_as_they_do_by_themselves() {
    let dir = directory();
    let tier = "tier --fast 64M -- /bin/sh -c";
    dray(dir.path(), tier)
        .arg("(exit 3); echo $?; exit 5")
        .assert()
        .code(5)
        .stdout("3\n");
    dray(dir.path(), "tier --fast 64M -- no-such-program")
        .assert()
        .code(127);
    dray(dir.path(), tier)
        .arg("kill -TERM $$")
        .assert()
        .interrupted();
}

/// What somebody else monitors with DAMON: a stand-in of its files, locked, in mounts of this command's own.
fn where_damon_is_in_use(dir: &Path, arguments: &str) -> assert_cmd::Command {
    let files = dir.join("kdamonds");
    fs::create_dir(&files).expect("a directory");
    fs::write(files.join("nr_kdamonds"), "1\n").expect("a file");
    let mut command = assert_cmd::Command::new("unshare");
    command.current_dir(dir).args(["--mount", "sh", "-c"]);
    command.arg("mount --bind kdamonds $0 && exec flock kdamonds/nr_kdamonds \"$@\"");
    command.arg(dray_tier::sys::damon::DIRECTORY);
    command.arg(env!("CARGO_BIN_EXE_dray"));
    command.args(arguments.split(' '));
    command
}

#[test]
fn damon_that_is_in_use_is_said() {
    if !Path::new(dray_tier::sys::damon::DIRECTORY).exists() {
        eprintln!("skipped: this kernel has no DAMON");
        return;
    }
    let dir = directory();
    let asked = "tier --fast 16M --tracking damon -- echo ran";
    let output = where_damon_is_in_use(dir.path(), asked)
        .assert()
        .code(1)
        .stdout("")
        .get_output()
        .clone();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let error =
        "error: accesses cannot be tracked with DAMON: DAMON is in use\nhint: --tracking best";
    assert!(text.contains(error), "{text}");
    // The best that there is then is hints, and that is said.
    let dir = directory();
    let script = dir.path().join("script.py");
    fs::write(&script, PYTHON).expect("a file");
    let best = "tier --fast 16M --knob interval_ms=5 -- /usr/bin/python3 script.py";
    let output = where_damon_is_in_use(dir.path(), best)
        .assert()
        .success()
        .stdout("whole\n")
        .get_output()
        .clone();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = "DAMON is in use; instead writes by PAGEMAP_SCAN, reads by hint faults\n";
    assert!(text.contains(said), "{text}");
}

fn refused(arguments: &str, message: &str) {
    let dir = directory();
    let output = dray(dir.path(), arguments).assert().code(2);
    let text = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(text.contains(message), "{arguments}: {text}");
}

#[test]
fn what_cannot_be_is_named() {
    let echo = "-- /bin/echo";
    for (arguments, message) in [
        ("--fast 0", "a tier of 0 bytes holds nothing"),
        ("--fast 4096T", "larger than this machine's memory"),
        ("--fast node:77", "there is no NUMA node 77"),
        ("--fast 1X", "neither a size"),
        (
            "--fast node:0 --slow node:0",
            "both tiers are the same node",
        ),
        ("--fast 1M --knob x=1", "there is no knob `x`"),
        ("--fast 1M --knob limit_chans=9", "out of range: 1 to 8"),
        (
            "--fast 1M --knob dsa_copy_threshold=99999",
            "out of range: 1 to 13312",
        ),
        (
            "--fast 1M --knob use_concur_to_compact=1",
            "no meaning outside a kernel",
        ),
        (
            "--fast 1M --knob use_dsa_copy_pages=1",
            "cannot be set while dsa_state=0",
        ),
    ] {
        refused(&format!("tier {arguments} {echo}"), message);
    }
    refused("tier --fast 1M", "no program is named");
    refused("tier --fast 1M --pid 1", "both tiers must be nodes");
    let nodes = "tier --fast node:0 --slow node:77";
    refused(&format!("{nodes} --pid 1"), "there is no NUMA node 77");
    refused("tier set limit_chans=0", "out of range");
    refused("tier status --session 4194305", "no such session");
    refused("tier bench small --time 0", "more than 0");
    refused("tier bench small --fast 1M", "twice the fast tier");
    refused(
        "tier prepare --node 77 --dry-run",
        "there is no NUMA node 77",
    );
}

#[test]
fn static_and_privileged_programs_are_named() {
    let dir = directory();
    let program = dir.path().join("static");
    // An ELF file for x86-64 without an interpreter, as far as its headers go.
    let mut elf = vec![0u8; 120];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    elf[16..20].copy_from_slice(&[2, 0, 62, 0]);
    elf[32] = 64;
    elf[52..58].copy_from_slice(&[64, 0, 56, 0, 1, 0]);
    elf[64] = 1;
    executable(&program, &elf, 0o755);
    let name = |path: &Path| format!("tier --fast 1M -- {}", path.display());
    refused(&name(&program), "is statically linked");
    // A real program that becomes another user: the dynamic linker obeys no environment then.
    let program = dir.path().join("setuid");
    let bytes = fs::read("/bin/true").expect("a program");
    executable(&program, &bytes, 0o755);
    const DAEMON: u32 = 1;
    if std::os::unix::fs::chown(&program, Some(DAEMON), None).is_err() {
        eprintln!("skipped: only root can make a program setuid to another user");
        return;
    }
    // Changing the owner takes the bit away, so it comes last.
    executable(&program, &bytes, 0o4755);
    refused(&name(&program), "setuid has privileges of its own");
    refused(&name(&program), "setuid, setgid or file capabilities");
}

/// Runs `dray ARGUMENTS` after a shell line, in which `"$@"` is the command; its standard error.
fn said_after(line: &str, arguments: &str) -> (Option<i32>, String) {
    let dir = directory();
    let output = std::process::Command::new("sh")
        .current_dir(dir.path())
        // A user who may not go through the directories above it executes it all the same.
        .args([
            "-c",
            &format!("exec 9<\"$0\"; {line}"),
            env!("CARGO_BIN_EXE_dray"),
        ])
        .arg("/proc/self/fd/9")
        .args(arguments.split(' '))
        .output()
        .expect("sh starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), text)
}

#[test]
fn where_userfaultfd_is_forbidden_the_setting_is_named() {
    let setting = fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd");
    if setting.ok().as_deref() != Some("0\n") {
        eprintln!("skipped: users may use userfaultfd here");
        return;
    }
    let nobody = "exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \"$@\"";
    let (code, text) = said_after(nobody, "tier --fast 1M -- /bin/echo ran");
    assert_eq!(code, Some(1), "{text}");
    let error = "error: userfaultfd is forbidden here (Operation not permitted (os error 1)): \
                 vm.unprivileged_userfaultfd is 0, and this process has no CAP_SYS_PTRACE\n";
    assert!(text.contains(error), "{text}");
    for way in [
        "sysctl vm.unprivileged_userfaultfd=1",
        "chmod 0666 /dev/userfaultfd",
        "run as root",
    ] {
        assert!(text.contains(way), "{text}");
    }
}

/// As containers have it: neither the system call nor the device.
const FILTERED: &str = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7fff0000, 0x00050000 | 1
program = [(LOAD, 0, 0, 0), (EQUAL, 0, 1, 323), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
code = b"".join(struct.pack("HBBI", *one) for one in program)
buffer = ctypes.create_string_buffer(code)
filter = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))
prctl = lambda *words: libc.prctl(*[ctypes.c_ulong(word) for word in words])
assert prctl(38, 1, 0, 0, 0) == 0
argument = ctypes.create_string_buffer(filter)
assert prctl(22, 2, ctypes.addressof(argument), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn a_seccomp_filter_that_forbids_it_is_named() {
    let dir = directory();
    let script = dir.path().join("filtered.py");
    fs::write(&script, FILTERED).expect("a file");
    // Without /dev/userfaultfd, in mounts of its own.
    let line = format!(
        "[ ! -e /dev/userfaultfd ] || mount -t tmpfs none /dev || exit 77; exec /usr/bin/python3 {} \"$@\"",
        script.display()
    );
    let line = format!("exec unshare --mount sh -c '{line}' - \"$@\"");
    let (code, text) = said_after(&line, "tier --fast 1M -- /bin/echo ran");
    assert_eq!(code, Some(1), "{text}");
    let error = "): a seccomp filter is in force, as in containers\nhint: in a container: --device /dev/userfaultfd";
    assert!(text.contains(error), "{text}");
}

fn executable(path: &Path, bytes: &[u8], mode: u32) {
    let mut file = fs::File::create(path).expect("a file");
    file.write_all(bytes).expect("room");
    let permissions = fs::Permissions::from_mode(mode);
    file.set_permissions(permissions).expect("our own file");
}

#[test]
fn a_program_is_measured_with_and_without() {
    let dir = directory();
    let arguments = "tier bench program --runs 2 --format json -- /bin/sh -c :";
    let text = crate::common::output(dir.path(), arguments);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let cost = &json["programs"][0];
    assert_eq!(cost["program"], "/bin/sh");
    assert_eq!(cost["plain_s"].as_array().map(Vec::len), Some(2));
    assert!(cost["percent"]["low"].is_number(), "{json}");
    refused("tier bench gups -- /bin/true", "nothing to measure");
    refused("tier bench fits small", "each runs alone");
    dray(dir.path(), "tier bench program --runs 2 -- /bin/false")
        .assert()
        .code(1);
}

#[test]
fn the_benchmark_loses_nothing() {
    let dir = directory();
    let arguments = "tier bench gups --fast 4M --time 0.2 --knob interval_ms=5 --format json";
    let text = crate::common::output(dir.path(), arguments);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let runs = json["workloads"].as_array().expect("a list");
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| run["lost"] == 0));
}
