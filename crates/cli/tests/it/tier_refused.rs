//! Errors of `dray tier`, and its notes on programs that it cannot tier.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{directory, dray};

/// A command that finds DAMON in use by another process: copies of its files, locked, in private mounts.
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
fn an_error_says_that_damon_is_in_use() {
    if !Path::new(dray_tier::sys::damon::DIRECTORY).exists() {
        dray_skip::skip("this kernel has no DAMON");
        return;
    }
    let dir = directory();
    let asked = "tier --back-end uffd --fast 16M --tracking damon -- echo ran";
    let output = where_damon_is_in_use(dir.path(), asked)
        .assert()
        .code(1)
        .stdout("")
        .get_output()
        .clone();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let error = "error: accesses cannot be tracked with DAMON: DAMON is in use by another program\nhint: --tracking best";
    assert!(text.contains(error), "{text}");
    // By default it is not asked for.
    let dir = directory();
    where_damon_is_in_use(dir.path(), "tier --back-end uffd --fast 16M -- echo ran")
        .assert()
        .success()
        .stdout("ran\n");
}

pub(crate) fn refused(arguments: &str, message: &str) {
    let dir = directory();
    let output = dray(dir.path(), arguments).assert().code(2);
    let text = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(text.contains(message), "{arguments}: {text}");
}

#[test]
fn bad_tiers_and_knobs_are_refused_with_the_reason() {
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
        refused(&format!("tier --back-end uffd {arguments} {echo}"), message);
    }
    refused(
        "tier --back-end uffd --fast 1M --order shared-read -- /bin/echo",
        "--order shared-read sees no writes",
    );
    refused("tier --back-end uffd --fast 1M", "no program is named");
    for which in ["--pid 1", "--cgroup a"] {
        let uffd = format!("tier --back-end uffd --fast 1M {which}");
        refused(&uffd, "--pid and --cgroup are of --back-end kernel");
    }
    refused("tier set limit_chans=0", "out of range");
    refused("tier status --session 4194305", "no such session");
    refused("tier bench small --time 0", "more than 0");
    refused("tier bench small --fast 1M", "twice the fast tier");
    refused(
        "tier prepare --node 77 --dry-run",
        "there is no NUMA node 77",
    );
}

/// The kernel's migration is the default, and has nowhere to move pages to on one node.
#[test]
fn the_kernels_migration_is_refused_on_one_node_and_with_options_of_uffd() {
    for option in ["--mover cpu", "--order strict", "--reuse-frames"] {
        let name = option.split(' ').next().expect("a name");
        let message = format!("{name} is of --back-end uffd");
        refused(&format!("tier {option} -- echo ran"), &message);
    }
    let nodes = "tier --fast node:0 --slow node:77";
    refused(&format!("{nodes} --pid 1"), "there is no NUMA node 77");
    if Path::new("/sys/devices/system/node/node1").exists() {
        dray_skip::skip("this machine has several nodes");
        return;
    }
    for which in ["-- echo ran", "--pid 1", "--cgroup /"] {
        let dir = directory();
        let output = dray(dir.path(), &format!("tier {which}")).assert().code(2);
        let output = output.stdout("").get_output().clone();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            text.starts_with("error: this machine has one NUMA node"),
            "{text}"
        );
        assert!(text.contains("hint: --back-end uffd tiers one"), "{text}");
    }
}

/// Before the program starts: what is seen of it, and what it must not do.
#[test]
fn conditions_are_said_before_the_program_starts() {
    for (options, conditions) in [
        (
            "",
            [
                "accesses seen: writes",
                "a robust mutex",
                "kills the process dray-tier",
            ],
        ),
        ("--tracking hints", ["by hints", "whole intervals", "CRIU"]),
    ] {
        let dir = directory();
        let output = dray(
            dir.path(),
            &format!("tier --back-end uffd --fast 1G {options} -- echo ran"),
        )
        .assert()
        .success()
        .stdout("ran\n")
        .get_output()
        .clone();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        for condition in conditions {
            assert!(text.contains(condition), "{text}");
        }
    }
    let dir = directory();
    let quiet = dray(
        dir.path(),
        "tier --back-end uffd --fast 1G --stats-file=/dev/stderr -- true",
    )
    .assert()
    .success();
    assert!(quiet.get_output().stderr.starts_with(b"{"));
}

