//! How long one port keeps the others waiting.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// The longest pieces of work for one port that no other port could interrupt, in nanoseconds of the
/// thread's CPU time. Where the thread was off its CPU meanwhile they are what is certain. Interrupts and
/// a hypervisor's preemptions are in them, as the kernel counts them to the thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Turns {
    /// Packets: taken from the port in one turn, or sent to it at a time, or its copies polled.
    pub longest_turn_ns: u64,
    /// Messages of its front end.
    pub longest_control_ns: u64,
}

impl Turns {
    /// The longer ones.
    pub(super) fn max(self, other: Turns) -> Turns {
        Turns {
            longest_turn_ns: self.longest_turn_ns.max(other.longest_turn_ns),
            longest_control_ns: self.longest_control_ns.max(other.longest_control_ns),
        }
    }
}

/// Measures turns. The CPU's clock costs a system call, so it is read only for a turn that took longer
/// than any before; the time since the last reading that the thread did not run is taken off.
#[derive(Debug)]
pub(super) struct Watch {
    turns: Vec<Turns>,
    last: (Instant, Duration),
}

impl Watch {
    pub(super) fn new() -> Watch {
        Watch {
            turns: Vec::new(),
            last: (Instant::now(), cpu_time()),
        }
    }

    /// Begins to measure a port.
    pub(super) fn add(&mut self, port: usize) {
        let count = self.turns.len().max(port + 1);
        self.turns.resize(count, Turns::default());
        self.turns[port] = Turns::default();
    }

    pub(super) fn turns(&self) -> &[Turns] {
        &self.turns
    }

    /// Reads both clocks: the more often, the less is taken off without need.
    pub(super) fn read(&mut self) {
        self.last = (Instant::now(), cpu_time());
    }

    /// A turn of a port has just ended that took so long.
    #[inline]
    pub(super) fn end(&mut self, port: usize, elapsed: Duration) {
        if elapsed.as_nanos() as u64 > self.turns[port].longest_turn_ns {
            let time = self.on_cpu(elapsed);
            let longest = &mut self.turns[port].longest_turn_ns;
            *longest = time.max(*longest);
        }
    }

    /// The same for messages.
    #[inline]
    pub(super) fn end_control(&mut self, port: usize, elapsed: Duration) {
        if elapsed.as_nanos() as u64 > self.turns[port].longest_control_ns {
            let time = self.on_cpu(elapsed);
            let longest = &mut self.turns[port].longest_control_ns;
            *longest = time.max(*longest);
        }
    }

    #[cold]
    fn on_cpu(&mut self, elapsed: Duration) -> u64 {
        let before = self.last;
        self.read();
        let cpu = self.last.1.saturating_sub(before.1);
        let away = (self.last.0 - before.0).saturating_sub(cpu);
        elapsed.saturating_sub(away).as_nanos() as u64
    }
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works until the thread has used so much CPU time.
    fn work(time: Duration) {
        let end = cpu_time() + time;
        while cpu_time() < end {}
    }

    #[test]
    fn the_longest_turn_of_each_port_is_kept_without_the_time_off_the_cpu() {
        let mut watch = Watch::new();
        (0..2).for_each(|port| watch.add(port));
        let start = Instant::now();
        work(Duration::from_millis(20));
        std::thread::sleep(Duration::from_secs(2));
        watch.end(1, start.elapsed());
        let first = watch.turns()[1];
        // Asleep it uses no CPU time, whatever else runs on the machine.
        assert!(first.longest_turn_ns < 1_900_000_000, "{first:?}");
        watch.end(1, Duration::from_nanos(1));
        watch.end_control(0, Duration::from_nanos(2));
        assert_eq!(watch.turns()[1], first, "a shorter one changes nothing");
        assert_eq!(watch.turns()[0].longest_turn_ns, 0);
    }
}
