//! `dray vhost port`, `channel` and `metrics`: what a running switch is asked, and what it answers.

use std::path::PathBuf;

use dray_vhost::backend::Event;
use dray_vhost::forward::{PortReport, Switch};

use super::assign::{self, Wire};
use super::control::{Answer, ask};
use super::port::PortSpec;
use super::{MoverKind, metrics};
use crate::complain::with_causes;
use crate::print;

const PORT_EXAMPLES: &str = "\
Examples:
  dray vhost --port /tmp/a.sock --control /tmp/dray.ctl &
  dray vhost port add /tmp/b.sock,queues=2 --control /tmp/dray.ctl
  dray vhost port list --control /tmp/dray.ctl
  dray vhost port remove /tmp/b.sock --control /tmp/dray.ctl";
const CHANNEL_EXAMPLES: &str = "\
Examples:
  dray vhost --port /tmp/a.sock --mover virtual --control /tmp/dray.ctl &
  dray vhost channel add wq1.0 --control /tmp/dray.ctl
  dray vhost channel list --control /tmp/dray.ctl
  dray vhost channel remove wq1.0 --control /tmp/dray.ctl";
const METRICS_EXAMPLES: &str = "\
Example:
  dray vhost metrics --control /tmp/dray.ctl > /var/lib/node-exporter/dray.prom";

/// What a running switch is asked.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Add, remove or list the ports of a running switch.
    #[command(subcommand, after_help = PORT_EXAMPLES)]
    Port(PortVerb),
    /// Add, remove or list the channels of a running switch.
    #[command(subcommand, after_help = CHANNEL_EXAMPLES)]
    Channel(ChannelVerb),
    /// Print the counters of a running switch as OpenMetrics text.
    #[command(after_help = METRICS_EXAMPLES)]
    Metrics(Running),
}

/// Which switch.
#[derive(Debug, clap::Args)]
pub(crate) struct Running {
    /// The control socket of the switch.
    #[arg(long, value_name = "PATH")]
    control: PathBuf,
}

/// Verbs of `dray vhost port`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum PortVerb {
    /// Add a port, written as for --port; a socket's path begins with /.
    #[command(after_help = PORT_EXAMPLES)]
    Add {
        /// The port.
        port: PortSpec,
        #[command(flatten)]
        running: Running,
    },
    /// Close a port and print its counters.
    #[command(after_help = PORT_EXAMPLES)]
    Remove {
        /// The port, with or without its options.
        port: String,
        #[command(flatten)]
        running: Running,
    },
    /// List the ports.
    #[command(after_help = PORT_EXAMPLES)]
    List(Running),
}

/// Verbs of `dray vhost channel`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ChannelVerb {
    /// Add a work queue of the mover in use, for both directions.
    #[command(after_help = CHANNEL_EXAMPLES)]
    Add {
        /// The work queue, such as wq0.4.
        queue: String,
        /// The thread that uses it; the one with the fewest channels if it is not said.
        #[arg(long, value_name = "NUMBER")]
        thread: Option<usize>,
        /// The port that it copies for; all if none is named.
        #[arg(long)]
        port: Option<String>,
        #[command(flatten)]
        running: Running,
    },
    /// Remove a channel: copies in flight are finished.
    #[command(after_help = CHANNEL_EXAMPLES)]
    Remove {
        /// The work queue.
        queue: String,
        #[command(flatten)]
        running: Running,
    },
    /// List the channels.
    #[command(after_help = CHANNEL_EXAMPLES)]
    List(Running),
}

impl Action {
    /// The switch that is asked, and the request.
    fn request(&self) -> (&Running, String) {
        use {ChannelVerb as C, PortVerb as P};
        match self {
            Action::Port(P::Add { port, running }) => (running, format!("port add {port}")),
            Action::Port(P::Remove { port, running }) => (running, format!("port remove {port}")),
            Action::Port(P::List(running)) => (running, "port list".to_owned()),
            Action::Channel(C::Add {
                queue,
                thread,
                port,
                running,
            }) => {
                let thread = thread.map_or(String::new(), |n| format!(" thread={n}"));
                let port = port
                    .as_ref()
                    .map_or(String::new(), |p| format!(" port={p}"));
                (running, format!("channel add {queue}{thread}{port}"))
            }
            Action::Channel(C::Remove { queue, running }) => {
                (running, format!("channel remove {queue}"))
            }
            Action::Channel(C::List(running)) => (running, "channel list".to_owned()),
            Action::Metrics(running) => (running, "metrics".to_owned()),
        }
    }
}

/// Asks a running switch, and prints its answer.
pub(super) fn run(action: &Action) -> anyhow::Result<()> {
    let (running, request) = action.request();
    let answer = ask(&running.control, &request)?;
    print::all(&mut std::io::stdout().lock(), &answer)?;
    Ok(())
}

/// What is the same for all ports that are added.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) mover: MoverKind,
    pub(super) copy_threshold: u32,
    /// Address space of a port, in bytes.
    pub(super) share: u64,
    /// Ports at most.
    pub(super) ports: usize,
}

