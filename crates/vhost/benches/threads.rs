//! Packets per second on one thread and on two: `cargo bench -p dray-vhost --bench threads -- --rounds 9`.
//!
//! Four guests are wired in pairs. Their drivers make the same buffers available again as soon as they come back,
//! from the first thread, so that two cores are enough. One thread and two take turns. A machine with other work
//! shows what a thread gets of its core: so rates are also given by the CPU time of the threads that moved packets.

use std::fmt::Write;
use std::time::{Duration, Instant};

use clap::Parser;
use dray_vhost::backend::{Endpoint, Role};
use dray_vhost::copy::Channels;
use dray_vhost::forward::{Mode, Switch};
use dray_vhost::port::{Port, VhostPort};
use dray_vhost::protocol::Options;

#[allow(dead_code, unreachable_pub, missing_docs)]
#[path = "../tests/it/driver.rs"]
mod driver;
#[allow(dead_code, unreachable_pub, missing_docs)]
#[path = "../tests/it/guest.rs"]
mod guest;

use driver::Kind;
use guest::{Guest, Setup};

/// Buffers of a ring.
const RING: u32 = 1024;
const GUESTS: usize = 4;

#[derive(Debug, Parser)]
struct Args {
    /// Turns of each number of threads.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Milliseconds of a turn.
    #[arg(long, default_value_t = 400)]
    window: u64,
    /// Bytes of packets.
    #[arg(long, value_delimiter = ',', default_value = "64,512,1518")]
    sizes: Vec<usize>,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A guest whose rings are full.
fn guest(bytes: usize) -> Guest {
    let mut guest = Guest::new(Setup::new(Kind::Split, RING), Vec::new());
    guest.fills = false;
    let packet = vec![1; bytes];
    while guest.provide(&[2048], false) {}
    while guest.transmit(&packet, 4096, false) {}
    guest
}

/// Makes all buffers available again that have come back: they come back in order.
fn recycle(guest: &Guest) {
    for ring in &guest.rings {
        let used = guest.memory.u16(ring.used_ring + 2);
        let available = used.wrapping_add(RING as u16);
        let at = guest.memory.map.translate(ring.available + 2, 2);
        let at = at.expect("mapped").cast::<u16>();
        // SAFETY: the ring is mapped, and its index aligned.
        unsafe { at.write_volatile(available) };
    }
}

/// CPU time of the threads of this process that move packets.
fn cpu_time() -> Duration {
    let mut sum = Duration::ZERO;
    let tasks = std::fs::read_dir("/proc/self/task").expect("procfs");
    for task in tasks.flatten() {
        let read = |name: &str| std::fs::read_to_string(task.path().join(name));
        let (Ok(name), Ok(text)) = (read("comm"), read("schedstat")) else {
            continue;
        };
        let moves =
            name.starts_with("vhost-") || task.file_name() == *std::process::id().to_string();
        let ns = text.split_whitespace().next().and_then(|n| n.parse().ok());
        if let (true, Some(ns)) = (moves, ns) {
            sum += Duration::from_nanos(ns);
        }
    }
    sum
}

/// Million packets a second of one turn: by the clock, and by each thread's CPU time.
fn turn(threads: usize, bytes: usize, window: Duration) -> [f64; 2] {
    let dir = tempfile::tempdir().expect("a directory");
    let mut guests: Vec<Guest> = (0..GUESTS).map(|_| guest(bytes)).collect();
    let lists = (0..threads).map(|_| Channels::new()).collect();
    let mut switch = Switch::with_threads(lists, Mode::Io).expect("threads");
    switch.set_balances(false);
    for (at, guest) in guests.iter_mut().enumerate() {
        let path = dir.path().join(at.to_string());
        let endpoint = Endpoint::new(&path, Role::Server, Options::default());
        let mut endpoint = endpoint.expect("a socket");
        std::mem::swap(&mut endpoint.backend, &mut guest.backend);
        switch.add_port(
            &at.to_string(),
            Port::Vhost(Box::new(VhostPort::over(endpoint))),
        );
    }
    // Guests 0 and 1, 2 and 3 are wired: each thread has one pair of each wire.
    let cores: Vec<usize> = (0..threads).collect();
    switch.start(&cores, false).expect("threads");
    let mut events = Vec::new();
    let mut run = |time: Duration| {
        let end = Instant::now() + time;
        while Instant::now() < end {
            switch.step(&mut events);
            guests.iter().for_each(recycle);
        }
        (switch.packets_switched(), cpu_time(), Instant::now())
    };
    run(Duration::from_millis(50));
    let (before, after) = (run(Duration::ZERO), run(window));
    let packets = (after.0 - before.0) as f64 / 1e6;
    let cpu = (after.1 - before.1).as_secs_f64() / threads as f64;
    [packets / (after.2 - before.2).as_secs_f64(), packets / cpu]
}

fn main() {
    let args = Args::parse();
    let window = Duration::from_millis(args.window);
    let mut out = String::from(
        "bytes  Mpps 1 thread        2 threads            times by the clock    times by CPU time\n",
    );
    for bytes in &args.sizes {
        let mut rates = [const { Vec::new() }; 4];
        for _ in 0..args.rounds {
            let one = turn(1, *bytes, window);
            let two = turn(2, *bytes, window);
            rates[0].push(one[1]);
            rates[1].push(two[1]);
            rates[2].push(two[0] / one[0]);
            rates[3].push(two[1] / one[1]);
        }
        let shown = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            let (first, last) = (rates[0], rates[rates.len() - 1]);
            format!("{:.2} ({first:.2}-{last:.2})", rates[rates.len() / 2])
        });
        let [one, two, clock, cpu] = shown;
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{bytes:5}  {one:20} {two:20} {clock:20}  {cpu}");
    }
    print!("{out}");
}
