//! Either side disconnects and reconnects under traffic.

use std::path::Path;

use dray_vhost::backend::Role;
use dray_vhost::copy::{CopyEngine, open_virtual};

use crate::alone;
use crate::echo::Echo;
use crate::engines::Shuffled;
use crate::testpmd::{Start, Testpmd};

const RINGS: [&str; 2] = [
    "in_order=0,mrg_rxbuf=1",
    "packed_vq=1,in_order=1,mrg_rxbuf=1",
];
/// Packets each way after which traffic flows.
const FLOWS: u64 = 2000;

fn start(directory: &Path, ring: &str, more: &str) -> Testpmd {
    let device = format!("net_virtio_user0,path=s,queues=1,queue_size=256,{ring}{more}");
    Testpmd::start(
        directory,
        &Start {
            devices: &[device],
            eal: &["-m", "128"],
            options: &["--total-num-mbufs=4096", "--txd=256", "--rxd=256"],
        },
    )
}

/// Goes on until so many more packets went both ways.
fn flows(echo: &mut Echo) {
    let before = echo.counts();
    echo.until("no traffic", |echo| {
        let now = echo.counts();
        (0..2).all(|way| now[way] >= before[way] + FLOWS)
    });
}

fn engines(round: usize) -> Vec<Box<dyn CopyEngine>> {
    match round % 3 {
        0 => Vec::new(),
        1 => vec![Shuffled::new(5, 200, Some(17)), Shuffled::new(6, 100, None)],
        _ => open_virtual(2).expect("a virtual device"),
    }
}

fn flowgen(echo: &mut Echo, testpmd: &mut Testpmd) {
    echo.until_said(testpmd, "Checking link statuses");
    testpmd.say("set fwd flowgen");
    testpmd.say("start");
    flows(echo);
}

/// A guest crashes under traffic, or disconnects, and comes back: no packet stays in flight, and
/// packets flow again.
#[test]
fn packets_flow_again_after_a_guest_crashes() {
    if dray_skip::lacks(&["dpdk-testpmd"]) {
        return;
    }
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a directory");
    for ring in RINGS {
        for kind in 0..3 {
            println!("{ring}, movers {kind}");
            let path = directory.path().join("s");
            let mut echo = Echo::new(&path, Role::Server, 1, engines(kind));
            echo.keeps = false;
            for crash in [true, false, true] {
                let mut testpmd = start(directory.path(), ring, "");
                flowgen(&mut echo, &mut testpmd);
                match crash {
                    true => testpmd.kill(),
                    false => testpmd.say("quit"),
                }
                echo.until("copies in flight for ever", |echo| {
                    let queues = echo.endpoint.backend.queues();
                    let in_flight: usize = queues.iter().map(|q| q.in_flight()).sum();
                    !echo.endpoint.is_connected() && in_flight == 0
                });
                assert_eq!(
                    echo.channels.iter().map(|c| c.in_flight()).sum::<usize>(),
                    0
                );
            }
            assert_eq!(echo.connections, 3);
            for queue in echo.endpoint.backend.queues().iter() {
                assert_eq!(queue.stats().drops.descriptor, 0, "{echo:?}");
            }
        }
    }
}

/// A back end disconnects under traffic, with and without waiting for its copies, and comes back: the
/// guest, which listens, continues by itself.
#[test]
fn packets_flow_again_after_the_back_end_restarts() {
    if dray_skip::lacks(&["dpdk-testpmd"]) {
        return;
    }
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a directory");
    for ring in RINGS {
        let path = directory.path().join("s");
        let _ = std::fs::remove_file(&path);
        // It waits for the first connection before it says anything.
        let mut testpmd = start(directory.path(), ring, ",server=1");
        let mut began = false;
        for round in 0..5 {
            println!("{ring}, round {round}");
            let mut echo = Echo::new(&path, Role::Client, 1, engines(round));
            echo.keeps = false;
            match began {
                true => flows(&mut echo),
                false => flowgen(&mut echo, &mut testpmd),
            }
            began = true;
            assert_eq!(echo.connections, 1);
            for queue in echo.endpoint.backend.queues().iter() {
                assert_eq!(queue.stats().drops.descriptor, 0, "{echo:?}");
                assert_eq!(queue.broken(), None);
            }
            if round % 2 == 0 {
                echo.leave();
            }
        }
    }
}
