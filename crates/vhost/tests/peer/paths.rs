//! The ring paths of DPDK's test plans, with payloads compared.

use std::path::Path;

use dray_vhost::backend::Role;
use dray_vhost::copy::CopyEngine;

use crate::alone;
use crate::capture::{self, Captured, packets};
use crate::echo::Echo;
use crate::engines::Shuffled;
use crate::testpmd::{Start, Testpmd};

const IN: &str = "in.pcap";
const OUT: &str = "out.pcap";
/// Packets that `start tx_first 1` sends on each port.
const FIRST: usize = 32;
const SIZES: [usize; 8] = [60, 64, 128, 256, 512, 1024, 1518, 333];

/// Movers that end copies in random order; one of them fails at every 13th.
fn movers() -> Vec<Box<dyn CopyEngine>> {
    vec![
        Shuffled::new(11, 300, None),
        Shuffled::new(12, 300, Some(13)),
    ]
}

fn devices(ring: &str) -> Vec<String> {
    vec![
        format!("net_virtio_user0,path=s,queues=1,{ring}"),
        format!("net_pcap0,rx_pcap={IN},tx_pcap={OUT}"),
    ]
}

/// What one launch sends: packets from a file, and packets of its own in these segments.
struct Plan<'a> {
    ring: &'a str,
    segments: &'a str,
    burst: usize,
    file: Vec<Vec<u8>>,
    start: Start<'a>,
}

/// Sends packets from the file through the back end to the other file. Everything that the back end
/// saw is what was sent, and everything that came back is what the back end saw, in order.
fn compare(directory: &Path, plan: &Plan<'_>) -> Vec<Captured> {
    println!("{}, segments {}", plan.ring, plan.segments);
    capture::write(&directory.join(IN), &plan.file);
    let _ = std::fs::remove_file(directory.join(OUT));
    let mut echo = Echo::new(&directory.join("s"), Role::Server, 1, movers());
    let mut testpmd = Testpmd::start(directory, &plan.start);
    echo.until_said(&mut testpmd, "Checking link statuses");
    // Nothing is given up while a ring is full.
    testpmd.say("set fwd io retry");
    testpmd.say("set burst tx delay 10 retry 100000000");
    testpmd.say(&format!("set burst {}", plan.burst));
    testpmd.say(&format!("set txpkts {}", plan.segments));
    testpmd.say("start tx_first 1");
    let total = plan.file.len() + plan.burst;
    echo.until("not all packets came", |echo| {
        echo.pairs[0].count as usize >= total
    });
    echo.until("not all packets went back", |echo| {
        echo.counts()[1] as usize >= total
    });
    echo.end_after(testpmd, total);
    let stats = *echo.endpoint.backend.queue(1).stats();
    assert!(stats.submitted > 0 && stats.submitted == stats.completed);
    assert!(stats.copies_core > 0, "synchronous calls had their turns");
    assert_eq!(stats.drops.total(), 0, "{stats:?}");
    let seen = std::mem::take(&mut echo.pairs[0].seen);
    assert_eq!(seen.len(), total);
    let from_file: Vec<&Captured> = seen.iter().filter(|p| p.is_ours()).collect();
    assert_eq!(from_file.len(), plan.file.len());
    for (at, (seen, sent)) in from_file.iter().zip(&plan.file).enumerate() {
        let sent = Captured::of(sent);
        let differs = seen.difference(&sent);
        assert_eq!(
            differs, None,
            "packet {at} from the guest: {seen:?}, {sent:?}"
        );
    }
    // Its own first burst goes to the file directly, too.
    let out = capture::read(&directory.join(OUT));
    assert_eq!(out.len(), total + plan.burst);
    for (at, (got, seen)) in out[plan.burst..].iter().zip(&seen).enumerate() {
        let differs = got.difference(seen);
        assert!(
            differs.is_none(),
            "packet {at} to the guest differs at byte {differs:?}: {got:?}, {seen:?}"
        );
    }
    seen
}

/// The ten paths: in order, mergeable, vectorized, on split and packed rings.
#[test]
fn the_ten_ring_paths_of_dpdk_deliver_every_packet() {
    if dray_skip::lacks(&["dpdk-testpmd"]) {
        return;
    }
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a directory");
    let paths = [
        "in_order=1,mrg_rxbuf=1",
        "in_order=1,mrg_rxbuf=0",
        "in_order=0,mrg_rxbuf=1",
        "in_order=0,mrg_rxbuf=0",
        "in_order=0,mrg_rxbuf=0,vectorized=1",
        "packed_vq=1,in_order=1,mrg_rxbuf=1",
        "packed_vq=1,in_order=1,mrg_rxbuf=0",
        "packed_vq=1,in_order=0,mrg_rxbuf=1",
        "packed_vq=1,in_order=0,mrg_rxbuf=0",
        "packed_vq=1,in_order=1,mrg_rxbuf=0,vectorized=1",
    ];
    for path in paths {
        // A buffer has 2 KiB: longer packets need several.
        let mergeable = path.contains("mrg_rxbuf=1");
        let (segments, len) = match mergeable {
            true => ("64,64,64,2000,2000,2000", 6192),
            false => ("64,128,256,512", 960),
        };
        let mut file = packets(1500, &SIZES);
        if mergeable {
            file.extend(packets(100, &[6192, 9000, 2048]));
        }
        let ring = format!("queue_size=256,{path}");
        let seen = compare(
            directory.path(),
            &Plan {
                ring: &ring,
                segments,
                burst: FIRST,
                file,
                start: Start {
                    devices: &devices(&ring),
                    eal: &["-m", "128", "--force-max-simd-bitwidth=512"],
                    options: &[
                        "--total-num-mbufs=4096",
                        "--txd=256",
                        "--rxd=256",
                        "--no-flush-rx",
                    ],
                },
            },
        );
        let own: Vec<&Captured> = seen.iter().filter(|p| !p.is_ours()).collect();
        assert_eq!(own.len(), FIRST);
        assert!(own.iter().all(|packet| packet.len == len));
    }
}

/// Chains of 2 times 65535 and 5 times 45535 bytes.
#[test]
fn chains_of_the_longest_buffers_are_delivered() {
    if dray_skip::lacks(&["dpdk-testpmd"]) {
        return;
    }
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a directory");
    let runs = [
        ("in_order=1,mrg_rxbuf=1", "65535,65535", 131_070),
        (
            "in_order=0,mrg_rxbuf=1",
            "45535,45535,45535,45535,45535",
            227_675,
        ),
        ("packed_vq=1,in_order=0,mrg_rxbuf=1", "65535,65535", 131_070),
        (
            "packed_vq=1,in_order=1,mrg_rxbuf=1",
            "45535,45535,45535,45535,45535",
            227_675,
        ),
    ];
    for (path, segments, len) in runs {
        let ring = format!("queue_size=2048,{path}");
        let seen = compare(
            directory.path(),
            &Plan {
                ring: &ring,
                segments,
                burst: 4,
                file: packets(200, &[65535, 1518, 60000]),
                start: Start {
                    devices: &devices(&ring),
                    eal: &["-m", "512"],
                    options: &[
                        "--total-num-mbufs=2048",
                        "--mbuf-size=65535",
                        "--mbcache=16",
                        "--txd=256",
                        "--rxd=256",
                        "--no-flush-rx",
                    ],
                },
            },
        );
        let own: Vec<&Captured> = seen.iter().filter(|p| !p.is_ours()).collect();
        assert_eq!(own.len(), 4);
        assert!(own.iter().all(|packet| packet.len == len));
    }
}
