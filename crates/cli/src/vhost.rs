//! `dray vhost`.

mod assign;
mod control;
mod cores;
mod events;
mod metrics;
mod port;
mod requests;
mod seccomp;
mod show;
mod stats;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::ValueEnum;
use dray_experiment::parse_bytes;
use dray_vhost::backend::Event;
use dray_vhost::forward::{IDLE_STEPS, Mode, Report, Switch};

use crate::complain::Usage;
use crate::print::{self, TextOrJson};
use assign::{Dmas, Wiring};
use control::Control;
use cores::Cores;
use events::EventLog;
use port::PortSpec;
use requests::{Action, Terms};
use stats::StatsFile;

const EXAMPLES: &str = "\
Examples:
  dray vhost --port /tmp/a.sock --port /tmp/b.sock --forward switch
  dray vhost --port /tmp/a.sock --forward icmp --duration 10 --stats-file stats.json
  dray vhost --port /tmp/a.sock,queues=2 --forward mac --mover virtual
  dray vhost --port /tmp/a.sock,queues=4 --port tap:dray1 --cores 2-3
  dray vhost --port /tmp/a.sock,client --mover hw --dmas '[txd0@wq0.0,rxd0@wq0.1]'
  dray vhost --port /tmp/a.sock --control /tmp/dray.ctl
  dray vhost port add /tmp/b.sock --control /tmp/dray.ctl
  dray vhost --port /tmp/a.sock --port tap:dray0 --forward switch --interrupt
  dray vhost --port /tmp/a.sock --port xdp:eth1 --forward mac

A guest of QEMU reaches the first port with
  -object memory-backend-memfd,id=mem,size=512M,share=on -numa node,memdev=mem
  -chardev socket,id=c0,path=/tmp/a.sock -netdev vhost-user,id=n0,chardev=c0
  -device virtio-net-pci,netdev=n0
and DPDK with --vdev net_virtio_user0,path=/tmp/a.sock.

Exit codes: 0 ok (also after ctrl-C), 1 failed, 2 usage or bad input, 3 there is
no DSA.";

/// Copies of packets in flight when it ends are waited for, at most so long.
const END: Duration = Duration::from_secs(2);

/// Address space for the memory of all front ends, in bytes: half of what a process has. The other half
/// is for the moment at which an old and a new map of a port are there.
const ADDRESS_SPACE: u64 = 64 << 40;

fn threshold(text: &str) -> Result<u32, String> {
    let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
    u32::try_from(bytes).map_err(|_| format!("{bytes} bytes are more than any packet has"))
}

/// Arguments of `dray vhost`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// A port: a socket, a tap device, an interface.
    #[arg(
        help = "A port: SOCKET[,server|client][,queues=N][,no-offloads], tap:NAME, or xdp:INTERFACE (AF_XDP); may be repeated",
        long = "port",
        value_name = "PORT",
        required_unless_present = "control"
    )]
    ports: Vec<PortSpec>,
    /// Forwarding mode. Ports are wired in pairs (0 and 1, 2 and 3); a last one without a pair is wired to itself.
    #[arg(long, value_enum, default_value_t = Forward::Switch)]
    forward: Forward,
    /// Executor of the copies. `sync`: the core, within the call; the others asynchronously.
    #[arg(long, value_enum, default_value_t = MoverKind::Sync)]
    mover: MoverKind,
    /// Which work queues copy for which port, as DPDK's vhost example takes it: txdN to the guest of
    /// port N, rxdN from it.
    #[arg(long, value_name = "[txd0@wq0.0,rxd0@wq0.1]")]
    dmas: Option<Dmas>,
    /// Copies below this are made by the core, in bytes.
    #[arg(long, value_name = "SIZE", value_parser = threshold,
          default_value_t = dray_vhost::queue::DEFAULT_COPY_THRESHOLD)]
    copy_threshold: u32,
    /// Threads, one on each of these cores: queue pairs are spread over them, and move when the load shifts.
    #[arg(
        help = "Threads, one on each of these cores, such as 2-3 or 0,4: queue pairs are spread over them, and move when the load shifts",
        long,
        value_name = "LIST"
    )]
    cores: Option<Cores>,
    /// Sleep when there is nothing to do, until a guest notifies; without it the core polls.
    #[arg(long)]
    interrupt: bool,
    /// Listen at this socket for `dray vhost port`, `channel` and `metrics` of the same user.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Once it runs, allow only the system calls that it needs (seccomp): xdp ports cannot be added then.
    #[arg(long)]
    seccomp: bool,
    /// Stop after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,
    /// Write the counters to this file, every second and at the end.
    #[arg(long, value_name = "FILE")]
    stats_file: Option<PathBuf>,
    /// How the counters are printed at the end.
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    format: TextOrJson,
    /// Do not report connections on stderr.
    #[arg(long, short)]
    quiet: bool,
}

/// What is done with packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Forward {
    /// To the other port of the pair, unchanged.
    Io,
    /// To the other port, with the addresses swapped.
    Mac,
    /// Received packets are dropped.
    Rxonly,
    /// Generated packets are sent, as many as there is room for.
    Txonly,
    /// Answers to ARP and ICMP echo requests.
    Icmp,
    /// A learning switch between all ports.
    Switch,
}

/// Who copies packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MoverKind {
    /// The core, within the call.
    Sync,
    /// The core, through the mover's interface.
    Cpu,
    /// A virtual DSA on a thread of this process.
    Virtual,
    /// A DSA of this machine; inside `dray run` a virtual one.
    Hw,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let error = || format!("{text:?} is no number of seconds above 0");
    let number: f64 = text.parse().map_err(|_| error())?;
    match Duration::try_from_secs_f64(number) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(error()),
    }
}

