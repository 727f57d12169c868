//! `dray run --redirect`: sessions without namespaces and FUSE, as in a container.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use crate::session::{Ended, Session, dpdk_test, program};

const CONTAINED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/contained.py");
const PORTAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/portal.py");
const SUBMIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/submit.py");

/// Runs `dray run` with these arguments where namespaces and mounts are refused.
fn contained(session: &Session, arguments: &[&str]) -> Ended {
    let mut command = Command::new("python3");
    command.arg(CONTAINED).arg(program()).arg("run");
    command.args(arguments).current_dir(session.path());
    command.env("XDG_RUNTIME_DIR", session.path());
    let output = command.output().expect("the system lets a test do this");
    output.into()
}

#[track_caller]
fn shell(options: &[&str], script: &str) -> Ended {
    let session = Session::new();
    let mut arguments = vec!["--redirect"];
    arguments.extend(options);
    arguments.extend(["--", "sh", "-c", script]);
    let output = contained(&session, &arguments);
    assert_eq!(directories(&session), 0, "{output:?}");
    output
}

/// Directories of sessions that are there.
fn directories(session: &Session) -> usize {
    let entries = fs::read_dir(session.path()).expect("the system lets a test do this");
    let names = entries.map(|entry| {
        let entry = entry.expect("the system lets a test do this");
        entry.file_name().to_string_lossy().into_owned()
    });
    names.filter(|name| name.starts_with("dray-")).count()
}