/// Nobody can take a session's directory first, and a program that becomes another user is as without dray.
#[test]
fn others_keep_nobody_from_tier() {
    let dir = directory();
    // As a shared temporary directory is.
    let all = fs::Permissions::from_mode(0o1777);
    fs::set_permissions(dir.path(), all).expect("our own");
    for name in ["dray-tier-0", "dray-tier.1.0"] {
        fs::write(dir.path().join(name), "").expect("a file");
    }
    let mut tier = dray(dir.path(), "tier --back-end uffd --fast 1G -- /bin/sh -c");
    tier.env("TMPDIR", dir.path());
    let library = "cat /proc/self/maps | grep -c dray_tier_preload";
    tier.arg(format!(
        "{library}; setpriv --reuid=65534 --clear-groups sh -c '{library}' 2>&1"
    ));
    let output = tier.assert().success().get_output().clone();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // SAFETY: it cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root becomes another user");
        return;
    }
    // Both load it, and the dynamic linker says nothing.
    let counts: Vec<u32> = text
        .lines()
        .map(|line| line.parse().expect("a count"))
        .collect();
    assert!(matches!(counts[..], [a, b] if a.min(b) > 0), "{text}");
    let left = fs::read_dir(dir.path()).expect("our own").count();
    assert_eq!(left, 2, "the session's directory is removed");
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
    let name = |path: &Path| format!("tier --back-end uffd --fast 1M -- {}", path.display());
    refused(&name(&program), "is statically linked");
    // A setuid program: the dynamic linker ignores LD_PRELOAD then.
    let program = dir.path().join("setuid");
    let bytes = fs::read("/bin/true").expect("a program");
    executable(&program, &bytes, 0o755);
    const DAEMON: u32 = 1;
    if std::os::unix::fs::chown(&program, Some(DAEMON), None).is_err() {
        dray_skip::skip("only root can make a program setuid to another user");
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
        // A user without access to the directories above can execute it nevertheless.
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
        dray_skip::skip("users may use userfaultfd here");
        return;
    }
    let as_user = "exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \"$@\"";
    let (code, text) = said_after(as_user, "tier --back-end uffd --fast 1M -- /bin/echo ran");
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
    let (code, text) = said_after(&line, "tier --back-end uffd --fast 1M -- /bin/echo ran");
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

/// A program without a dynamic linker that ends with its input.
fn waiting(dir: &Path) {
    let source = "#include <stdio.h>\nint main(void) { while (getchar() != EOF) ; return 0; }\n";
    fs::write(dir.join("waits.c"), source).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-static", "-o", "waits", "waits.c"]);
    let status = compiler.current_dir(dir).status().expect("cc starts");
    assert!(status.success());
}

#[test]
fn a_static_program_that_a_shell_starts_is_named() {
    let dir = directory();
    waiting(dir.path());
    let mut session = Command::new(env!("CARGO_BIN_EXE_dray"))
        .args([
            "tier",
            "--back-end",
            "uffd",
            "--fast",
            "64M",
            "--",
            "/bin/sh",
            "-c",
            "./waits; echo $?",
        ])
        .current_dir(dir.path())
        .env("TMPDIR", dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("dray starts");
    let note = "waits is statically linked: it is not tiered";
    loop {
        assert!(
            matches!(session.try_wait(), Ok(None)),
            "it waits for its input"
        );
        let mut status = dray(dir.path(), "tier status --once");
        let output = status
            .env("TMPDIR", dir.path())
            .output()
            .expect("dray starts");
        if String::from_utf8_lossy(&output.stdout).contains(note) {
            break;
        }
        std::thread::yield_now();
    }
    drop(session.stdin.take());
    let output = session.wait_with_output().expect("it ends");
    assert_eq!(output.stdout, b"0\n");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.matches(note).count(), 1, "{text}");
}