/// Ports that a switch with a control socket can have, unless it begins with more.
const PORTS: usize = 64;
/// Time between two looks at the control socket.
const CONTROL: Duration = Duration::from_millis(2);

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(action) = &args.action {
        return requests::run(action).map(|()| ExitCode::SUCCESS);
    }
    let twice = |(at, port): (usize, &PortSpec)| {
        let before = &args.ports[..at];
        before.iter().any(|other| other.target() == port.target())
    };
    if let Some((_, port)) = args.ports.iter().enumerate().find(|port| twice(*port)) {
        return Err(Usage::error(
            format!("--port {}: there are two", port.target()),
            "each port needs a socket or an interface of its own",
        ));
    }
    let stats = args.stats_file.as_deref().map(StatsFile::open);
    let stats = stats.transpose()?;
    let control = args.control.as_deref().map(Control::bind).transpose()?;
    let cores = args.cores.as_ref().map(Cores::usable).transpose()?;
    let threads = cores.map_or(1, <[usize]>::len);
    let wiring = assign::open(args.mover, args.dmas.as_ref(), args.ports.len(), threads)?;
    let Wiring { channels, ports } = wiring;
    let mode = match args.forward {
        Forward::Io => Mode::Io,
        Forward::Mac => Mode::Mac,
        Forward::Rxonly => Mode::RxOnly,
        Forward::Txonly => Mode::TxOnly,
        Forward::Icmp => Mode::Icmp,
        Forward::Switch => Mode::Switch,
    };
    let mut switch = Switch::with_threads(channels, mode)?;
    let most = match args.control {
        Some(_) => args.ports.len().max(PORTS),
        None => args.ports.len(),
    };
    let share = ADDRESS_SPACE / most as u64;
    for (spec, wires) in args.ports.iter().zip(&ports) {
        spec.add(&mut switch, wires, args.copy_threshold, share)?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || flag.store(true, Ordering::SeqCst))
        .context("cannot install the handler of ctrl-C")?;
    if let Some(cores) = cores {
        switch.start(cores, args.interrupt)?;
    }
    if args.seccomp {
        seccomp::install()?;
    }
    let mut service = Service {
        control,
        terms: Terms {
            mover: args.mover,
            copy_threshold: args.copy_threshold,
            share,
            ports: most,
        },
        next: Instant::now(),
    };
    let started = Instant::now();
    let times = (&*stop, started);
    let result = forward(args, &mut switch, times, stats.as_ref(), &mut service);
    let mut events = Vec::new();
    if !switch.close(END, &mut events) {
        eprintln!(
            "warning: copies in flight did not end within {} s",
            END.as_secs()
        );
    }
    result?;
    let report = switch.report(started.elapsed().as_secs_f64());
    if let Some(stats) = stats {
        stats.end(&report)?;
    }
    let text = match args.format {
        TextOrJson::Text => show::table(&report),
        TextOrJson::Json => print::document(&report)?,
    };
    print::all(&mut io::stdout().lock(), &text)?;
    Ok(ExitCode::SUCCESS)
}

/// What answers on the control socket, if there is one.
struct Service {
    control: Option<Control>,
    terms: Terms,
    next: Instant,
}

impl Service {
    fn poll(
        &mut self,
        switch: &mut Switch,
        events: &mut Vec<Event>,
        started: Instant,
        now: Instant,
    ) {
        let Some(control) = self.control.as_mut().filter(|_| now >= self.next) else {
            return;
        };
        self.next = now + CONTROL;
        let seconds = (now - started).as_secs_f64();
        control.poll(|line| self.terms.answer(line, switch, (events, seconds)));
        for port in switch.take_removed() {
            control.removed(&port.name, &requests::removed(&port));
        }
    }

    fn wait(&self, switch: &mut Switch) {
        let busy = self.control.as_ref().is_some_and(Control::is_busy);
        let at_most = if busy {
            CONTROL
        } else {
            Duration::from_millis(100)
        };
        let listens = self.control.as_ref().map(Control::wait_on);
        switch.wait(listens, at_most);
    }
}

/// Forwards packets until the time is over or a signal ends it.
fn forward(
    args: &Args,
    switch: &mut Switch,
    (stop, started): (&AtomicBool, Instant),
    stats: Option<&StatsFile>,
    service: &mut Service,
) -> anyhow::Result<()> {
    let live = io::stderr().is_terminal() && !args.quiet;
    let mut idle = 0;
    let mut next_report = started + Duration::from_secs(1);
    let mut last: Option<Report> = None;
    let mut events = Vec::new();
    let mut log = EventLog::new(args.quiet);
    loop {
        idle = match switch.step(&mut events) {
            true => 0,
            false => idle + 1,
        };
        for event in events.drain(..) {
            log.print(&event);
        }
        if args.interrupt && idle >= IDLE_STEPS {
            service.wait(switch);
        }
        let now = Instant::now();
        service.poll(switch, &mut events, started, now);
        let over = args.duration.is_some_and(|d| now - started >= d);
        if over || stop.load(Ordering::SeqCst) {
            log.end_second();
            return Ok(());
        }
        if now >= next_report {
            next_report = now + Duration::from_secs(1);
            log.end_second();
            let mut report = switch.report((now - started).as_secs_f64());
            if let Some(last) = &last {
                report.rates_since(last);
            }
            if let Some(stats) = stats
                && !stats.put(&report)?
            {
                return Ok(());
            }
            if live {
                eprintln!("{}", show::line(last.as_ref(), &report));
            }
            last = Some(report);
        }
    }
}
