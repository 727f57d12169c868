//! The back ends: this one in a process of its own, and the rival.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};

use dray_vhost::forward::{Mode, Switch};
use dray_vhost::port::{Port, VhostPort, VhostSetup};

use crate::client::Testpmd;
use crate::priority;

/// Steps between two looks at commands.
const COMMANDS_EVERY: u32 = 4096;

pub enum Server {
    Own(Own),
    Rival(Testpmd),
}

impl Server {
    pub fn pid(&self) -> u32 {
        match self {
            Server::Own(own) => own.child.id(),
            Server::Rival(rival) => rival.pid(),
        }
    }

    pub fn begin(&mut self, mode: &str, size: usize) -> Result<(), String> {
        match self {
            Server::Own(own) => own.ask(&format!("{mode} {size}")).map(drop),
            Server::Rival(rival) => rival.begin(mode, size, false),
        }
    }

    pub fn end(&mut self) -> Result<(), String> {
        match self {
            Server::Own(own) => own.ask("io 64").map(drop),
            Server::Rival(rival) => rival.end(),
        }
    }

    /// Counters of our queues; none of the rival's.
    pub fn counters(&mut self) -> Result<Option<Counters>, String> {
        match self {
            Server::Own(own) => own.ask("counters").map(|line| Counters::read(&line)),
            Server::Rival(_) => Ok(None),
        }
    }
}

/// Sums over our queues.
#[derive(Debug, Default)]
pub struct Counters {
    packets: f64,
    cycles: f64,
    busy: f64,
    empty: f64,
}

impl Counters {
    fn read(line: &str) -> Option<Counters> {
        let mut words = line.split_whitespace().map(str::parse::<f64>);
        let mut next = || words.next()?.ok();
        Some(Counters {
            packets: next()?,
            cycles: next()?,
            busy: next()?,
            empty: next()?,
        })
    }

    /// Ticks per packet in polls that moved one.
    pub fn cycles_since(&self, before: &Counters) -> f64 {
        (self.cycles - before.cycles) / (self.packets - before.packets)
    }

    /// Share of polls that moved none.
    pub fn empty_since(&self, before: &Counters) -> f64 {
        let empty = self.empty - before.empty;
        empty / (empty + self.busy - before.busy)
    }
}

/// This program as a back end.
pub struct Own {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Own {
    pub fn start(socket: &Path, cpu: usize) -> Result<Own, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut child = Command::new(program)
            .arg("--serve")
            .arg(socket)
            .arg(format!("--cpus={cpu},{cpu}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err("no pipes".to_owned());
        };
        let mut own = Own {
            child,
            input,
            output: BufReader::new(output),
        };
        own.ask(&format!("cpu {cpu}"))?;
        Ok(own)
    }

    fn ask(&mut self, command: &str) -> Result<String, String> {
        writeln!(self.input, "{command}").map_err(|e| format!("{command}: {e}"))?;
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .map_err(|e| e.to_string())?;
        match line.trim() {
            "" => Err(format!("{command}: the back end has ended")),
            line => Ok(line.to_owned()),
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Forwards at a socket and carries out the commands on its standard input, until that ends.
pub fn serve(socket: &Path) -> Result<(), String> {
    let (to, commands) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                break;
            }
        }
    });
    let polling = std::thread::Builder::new().name("rival-poll".to_owned());
    let socket = socket.to_owned();
    let thread = polling.spawn(move || -> Result<(), String> {
        let port =
            VhostPort::open(&socket, &VhostSetup::default(), &mut []).map_err(|e| e.to_string())?;
        let mut switch = Switch::new(vec![Port::Vhost(Box::new(port))], Vec::new(), Mode::Io);
        let mut events = Vec::new();
        loop {
            for _ in 0..COMMANDS_EVERY {
                switch.step(&mut events);
                events.clear();
            }
            match commands.try_recv() {
                Ok(command) => println!("{}", run_command(&mut switch, &command)),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => break,
            }
        }
        switch.close(Duration::from_secs(1), &mut events);
        Ok(())
    });
    let thread = thread.map_err(|e| e.to_string())?;
    thread
        .join()
        .map_err(|_| "the back end panicked".to_owned())?
}

fn run_command(switch: &mut Switch, command: &str) -> String {
    let mut words = command.split_whitespace();
    let (first, number) = (words.next().unwrap_or_default(), words.next());
    let number: usize = number.and_then(|n| n.parse().ok()).unwrap_or_default();
    let mode = match first {
        "cpu" => {
            priority::bind(number);
            return "bound".to_owned();
        }
        "counters" => return counters(switch),
        "io" => Mode::Io,
        "mac" => Mode::Mac,
        "rxonly" => Mode::RxOnly,
        "txonly" => Mode::TxOnly,
        _ => return format!("unknown: {command}"),
    };
    let until = Instant::now() + Duration::from_secs(1);
    let mut events = Vec::new();
    while !switch.set_mode(mode, number) && Instant::now() < until {
        switch.step(&mut events);
    }
    "set".to_owned()
}

fn counters(switch: &Switch) -> String {
    let mut sum = [0; 4];
    switch.each_port(|_, port| {
        port.each_queue(|queue| {
            let s = queue.stats();
            let of = [s.packets, s.busy_cycles, s.polls_busy, s.polls_empty];
            sum = std::array::from_fn(|i| sum[i] + of[i]);
        });
    });
    sum.map(|n| n.to_string()).join(" ")
}
