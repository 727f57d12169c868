//! Sends every packet of a guest back to it. The copies are made by a virtual DSA.
//!
//! ```sh
//! cargo run -p dray-vhost --example echo -- /tmp/echo.sock 10
//! ```
//!
//! and beside it `dpdk-testpmd --no-huge -m 128 --no-pci
//! --vdev net_virtio_user0,path=/tmp/echo.sock -- -i --total-num-mbufs=8192`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use dray_vhost::VhostError;
use dray_vhost::backend::{Endpoint, Role};
use dray_vhost::copy::{Channel, open_virtual};
use dray_vhost::net::Pool;
use dray_vhost::protocol::{Options, features};

fn main() -> Result<(), VhostError> {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().unwrap_or("/tmp/echo.sock".into()));
    let seconds = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(10);

    // One channel for each work queue of the device; here, both directions share one.
    let engines = open_virtual(1)?.into_iter();
    let mut channels: Vec<Channel> = engines.map(|e| Channel::new("wq0.0", e)).collect();

    // What comes back must be what the guest takes: without offloads it is.
    let options = Options {
        features: features::ALL & !features::OFFLOADS,
        ..Options::default()
    };
    let mut endpoint = Endpoint::new(&path, Role::Server, options)?;
    for queue in 0..2 {
        let mut queue = endpoint.backend.queue(queue);
        queue.attach(&mut channels, 0);
    }

    let (mut pool, mut packets, mut done) = (Pool::new(64), Vec::new(), Vec::new());
    let mut events = Vec::new();
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        // Messages, connections.
        endpoint.poll(Instant::now(), &mut events);
        events.drain(..).for_each(|event| println!("{event:?}"));

        // From the guest: starts new copies, returns packets whose copies have ended.
        let mut from_guest = endpoint.backend.from_guest(0);
        from_guest.try_dequeue(&mut channels, &mut pool, &mut packets, 32);

        // To the guest: starts copies; the packets come back when they have ended.
        let mut to_guest = endpoint.backend.to_guest(0);
        to_guest.enqueue_submit(&mut channels, &mut packets);
        to_guest.enqueue_poll(&mut channels, &mut done);
        packets.drain(..).for_each(|packet| pool.put(packet));
        done.drain(..).for_each(|packet| pool.put(packet));
    }
    for queue in endpoint.backend.queues().iter() {
        let stats = queue.stats();
        println!(
            "queue {}: {} packets, {} copies by the device",
            queue.index(),
            stats.packets,
            stats.copies_channel
        );
    }
    Ok(())
}
