//! Where CI runs: without a flag, `dray run` brings a program to its first descriptor in each environment, or says in a
//! line why not.
//!
//! The environments are made by root in namespaces of mounts, control groups and filters of their own, and go with the
//! processes in them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Seconds until which a program must have its first descriptor.
const LIMIT: &str = "10";

/// A directory that every user and environment can reach, with `dray`, a program that copies by a DSA, and one that
/// forbids system calls.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        // Not below /tmp, which environments replace.
        let directory = tempfile::Builder::new()
            .prefix("dray-environments-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in("/var/lib")
            .expect("root may write there");
        let place = Place(directory);
        fs::copy(env!("CARGO_BIN_EXE_dray"), place.path("dray")).expect("a copy");
        let root = env!("CARGO_MANIFEST_DIR");
        let sources = [
            (format!("{root}/../../examples/program.c"), "program", None),
            (
                format!("{root}/../../examples/program.c"),
                "static",
                Some("-static"),
            ),
            (
                format!("{root}/tests/it/run/deny.c"),
                "deny",
                Some("-static"),
            ),
        ];
        for (source, name, option) in sources {
            let mut cc = Command::new("cc");
            cc.args(["-O2", "-o"])
                .arg(place.path(name))
                .arg(source)
                .args(option);
            assert!(cc.status().expect("cc").success(), "{name}");
        }
        fs::write(place.path("empty"), "").expect("a file");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a shell line in which `RUN` is the command, and `DIR` the directory.
    fn run(&self, line: &str, program: &str) -> Output {
        let directory = self.0.path().display().to_string();
        let command = format!(
            "{directory}/dray run --profile 1e1w-d --require work -- {directory}/{program}"
        );
        let line = line.replace("RUN", &command).replace("DIR", &directory);
        let mut timed = Command::new("timeout");
        timed.args([LIMIT, "sh", "-c", &line]).current_dir("/");
        timed.output().expect("timeout(1)")
    }
}

/// The line in mounts of its own, after these.
fn mounted(mounts: &str, line: &str) -> String {
    format!("exec unshare -m --propagation private sh -c '{mounts}; {line}'")
}

const AS_NOBODY: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups";

/// Exit code of a line whose environment cannot be made.
const NOT_HERE: i32 = 77;

/// A control group of version 1 or 2 with 64 MiB; it is removed when the line ends.
const WITH_64_MIB: &str = "
    group=$(mktemp -d /sys/fs/cgroup/memory/dray-XXXXXX 2>/dev/null || mktemp -d /sys/fs/cgroup/dray-XXXXXX) || exit 77
    trap 'rmdir $group' EXIT
    echo 67108864 > $group/memory.limit_in_bytes 2>/dev/null || echo 67108864 > $group/memory.max || exit 77
    sh -c \"echo \\$\\$ > $group/cgroup.procs; exec RUN\"";

/// Environments: name, shell line, and how the session works there.
fn environments() -> Vec<(&'static str, String, &'static str)> {
    let own = "";
    let redirected = "the session is as with --redirect";
    // unshare, mount, setns, clone3 and umount2, as Docker's profile denies them without a capability.
    let denied = "DIR/deny 272 165 308 166 --";
    vec![
        ("root", "exec RUN".to_owned(), own),
        ("a user", format!("exec {AS_NOBODY} RUN"), own),
        (
            "a user without an entry in passwd",
            "exec setpriv --reuid 54321 --regid 54321 --clear-groups RUN".to_owned(),
            own,
        ),
        (
            "no namespaces of users, as Ubuntu 24.04 sets it",
            "exec unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; \
             exec setpriv --bounding-set=-all --inh-caps=-all RUN'"
                .to_owned(),
            redirected,
        ),
        (
            "no /dev/fuse",
            mounted("mount --bind DIR/empty /dev/fuse", "exec RUN"),
            redirected,
        ),
        (
            "the filter of a container",
            format!("exec {AS_NOBODY} {denied} RUN"),
            redirected,
        ),
        (
            "no ptrace",
            format!("exec {AS_NOBODY} DIR/deny 101 -- RUN"),
            own,
        ),
        (
            "a root that cannot be written",
            mounted("mount -o remount,bind,ro /", "exec RUN"),
            own,
        ),
        (
            "a root that cannot be written, in a container",
            mounted(
                "mount -o remount,bind,ro /",
                &format!("exec {AS_NOBODY} {denied} RUN"),
            ),
            redirected,
        ),
        (
            "a /dev/shm of 64 KiB",
            mounted("mount -t tmpfs -o size=64k none /dev/shm", "exec RUN"),
            own,
        ),
        (
            "no /proc/sys",
            mounted("mount -t tmpfs none /proc/sys", "exec RUN"),
            own,
        ),
        (
            "a /tmp without programs",
            mounted("mount -t tmpfs -o noexec none /tmp", "exec RUN"),
            own,
        ),
        (
            "a /tmp and /dev/shm without programs, in a container",
            mounted(
                "mount -t tmpfs -o noexec none /tmp; mount -t tmpfs -o noexec none /dev/shm",
                &format!("exec {AS_NOBODY} {denied} RUN"),
            ),
            redirected,
        ),
        (
            "a chroot",
            mounted(
                "for d in usr bin lib lib64 etc proc dev sys var tmp; do \
                 mkdir -p DIR/tree/$d; mount --rbind /$d DIR/tree/$d; done",
                // Its root is a directory, and no mount.
                "exec chroot DIR/tree RUN",
            ),
            own,
        ),
        ("64 MiB of memory", WITH_64_MIB.to_owned(), own),
        ("64 open files", "ulimit -n 64; exec RUN".to_owned(), own),
        (
            "3 GB of addresses",
            "ulimit -v 3000000; exec RUN".to_owned(),
            own,
        ),
    ]
}

