//! Work queues under `dray run`, by write(2): as the kernel has it from 6.10 on.

use crate::session::Session;

const SUBMIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/submit.py");
const CLOSES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/closes.py");

#[track_caller]
fn submit(options: &[&str]) -> String {
    let mut arguments = options.to_vec();
    arguments.extend(["--", "python3", SUBMIT, "/dev/dsa/wq0.0"]);
    let output = Session::new().run(&arguments);
    assert_eq!(output.code, Some(0), "{output:?}");
    output.out
}

fn expected(again: &str) -> String {
    format!(
        "noop 1\ncopy 1\nsame True\nunmapped 3\ntwo 128\nhalf 0\nmisaligned EINVAL\nbatch EINVAL\n\
         read EINVAL\nchild EPERM\nagain {again}\nafter 1\n"
    )
}

#[test]
fn written_descriptors_work_on_the_program_s_memory() {
    let dedicated = submit(&["--personality", "7.2", "--profile", "1e1w-d"]);
    assert_eq!(dedicated, expected("EBUSY"));
    let shared = submit(&["--personality", "7.2", "--profile", "4e1w-s"]);
    assert_eq!(shared, expected("2"));
}

#[test]
fn older_kernels_refuse_write_unless_it_is_required() {
    let options = ["--personality", "6.8", "--profile", "1e1w-d"];
    let refused = submit(&options);
    assert!(
        refused.starts_with("noop EINVAL\ncopy EINVAL\n"),
        "{refused}"
    );
    let required = submit(&[&options[..], &["--require", "write"]].concat());
    assert_eq!(required, expected("EBUSY"));
    let newer = ["--personality", "7.2", "--profile", "1e1w-d"];
    let arguments = [&newer[..], &["--require", "portal"]].concat();
    let arguments = [&arguments[..], &["--", "python3", SUBMIT, "/dev/dsa/wq0.0"]].concat();
    let refused = Session::new().run(&arguments);
    // The program has no portal either.
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.out.starts_with("noop EINVAL\ncopy EINVAL\n"),
        "{refused:?}"
    );
}

/// INTEL-SA-01084: from 6.10 on a portal is for those who may access the machine's memory anyway.
#[test]
fn newer_kernels_let_privileged_programs_alone_map() {
    const MAP: &str = "import errno, mmap, os
node = os.open('/dev/dsa/wq0.0', os.O_RDWR)
try:
    mmap.mmap(node, 4096, mmap.MAP_SHARED, mmap.PROT_WRITE)
    print('mapped')
except OSError as error:
    print(errno.errorcode[error.errno])";
    if !rustix::process::geteuid().is_root() {
        dray_skip::skip("only root has privileges to drop");
        return;
    }
    let map = format!("python3 -c \"{MAP}\"");
    let session = Session::new();
    session.share();
    for (kernel, user) in [("6.8", "mapped\n"), ("7.2", "EPERM\n")] {
        let options = ["--personality", kernel, "--profile", "1e1w-d"];
        assert_eq!(session.shell(&options, &map).out, "mapped\n", "{kernel}");
        assert_eq!(session.as_nobody(&options, &map).out, user, "{kernel}");
        let without = format!("setpriv --bounding-set=-sys_rawio {map}");
        assert_eq!(session.shell(&options, &without).out, user, "{kernel}");
        let portal = [&options[..], &["--require", "portal"]].concat();
        assert_eq!(session.as_nobody(&portal, &map).out, "mapped\n", "{kernel}");
    }
}

#[test]
fn a_closed_client_is_not_counted() {
    for redirect in [&[][..], &["--redirect"]] {
        let options = [&["--personality", "7.2", "--profile", "1e1w-d"], redirect].concat();
        let clients = "/sys/bus/dsa/devices/wq0.0/clients";
        let arguments = [
            &options[..],
            &["--", "python3", CLOSES, "/dev/dsa/wq0.0", clients],
        ];
        let closed = Session::new().run(&arguments.concat());
        assert_eq!(closed.out, "0\n", "{closed:?}");
    }
}

#[test]
fn a_queue_can_be_opened_after_its_client_was_killed() {
    let script = "
        exec 9<>/dev/dsa/wq0.0
        python3 -c 'open(\"/dev/dsa/wq0.0\", \"r+b\", 0)' 2>/dev/null || echo busy
        exec 9>&-
        python3 -c 'import os; os.open(\"/dev/dsa/wq0.0\", os.O_RDWR); os.kill(os.getpid(), 9)'
        cat /sys/bus/dsa/devices/wq0.0/clients
        exec 9<>/dev/dsa/wq0.0 && echo open";
    let output = Session::new().shell(&["--profile", "1e1w-d"], script);
    assert_eq!(output.out, "busy\n0\nopen\n", "{output:?}");
}
