//! Portals under `dray run`: programs that map a work queue and write descriptors to it.

use crate::session::{Session, shell};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/portal.py");

#[track_caller]
fn program(options: &[&str], instruction: &str) -> String {
    let mut arguments = options.to_vec();
    arguments.extend(["--", "python3", PROGRAM, "/dev/dsa/wq0.0", instruction]);
    let output = Session::new().run(&arguments);
    assert_eq!(output.code, Some(0), "{output:?}");
    output.out
}

fn expected(untouched: u8) -> String {
    format!(
        "two pages Invalid argument\ncopy 1 True\nthreads 200 {{(1, True)}}\n\
         untouched {untouched}\nnothing there 3\nchild SIGSEGV\ncopy 1 True\n"
    )
}

#[test]
fn a_dedicated_queue_takes_movdir64b() {
    let options = ["--profile", "1e1w-d"];
    assert_eq!(program(&options, "movdir64b"), expected(3));
}

#[test]
fn a_shared_queue_takes_enqcmd() {
    let options = ["--profile", "4e1w-s"];
    assert_eq!(program(&options, "enqcmd"), expected(3));
}

#[test]
fn pages_can_be_touched_instead() {
    let options = ["--profile", "4e1w-s", "--faults", "touch"];
    assert_eq!(program(&options, "enqcmd"), expected(1));
}

/// What ends a mapping is done before the program's next call, as the kernel does it.
#[test]
fn a_dedicated_queue_is_free_when_its_mapping_has_ended() {
    const REOPEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/run/reopen.py");
    let arguments = ["--profile", "1e1w-d", "--", "python3", REOPEN];
    let arguments = [&arguments[..], &["/dev/dsa/wq0.0", "300"]].concat();
    let output = Session::new().run(&arguments);
    assert_eq!(output.out, "{'unmapped': 0, 'ended': 0}\n", "{output:?}");
}

/// DPDK's own test of DMA devices, on the queue that accel-config has made for it.
#[test]
fn dpdk_tests_its_dma_devices() {
    let script = "
        set -e
        accel-config config-engine dsa0/engine0.0 --group-id=0
        accel-config config-wq dsa0/wq0.0 --group-id=0 --mode=dedicated --wq-size=64 --type=user \
            --name=dpdk_0 --priority=10 --max-batch-size=64 --block-on-fault=1
        accel-config enable-device dsa0
        accel-config enable-wq dsa0/wq0.0
        command -v dpdk-test >/dev/null || { echo 'apt-get install -y dpdk-dev' >&2; exit 1; }
        echo dmadev_autotest | timeout 300 dpdk-test --no-huge --iova-mode=va -m 256 \
            --file-prefix=dpdk --no-shconf -l 0";
    let output = shell(&["--personality", "6.4"], script);
    assert_eq!(output.code, Some(0), "{output:?}");
    for line in [
        "Test dmadev instance 0 [wq0.0]",
        "DMA Dev 0: Running copy Tests",
        "DMA Dev 0: Running error handling Tests",
        "DMA Dev 0: Running fill Tests",
        "Test OK",
    ] {
        assert!(output.out.contains(line), "{line} is missing: {output:?}");
    }
    assert!(!output.out.contains("Test Failed"), "{output:?}");
}