#[test]
fn a_program_has_its_first_descriptor_in_every_environment() {
    if !rustix::process::geteuid().is_root() {
        dray_skip::skip("environments are made by root");
        return;
    }
    let place = Place::new();
    let environments = environments();
    let mut failed = Vec::new();
    for (name, line, note) in &environments {
        let output = place.run(line, "program");
        if output.status.code() == Some(NOT_HERE) {
            dray_skip::skip(&format!("{name} cannot be made here"));
            continue;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let copied = output.stdout == b"status 1, copied\n" && output.status.success();
        let noted = match note.is_empty() {
            true => said.is_empty(),
            false => said.contains(note) && said.lines().count() == 1,
        };
        println!(
            "{name}: {}",
            if copied && noted { "copied" } else { "FAILED" }
        );
        if !(copied && noted) {
            failed.push(format!("{name}: {output:?}"));
        }
    }
    let count = environments.len();
    println!("{} of {count}", count - failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// What cannot be redirected is named, and the run is red.
#[test]
fn a_static_program_without_namespaces_is_red_with_a_reason() {
    if !rustix::process::geteuid().is_root() {
        dray_skip::skip("environments are made by root");
        return;
    }
    let place = Place::new();
    let free = place.run("exec RUN", "static");
    assert!(free.status.success(), "{free:?}");
    let line = format!("exec {AS_NOBODY} DIR/deny 272 165 308 166 -- RUN");
    let output = place.run(&line, "static");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{output:?}");
    assert!(
        said.contains("static and setuid programs find no device")
            && said.contains("no descriptor was submitted"),
        "{said}"
    );
}

/// Go has no C library, and starts threads before it opens anything.
#[test]
fn a_go_program_has_its_first_descriptor() {
    if !rustix::process::geteuid().is_root() {
        dray_skip::skip("environments are made by root");
        return;
    }
    let place = Place::new();
    for name in ["copy.go", "movdir64b_amd64.s"] {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/environments/");
        fs::copy(format!("{source}{name}"), place.path(name)).expect("a copy");
    }
    for (name, mode) in [("go-static", "exe"), ("go-pie", "pie")] {
        let mut go = Command::new("go");
        go.args(["build", "-buildmode", mode, "-o", name])
            .current_dir(&place.0);
        go.envs([
            ("GO111MODULE", "off"),
            ("CGO_ENABLED", "0"),
            ("GOTOOLCHAIN", "local"),
        ]);
        go.env("GOCACHE", place.path("cache"))
            .env("GOPATH", place.path("go"));
        let Ok(built) = go.output() else {
            dray_skip::skip("Go is not installed");
            return;
        };
        let errors = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "{errors}");
        for line in ["exec RUN".to_owned(), format!("exec {AS_NOBODY} RUN")] {
            let output = place.run(&line, name);
            let copied = output.stdout == b"status 1, copied\n" && output.status.success();
            let said = String::from_utf8_lossy(&output.stderr);
            let noted = said.is_empty()
                || said.contains("it runs under the supervisor") && said.lines().count() == 1;
            assert!(copied && noted, "{name}, {line}: {output:?}");
        }
    }
}
