//! Packet rates of this back end beside those of DPDK's net_vhost, with a guest played by DPDK's
//! virtio-user: Debian's dpdk-testpmd is both.
//!
//! Two processes, one CPU each; a launch is a back end and a client that go through all modes and
//! sizes. Launches of both back ends take turns. Printed for each cell: the medians, their ratio with
//! its 95 % interval (bootstrap over launches), our ticks per packet in polls that moved one, and the
//! share of our polls that did not.
//!
//! `cargo bench -p dray-vhost --bench rival -- --launches 21 --realtime`

#![allow(missing_docs, unreachable_pub)]

#[path = "rival/client.rs"]
mod client;
#[path = "rival/priority.rs"]
mod priority;
#[path = "rival/server.rs"]
mod server;
#[path = "rival/statistics.rs"]
mod statistics;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;

use client::{Testpmd, available};
use server::{Own, Server};

/// How packets flow: what client and back end do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Flow {
    /// The client sends, the back end takes.
    Deq,
    /// The back end sends, the client takes.
    Enq,
    /// The client makes packets, the back end sends them back.
    Macfwd,
    /// A burst goes round and round.
    Loop,
}

impl Flow {
    fn client(self) -> &'static str {
        match self {
            Flow::Deq => "txonly",
            Flow::Enq => "rxonly",
            Flow::Macfwd => "flowgen",
            Flow::Loop => "mac",
        }
    }

    fn back_end(self) -> &'static str {
        match self {
            Flow::Deq => "rxonly",
            Flow::Enq => "txonly",
            Flow::Macfwd | Flow::Loop => "mac",
        }
    }
}

/// Measures this back end beside net_vhost.
#[derive(Debug, Parser)]
struct Args {
    /// Launches of each back end and ring.
    #[arg(long, default_value_t = 21)]
    launches: usize,
    /// split, packed, or both.
    #[arg(long, value_delimiter = ',', default_value = "split,packed")]
    rings: Vec<String>,
    /// Modes.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "deq,enq,macfwd,loop"
    )]
    modes: Vec<Flow>,
    /// Packet sizes in bytes.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "64,128,256,512,1024,1518"
    )]
    sizes: Vec<usize>,
    /// Time of one measurement, in milliseconds.
    #[arg(long, default_value_t = 400)]
    window: u64,
    /// Give both processes real-time priority during a measurement; needs root.
    #[arg(long)]
    realtime: bool,
    /// Do not start the rival.
    #[arg(long)]
    alone: bool,
    /// The CPUs of back end and client.
    #[arg(long, value_delimiter = ',', default_value = "0,1")]
    cpus: Vec<usize>,
    /// The rival and the client.
    #[arg(long, default_value = "dpdk-testpmd")]
    testpmd: PathBuf,
    /// Every rate, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Be the back end at this socket; for the benchmark's own use.
    #[arg(long)]
    serve: Option<PathBuf>,
    /// What cargo says.
    #[arg(long, hide = true)]
    bench: bool,
}

/// One measurement: ring, mode, size.
type Cell = (String, Flow, usize);

/// What was measured of a cell.
#[derive(Debug, Default)]
struct Samples {
    own: Vec<f64>,
    rival: Vec<f64>,
    cycles: Vec<f64>,
    empty: Vec<f64>,
}

fn main() -> Result<(), String> {
    let args = Args::parse();
    if let Some(socket) = &args.serve {
        return server::serve(socket);
    }
    if !available(&args.testpmd) {
        println!("skipped: {} cannot be run", args.testpmd.display());
        return Ok(());
    }
    let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut found: BTreeMap<Cell, Samples> = BTreeMap::new();
    for launch in 0..args.launches {
        for ring in &args.rings {
            // Who goes first changes from launch to launch.
            for turn in 0..2 {
                let own = (launch + turn) % 2 == 0;
                if !own && args.alone {
                    continue;
                }
                eprintln!(
                    "launch {} of {}, {ring}, {}",
                    launch + 1,
                    args.launches,
                    if own { "dray" } else { "net_vhost" }
                );
                run(&args, directory.path(), ring, own, &mut found)
                    .map_err(|e| format!("launch {launch}, {ring}: {e}"))?;
            }
        }
    }
    print(&args, &found);
    if let Some(file) = &args.json {
        let text = statistics::json(&found);
        std::fs::write(file, text).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// One launch: all modes and sizes with one ring and one back end.
fn run(
    args: &Args,
    directory: &Path,
    ring: &str,
    own: bool,
    found: &mut BTreeMap<Cell, Samples>,
) -> Result<(), String> {
    let socket = directory.join("s");
    let _ = std::fs::remove_file(&socket);
    let mut server = match own {
        true => Server::Own(Own::start(&socket, args.cpus[0])?),
        false => Server::Rival(Testpmd::back_end(&args.testpmd, &socket, args.cpus[0])?),
    };
    let mut client = Testpmd::client(&args.testpmd, &socket, args.cpus[1], ring == "packed")?;
    for mode in &args.modes {
        for size in &args.sizes {
            server.begin(mode.back_end(), *size)?;
            client.begin(mode.client(), *size, *mode == Flow::Loop)?;
            let pids = [server.pid(), client.pid()];
            let before = server.counters()?;
            let guard = args.realtime.then(|| priority::raise(&pids));
            std::thread::sleep(Duration::from_millis(150));
            let first = client.packets()?;
            std::thread::sleep(Duration::from_millis(args.window));
            let last = client.packets()?;
            drop(guard);
            let after = server.counters()?;
            client.end()?;
            server.end()?;
            let seconds = (last.at - first.at).as_secs_f64();
            let packets = match mode {
                Flow::Deq => last.sent - first.sent,
                _ => last.received - first.received,
            };
            let cell = found.entry((ring.to_owned(), *mode, *size)).or_default();
            let rate = packets as f64 / seconds / 1e6;
            match (before, after) {
                (Some(before), Some(after)) => {
                    cell.own.push(rate);
                    cell.cycles.push(after.cycles_since(&before));
                    cell.empty.push(after.empty_since(&before));
                }
                _ => cell.rival.push(rate),
            }
        }
    }
    Ok(())
}

fn print(args: &Args, found: &BTreeMap<Cell, Samples>) {
    println!(
        "Mpps, medians of {} launches; ratio of medians, 95 % interval",
        args.launches
    );
    println!(
        "{:7} {:7} {:>5} {:>8} {:>9}  {:>20} {:>14} {:>6}",
        "ring", "mode", "bytes", "dray", "net_vhost", "ratio", "cycles/packet", "empty"
    );
    for ((ring, mode, size), of) in found {
        let mode = format!("{mode:?}").to_lowercase();
        let ratio = match statistics::ratio(&of.own, &of.rival) {
            Some((ratio, low, high)) => format!("{ratio:.2} ({low:.2}-{high:.2})"),
            None => "-".to_owned(),
        };
        println!(
            "{ring:7} {mode:7} {size:>5} {:>8.2} {:>9.2}  {ratio:>20} {:>14.0} {:>4.0} %",
            statistics::median(&of.own),
            statistics::median(&of.rival),
            statistics::median(&of.cycles),
            100.0 * statistics::median(&of.empty),
        );
    }
}