impl Terms {
    /// Answers a request; `Err`: once the port with this name is gone.
    pub(super) fn answer(
        &self,
        line: &str,
        switch: &mut Switch,
        (events, seconds): (&mut Vec<Event>, f64),
    ) -> Result<Answer, String> {
        let (verb, rest) = match line.splitn(3, ' ').collect::<Vec<&str>>()[..] {
            [first, second, rest] => (format!("{first} {second}"), rest),
            _ => (line.to_owned(), ""),
        };
        Ok(match &verb[..] {
            "port add" => self.add_port(rest, switch),
            "port remove" => match port_named(switch, rest) {
                Ok((at, name)) => {
                    switch.remove_port(at, events);
                    return Err(name);
                }
                Err(error) => Err(error),
            },
            "port list" => Ok(ports(switch, seconds)),
            "channel add" => self.add_channel(rest, switch),
            "channel remove" => match switch.remove_channel(rest) {
                true => Ok(String::new()),
                false => Err(format!("there is no channel {rest}")),
            },
            "channel list" => Ok(channels(switch, seconds)),
            "metrics" => Ok(metrics::text(&switch.report(seconds))),
            _ => Err(format!("{line:?} is no request")),
        })
    }

    fn add_port(&self, text: &str, switch: &mut Switch) -> Answer {
        let port: PortSpec = text.parse()?;
        if !port.has_full_path() {
            return Err("give the whole path: the switch may have another directory".into());
        }
        // Those that are being removed have their sockets and their memory still.
        let leaving = switch.leaving_names();
        if switch.port_names().len() + leaving.len() >= self.ports {
            return Err(format!("there are {} ports, as many as can be", self.ports));
        }
        if leaving.iter().any(|name| is_named(name, port.target())) {
            return Err(format!("{} is being removed; try again", port.target()));
        }
        if port_named(switch, port.target()).is_ok() {
            return Err(format!("there is a port {}", port.target()));
        }
        let at = switch.port_names().len();
        let wires = (0..switch.threads()).map(|thread| {
            let open = switch.open_channels(thread);
            let nth = |n: usize| open.get(n % open.len().max(1)).copied();
            Wire {
                to_guest: nth(2 * at).into_iter().collect(),
                from_guest: nth(2 * at + 1).into_iter().collect(),
            }
        });
        let wires: Vec<Wire> = wires.collect();
        let added = port.add(switch, &wires, self.copy_threshold, self.share);
        added.map_err(|error| with_causes(error.as_ref()))?;
        Ok(String::new())
    }

    fn add_channel(&self, text: &str, switch: &mut Switch) -> Answer {
        let (text, port) = match text.split_once(" port=") {
            Some((text, port)) => (text, Some(port_named(switch, port)?.0)),
            None => (text, None),
        };
        let (queue, thread) = match text.split_once(" thread=") {
            Some((queue, thread)) => {
                let number = thread.parse().ok().filter(|n| *n < switch.threads());
                let error = || format!("thread {thread:?}: there are {}", switch.threads());
                (queue, number.ok_or_else(error)?)
            }
            None => {
                let count = |thread: &usize| switch.open_channels(*thread).len();
                (text, (0..switch.threads()).min_by_key(count).unwrap_or(0))
            }
        };
        if switch.has_channel(queue) {
            return Err(format!("there is a channel {queue}"));
        }
        let channel = assign::open_one(self.mover, queue);
        let channel = channel.map_err(|error| with_causes(error.as_ref()))?;
        let all = || switch.port_names().into_iter().map(|(at, _)| at).collect();
        let ports = port.map_or_else(all, |port| vec![port]);
        switch.add_channel(thread, channel, &ports);
        Ok(String::new())
    }
}

/// Whether a port with this name is meant, with or without its options.
fn is_named(name: &str, text: &str) -> bool {
    name == text || name.split(',').next() == Some(text)
}

/// The number and the name of a port that is named with or without its options.
fn port_named(switch: &Switch, text: &str) -> Result<(usize, String), String> {
    let mut all = switch.port_names().into_iter();
    let found = all.find(|(_, name)| is_named(name, text));
    found.ok_or_else(|| format!("there is no port {text}"))
}

fn ports(switch: &Switch, seconds: f64) -> String {
    let report = switch.report(seconds);
    let mut table = print::plain([
        "port",
        "connected",
        "pairs",
        "threads",
        "packets",
        "dropped",
    ]);
    for port in &report.ports {
        let (packets, dropped) = totals(port);
        let mut threads: Vec<usize> = port.queues.iter().filter_map(|q| q.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let threads: Vec<String> = threads.iter().map(usize::to_string).collect();
        table.add_row([
            port.name.clone(),
            if port.connected { "yes" } else { "no" }.to_owned(),
            (port.queues.len() / 2).to_string(),
            threads.join(","),
            packets.to_string(),
            dropped.to_string(),
        ]);
    }
    format!("{table}\n")
}

fn totals(port: &PortReport) -> (u64, u64) {
    let queues = port.queues.iter().map(|queue| &queue.counters);
    queues.fold((0, 0), |(packets, dropped), c| {
        (packets + c.packets, dropped + c.drops.total())
    })
}

/// What is said of a port that is gone.
pub(super) fn removed(port: &PortReport) -> String {
    let (packets, dropped) = totals(port);
    format!("{}: {packets} packets, {dropped} dropped\n", port.name)
}

fn channels(switch: &Switch, seconds: f64) -> String {
    let mut table = print::plain(["channel", "executor", "thread", "copies", "in flight"]);
    for channel in switch.report(seconds).channels {
        table.add_row([
            channel.name,
            channel.executor.to_owned(),
            channel.thread.to_string(),
            channel.copies.to_string(),
            channel.in_flight.to_string(),
        ]);
    }
    format!("{table}\n")
}