#[test]
fn where_namespaces_are_forbidden_the_session_redirects_and_says_so() {
    let session = Session::new();
    let output = contained(&session, &["--profile", "1e1w-s", "--", "ls", "/dev/dsa"]);
    assert_eq!(
        (output.code, output.out.as_str()),
        (Some(0), "wq0.0\n"),
        "{output:?}"
    );
    for words in ["private namespaces of mounts and processes", "--redirect"] {
        assert!(output.err.contains(words), "{output:?}");
    }
    // What is asked for and cannot be done so is an error.
    let output = contained(&session, &["--supervise", "always", "--", "true"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.err.contains("--redirect"), "{output:?}");
}

#[test]
fn accel_config_configures_enables_saves_and_disables() {
    if dray_skip::lacks(&["accel-config"]) {
        return;
    }
    let life = "
        set -e
        accel-config config-engine dsa0/engine0.0 --group-id=0
        accel-config config-wq dsa0/wq0.0 --group-id=0 --mode=dedicated --wq-size=16 \
            --type=user --name=app --priority=10
        accel-config enable-device dsa0
        accel-config enable-wq dsa0/wq0.0
        test -e /dev/dsa/wq0.0
        cat /sys/bus/dsa/devices/dsa0/state /sys/bus/dsa/devices/wq0.0/state
        accel-config save-config -s saved
        accel-config disable-wq dsa0/wq0.0; accel-config disable-device dsa0
        test ! -e /dev/dsa/wq0.0
        sed /ats_disable/d saved >loaded
        accel-config load-config -e -c loaded
        accel-config save-config -s again; cmp saved again
        cat /sys/bus/dsa/devices/wq0.0/state";
    let output = shell(&["--personality", "6.4"], life);
    assert_eq!(output.code, Some(0), "{output:?}");
    let states = output.out.lines().filter(|line| *line == "enabled");
    assert_eq!(states.count(), 3, "{output:?}");
    let output = shell(
        &["--personality", "5.18"],
        "accel-config enable-device dsa0; cat /sys/bus/dsa/devices/dsa0/cmd_status",
    );
    assert!(output.out.contains("Error[0x800d0000]"), "{output:?}");
    assert_eq!(output.out.lines().last(), Some("0x800d0000"), "{output:?}");
}

#[test]
fn files_refuse_what_sysfs_refuses() {
    let script = "objects=/sys/bus/dsa/devices drivers=/sys/bus/dsa/drivers
        put() { echo $1 | tee $2 >/dev/null && echo taken; }
        put 1 $objects/dsa0/version
        put 9 $objects/wq0.0/size; cat $objects/wq0.0/size
        put 500 $objects/wq0.0/size
        cat $drivers/idxd/bind
        put dsa7 $drivers/idxd/bind
        cat $objects/wq0.0/cdev_minor
        touch $objects/dsa0/new
        mkdir $objects/dsa0/new
        rm $objects/wq0.0/size";
    let output = shell(&["--personality", "6.8"], script);
    assert_eq!(output.out, "taken\n9\n", "{output:?}");
    let lines = output.err.lines();
    let said: Vec<&str> = lines.filter_map(|line| line.rsplit(": ").next()).collect();
    assert_eq!(
        said,
        [
            "Permission denied",
            "Invalid argument",
            "Permission denied",
            "No such device",
            "No such device or address",
            "Permission denied",
            "Operation not permitted",
            "Operation not permitted",
        ],
        "{output:?}"
    );
}

/// By each way that there is: shells with and without streams, links, relative paths, descriptors
/// that were opened before.
#[test]
fn attributes_are_read_and_written_by_every_kind_of_path() {
    let script = r#"
        wq=/sys/bus/dsa/devices/wq0.0
        echo 1 >$wq/size; cat $wq/size
        bash -c "echo 2 >$wq/size"; cat $wq/size
        bash -c "echo 999 >$wq/size" 2>&1 | grep -o 'Invalid argument'
        /bin/echo 3 >$wq/size; cat $wq/size
        cd $wq; pwd; pwd -P; echo 4 >size; cat size ../wq0.0/size
        cd ..; echo 5 >wq0.0/size; cat wq0.0/size ../../../bus/dsa/devices/wq0.0/size; cd /
        exec 9>$wq/size; echo 6 >&9; echo 7 >&9; exec 9>&-; cat /usr/..//sys/./bus/dsa/devices/wq0.0/size
        printf 8 | tee $wq/size; cat $wq/size
        printf 9 | dd of=$wq/size status=none; cat $wq/size
        python3 -c "
import ctypes, glob, os, pathlib
size = '$wq/size'
pathlib.Path(size).write_text('10')
with open(size, 'r+') as file:
    file.write('11'); file.flush()
    file.seek(0); print(file.read().strip())
try:
    pathlib.Path(size).write_text('1000')
except OSError as error:
    print(error.strerror)
print(os.path.realpath('$wq'), os.readlink('$wq'), len(glob.glob('/sys/bus/dsa/devices/wq0.*')))
libc = ctypes.CDLL(None)
found = (ctypes.c_size_t * 9)()
print(libc.glob(b'/sys/bus/d?a/devices/group*', 0, None, found), found[0])
print(os.listdir('/sys/bus/dsa'), 'dsa' in os.listdir('/sys/bus'), 'pci' in os.listdir('/sys/bus'))
directory = os.open('$wq', os.O_PATH)
with open('size', 'w', opener=lambda name, flags: os.open(name, flags, dir_fd=directory)) as file:
    file.write('12')
print(open(size).read().strip(), os.access(size, os.W_OK), os.stat(size).st_mode & 0o777)
os.chdir('/sys/bus/dsa/drivers'); print(os.getcwd())
"
        find /sys/bus/dsa/devices/ -name 'wq0.*' | wc -l
        find -L /sys/bus/dsa/devices/wq0.0/ -maxdepth 1 -name size
        ls /sys/bus/pci/devices/0000:6a:01.0 | grep -c vendor
        echo /sys/bus/dsa/devices/engine0.[01]
    "#;
    let output = shell(&["--personality", "6.8"], script);
    let device = "/sys/devices/pci0000:6a/0000:6a:01.0/dsa0/wq0.0";
    let expected = format!(
        "1\n2\nInvalid argument\n3\n/sys/bus/dsa/devices/wq0.0\n{device}\n4\n4\n5\n5\n7\n88\n9\n\
         11\nInvalid argument\n{device} ../../../devices/pci0000:6a/0000:6a:01.0/dsa0/wq0.0 8\n0 4\n\
         ['drivers', 'devices'] True True\n12 True 420\n/sys/bus/dsa/drivers\n8\n\
         /sys/bus/dsa/devices/wq0.0/size\n2\n\
         /sys/bus/dsa/devices/engine0.0 /sys/bus/dsa/devices/engine0.1\n"
    );
    let expected = match output.out.contains("['devices', 'drivers']") {
        true => expected.replace("['drivers', 'devices']", "['devices', 'drivers']"),
        false => expected,
    };
    assert_eq!(output.out, expected, "{output:?}");
}

#[test]
fn descriptors_are_submitted_by_portal() {
    for (profile, instruction) in [("1e1w-d", "movdir64b"), ("4e1w-s", "enqcmd")] {
        let session = Session::new();
        let output = contained(
            &session,
            &[
                "--redirect",
                "--profile",
                profile,
                "--",
                "python3",
                PORTAL,
                "/dev/dsa/wq0.0",
                instruction,
            ],
        );
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(
            output.out,
            "two pages Invalid argument\ncopy 1 True\nthreads 200 {(1, True)}\n\
             untouched 3\nnothing there 3\nchild SIGSEGV\ncopy 1 True\n",
            "{output:?}"
        );
    }
}

#[test]
fn descriptors_are_submitted_by_write() {
    let session = Session::new();
    let options = ["--redirect", "--personality", "7.2", "--profile", "1e1w-d"];
    let arguments = [&options[..], &["--", "python3", SUBMIT, "/dev/dsa/wq0.0"]].concat();
    let output = contained(&session, &arguments);
    assert_eq!(
        output.out,
        "noop 1\ncopy 1\nsame True\nunmapped 3\ntwo 128\nhalf 0\nmisaligned EINVAL\nbatch EINVAL\n\
         read EINVAL\nchild EPERM\nagain EBUSY\nafter 1\n",
        "{output:?}"
    );
}

/// The kernel's path of the files differs from the variable.
#[test]
fn the_session_directory_may_be_a_link() {
    let session = Session::new();
    fs::create_dir(session.path().join("real")).expect("the system lets a test do this");
    std::os::unix::fs::symlink("real", session.path().join("link"))
        .expect("the system lets a test do this");
    for name in ["link", "real//.", "link/../real"] {
        let mut command = Command::new(program());
        let script = "echo 3 >/sys/bus/dsa/devices/wq0.0/size; cat /sys/bus/dsa/devices/wq0.0/size
            echo 999 >/sys/bus/dsa/devices/wq0.0/size || echo refused";
        command.args(["run", "--redirect", "--", "sh", "-c", script]);
        command.env("XDG_RUNTIME_DIR", session.path().join(name));
        let output = command.output().expect("the system lets a test do this");
        let output = Ended::from(output);
        assert_eq!(output.out, "3\nrefused\n", "{name}: {output:?}");
    }
}

#[test]
fn listings_have_virtual_and_real_entries() {
    let script = "ls /dev | grep -x -e dsa -e null; ls /sys/bus | grep -x dsa
        find /dev/ -maxdepth 2 -name 'wq0.*'; cd /dev; pwd -P; echo gone >null; ls dsa
        ls /sys/bus/pci | grep -x devices";
    let output = shell(&["--profile", "1e1w-d"], script);
    assert_eq!(
        output.out, "dsa\nnull\ndsa\n/dev/dsa/wq0.0\n/dev\nwq0.0\ndevices\n",
        "{output:?}"
    );
}

/// By programs that do not load the library.
#[test]
fn files_that_programs_change_or_remove_are_restored() {
    let script = "objects=/sys/bus/dsa/devices
        files=$(echo $XDG_RUNTIME_DIR/dray-redirect-*/root)/sys/devices/pci0000:6a/0000:6a:01.0/dsa0
        rm -r $files/wq0.1 $files/wq0.2/size
        echo app1 >$objects/wq0.3/name
        cat $objects/wq0.1/size $objects/wq0.2/size
        rm $files/state; mkdir $files/state; cat $files/wq0.0/state
        echo dsa0 >/sys/bus/dsa/drivers/idxd/unbind
        cat $files/wq0.0/state; ls /dev/dsa";
    let output = shell(&["--profile", "1e1w-d", "--personality", "6.8"], script);
    assert_eq!(output.out, "0\n0\nenabled\ndisabled\n", "{output:?}");
    let note = "the session's files are not up to date";
    assert!(output.err.contains(note), "{output:?}");
}

#[test]
fn dmadev_tests_of_dpdk_pass() {
    if dray_skip::lacks(&["dpdk-test"]) {
        return;
    }
    dpdk_test(shell);
}

#[test]
fn dray_config_configures_the_redirected_device() {
    let script = format!(
        "{dray} config setup -d dsa0 -w 1 -m d -e 4 -s 16 -b 64 >/dev/null && ls /dev/dsa",
        dray = program().display()
    );
    let output = shell(&["--personality", "6.8"], &script);
    assert_eq!(output.out, "wq0.0\n", "{output:?}");
}

#[test]
fn a_session_runs_inside_another() {
    let script = format!(
        "ls /dev/dsa; {dray} run --redirect --profile 2e2w-d -- sh -c \
        'ls /dev/dsa; echo $LD_PRELOAD | tr : \"\\n\" | wc -l'; ls /dev/dsa",
        dray = program().display()
    );
    let output = shell(&["--profile", "1e1w-d"], &script);
    assert_eq!(output.out, "wq0.0\nwq0.0\nwq0.1\n1\nwq0.0\n", "{output:?}");
}

#[test]
fn a_node_is_closed_with_its_last_descriptor() {
    let script = "
        exec 9<>/dev/dsa/wq0.0
        sh -c 'exec 8<>/dev/dsa/wq0.0' 2>&1 | grep -o 'Device or resource busy'
        sleep 1000 & exec 9>&-
        sh -c 'exec 8<>/dev/dsa/wq0.0' 2>&1 | grep -o 'Device or resource busy'
        kill $!; wait
        cat /sys/bus/dsa/devices/wq0.0/clients
        python3 -c 'import os; os.open(\"/dev/dsa/wq0.0\", os.O_RDWR); os.kill(os.getpid(), 9)'
        cat /sys/bus/dsa/devices/wq0.0/clients
        exec 9<>/dev/dsa/wq0.0 && cat /sys/bus/dsa/devices/wq0.0/clients
        exec 9>&-
        python3 -c '
import os
for _ in range(200):
    os.close(os.open(\"/dev/dsa/wq0.0\", os.O_RDWR))' && echo each
        exec 8<>/dev/dsa/wq0.1";
    let output = shell(&["--profile", "1e1w-d"], script);
    let busy = "Device or resource busy\n";
    assert_eq!(
        output.out,
        format!("{busy}{busy}0\n0\n1\neach\n"),
        "{output:?}"
    );
    assert!(output.err.contains("/dev/dsa/wq0.1"), "{output:?}");
}

#[test]
fn the_end_of_the_command_leaves_no_process_or_directory() {
    let session = Session::new();
    let script = "
        sh -c 'trap \"\" HUP TERM; sleep 1000 & sleep 1000' >/dev/null 2>&1 &
        setsid sh -c 'sleep 1001 & exec sleep 1002' >/dev/null 2>&1 &
        ls -d $XDG_RUNTIME_DIR/dray-* | wc -l; stat -c %a $XDG_RUNTIME_DIR/dray-*; exit 7";
    let arguments = ["--redirect", "--", "sh", "-c", script];
    let output = contained(&session, &arguments);
    assert_eq!(output.out, "1\n700\n", "{output:?}");
    assert_eq!(output.code, Some(7), "{output:?}");
    assert_eq!(directories(&session), 0, "{output:?}");
    let output = contained(&session, &["--redirect", "--", "sh", "-c", "kill -KILL $$"]);
    assert_eq!(output.status.signal(), Some(9), "{output:?}");
}

const LASTING: &str = "
    trap '' HUP TERM
    setsid sh -c 'sleep 1000 & exec sleep 1000' &
    echo ready; exec sleep 1000";

#[test]
fn killing_the_launcher_ends_its_programs() {
    let mut running = Session::new().start(&["--redirect"], LASTING);
    running.line("ready");
    running.killed_with_descendants(3);
    let said = running.errors();
    assert!(
        said.contains("the process that owned the virtual device has ended"),
        "{said}"
    );
    assert_eq!(directories(&running.session), 0);
}

#[test]
fn killing_the_first_process_ends_the_session_with_an_error() {
    let mut running = Session::new().start(&["--redirect"], LASTING);
    running.line("ready");
    let processes = running.descendants();
    processes[0].signal(libc::SIGKILL);
    assert_eq!(running.wait().code(), Some(1));
    for process in processes {
        process.gone();
    }
    let said = running.errors();
    assert!(
        said.contains("the session's first process was killed"),
        "{said}"
    );
    assert_eq!(directories(&running.session), 0);
}

/// As when a signal ends the whole process group.
#[test]
fn killing_launcher_and_first_process_leaves_nothing() {
    let mut running = Session::new().start(&["--redirect"], "echo ready; exec sleep 1000");
    running.line("ready");
    let processes = running.descendants();
    // A stopped process does not see the other's end.
    processes[0].signal(libc::SIGSTOP);
    running.signal(libc::SIGKILL);
    running.wait();
    processes[0].signal(libc::SIGKILL);
    for process in processes {
        process.gone();
    }
    let since = std::time::Instant::now();
    while directories(&running.session) > 0 {
        assert!(since.elapsed() < std::time::Duration::from_secs(30));
        std::thread::yield_now();
    }
}

#[test]
fn a_session_runs_without_privileges() {
    if !rustix::process::geteuid().is_root() {
        dray_skip::skip("only root has privileges to drop; all other tests run without");
        return;
    }
    let session = Session::new();
    session.share();
    let output = session.as_nobody(
        &["--redirect", "--profile", "1e1w-d", "--personality", "5.18"],
        "cat /sys/bus/dsa/devices/wq0.0/state; echo app1 >/sys/bus/dsa/devices/wq0.1/name
        cat /sys/bus/dsa/devices/wq0.1/name; echo 1 >/sys/bus/dsa/devices/wq0.0/state
        exec 9<>/dev/dsa/wq0.0; cat /sys/bus/dsa/devices/wq0.0/clients; id -u",
    );
    assert_eq!(output.out, "enabled\napp1\n1\n65534\n", "{output:?}");
    assert!(output.err.contains("Permission denied"), "{output:?}");
}

/// Builds one of the programs in C beside this file.
fn compile(session: &Session, name: &str, options: &[&str]) {
    let source = format!("{}/tests/it/run/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("cc");
    command.args(["-O1", "-o"]).arg(session.path().join(name));
    let built = command.args(options).arg(source).status();
    assert!(
        built.is_ok_and(|status| status.success()),
        "apt-get install gcc libc6-dev"
    );
}

#[test]
fn programs_in_c_write_by_streams_and_in_children() {
    let session = Session::new();
    compile(&session, "paths", &[]);
    let output = contained(
        &session,
        &[
            "--redirect",
            "--",
            "./paths",
            "/sys/bus/dsa/devices/wq0.0/size",
        ],
    );
    assert_eq!(
        output.out,
        "fclose well\nfclose Invalid argument\nfopen Permission denied\nfreopen 7\n\
         write 1, pread 2, ftruncate 0, read 2, told 1\nposix_spawn 9\nvfork 1\n5\n",
        "{output:?}"
    );
}

#[test]
fn a_warning_says_that_a_static_program_finds_no_device() {
    let session = Session::new();
    compile(&session, "static", &["-static"]);
    for arguments in [&["./static"][..], &["sh", "-c", "./static; true"]] {
        let arguments = [&["--redirect", "--"], arguments].concat();
        let output = contained(&session, &arguments);
        let note = "is statically linked: it finds no device by --redirect";
        assert!(output.err.contains(note), "{output:?}");
    }
}

/// Also by names that do not begin at the root, and by those below an open directory.
#[test]
fn relative_paths_do_not_create_remove_or_truncate_files() {
    let output = shell(
        &[],
        "exec 2>&1; rm -rf /dev/dsa; cd /sys/bus/dsa/devices/wq0.0
        rm group_id; mkdir foo; mv type typo; ln -s a b; touch new; rmdir power
        exec 5<state; (echo 1 >state); cat <&5
        python3 -c '
with open(\"size\", \"w\") as file:
    file.write(\"9\")
print(open(\"size\").read(), end=\"\")'
        cat group_id type; ls -d foo typo b new; ls /dev/dsa",
    );
    let said: Vec<&str> = output.out.lines().collect();
    for kept in ["disabled", "9", "-1", "none"] {
        assert!(said.contains(&kept), "{kept}: {output:?}");
    }
    let missing = |line: &&&str| line.contains("cannot access");
    assert_eq!(said.iter().filter(missing).count(), 4, "{output:?}");
}
