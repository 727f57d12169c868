//! Any number of queues on any number of work queues, which change under traffic.

use dray_vhost::backend::Role;
use dray_vhost::copy::CopyEngine;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::alone;
use crate::capture::{self, packets};
use crate::echo::Echo;
use crate::engines::Shuffled;
use crate::testpmd::{Start, Testpmd};

const PAIRS: usize = 4;
const CHANNELS: usize = 3;
const PACKETS: u64 = 3000;

/// Registers and unregisters a channel of a queue, both drawn at random; copies may be in flight.
fn change(echo: &mut Echo, rng: &mut ChaCha8Rng) -> bool {
    let queue = rng.next_u32() as usize % (2 * PAIRS);
    let channel = rng.next_u32() as usize % CHANNELS;
    let mut queue = echo.endpoint.backend.queue(queue);
    let registered = queue.channels().any(|c| c == channel);
    match registered {
        false => queue.attach(&mut echo.channels, channel),
        true => return !queue.unregister(&mut echo.channels, channel),
    }
    false
}

/// Packets of four queue pairs, of which each has its own files, go through work queues that are
/// registered and unregistered meanwhile: none is lost, changed or out of order.
#[test]
fn no_packet_is_lost_when_work_queues_change() {
    if dray_skip::lacks(&["dpdk-testpmd"]) {
        return;
    }
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a directory");
    let sizes = [1518, 64, 700, 256, 1024, 255];
    for ring in [
        "in_order=0,mrg_rxbuf=1",
        "packed_vq=1,in_order=0,mrg_rxbuf=1",
    ] {
        let mut file = "net_pcap0".to_owned();
        let mut sent = Vec::new();
        for pair in 0..PAIRS {
            let of = packets(PACKETS, &sizes[pair % sizes.len()..]);
            capture::write(&directory.path().join(format!("in{pair}")), &of);
            let _ = std::fs::remove_file(directory.path().join(format!("out{pair}")));
            file += &format!(",rx_pcap=in{pair},tx_pcap=out{pair}");
            sent.push(of);
        }
        let engines = (0..CHANNELS as u64)
            .map(|seed| -> Box<dyn CopyEngine> { Shuffled::new(seed, 120, Some(29)) });
        let path = directory.path().join("s");
        let mut echo = Echo::new(&path, Role::Server, PAIRS as u16, engines.collect());
        let port = format!("net_virtio_user0,path=s,queues={PAIRS},queue_size=256,{ring}");
        let mut testpmd = Testpmd::start(
            directory.path(),
            &Start {
                devices: &[port, file],
                eal: &["-m", "256"],
                options: &[
                    "--total-num-mbufs=16384",
                    "--rxq=4",
                    "--txq=4",
                    "--txd=256",
                    "--rxd=256",
                    "--no-flush-rx",
                ],
            },
        );
        echo.until_said(&mut testpmd, "Checking link statuses");
        // What a front end sends on a queue that it has not enabled is discarded, and testpmd waits for no answer.
        echo.until("queues are enabled", |echo| {
            let mut queues = echo.endpoint.backend.queues().iter();
            queues.all(|queue| queue.is_live())
        });
        testpmd.say("set fwd io retry");
        testpmd.say("set burst tx delay 10 retry 100000000");
        testpmd.say("start");
        let total = PAIRS as u64 * PACKETS;
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut waited = 0;
        echo.until("packets are missing", |echo| {
            for _ in 0..3 {
                waited += u32::from(change(echo, &mut rng));
            }
            echo.counts()[1] >= total
        });
        println!("{ring}: {waited} channels were unregistered with copies in flight");
        assert!(waited > 0);
        echo.end_after(testpmd, total as usize);
        for (pair, sent) in sent.iter().enumerate() {
            let out = capture::read(&directory.path().join(format!("out{pair}")));
            assert_eq!(out.len(), sent.len(), "pair {pair}");
            for (at, (got, sent)) in out.iter().zip(sent).enumerate() {
                let differs = got.difference(&capture::Captured::of(sent));
                assert!(differs.is_none(), "pair {pair}, packet {at}: {differs:?}");
            }
        }
        // All places are given back once nothing is in flight.
        for index in 0..2 * PAIRS {
            let mut queue = echo.endpoint.backend.queue(index);
            for channel in 0..CHANNELS {
                assert!(queue.unregister(&mut echo.channels, channel));
            }
        }
        assert!(echo.channels.iter().all(|channel| !channel.is_in_use()));
        let copies: Vec<u64> = echo.channels.iter().map(|c| c.counts().0).collect();
        assert!(copies.iter().all(|count| *count > 0), "{copies:?}");
    }
}
