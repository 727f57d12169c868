//! Ports and channels of a running switch: which there are, and others.

use std::sync::Arc;

use super::thread::Thread;
use super::turns::Watch;
use super::{PortReport, Switch, Turns};
use crate::copy::{Channel, Channels};
use crate::port::Port;

impl Switch {
    /// Numbers and names of the ports that are not being removed.
    pub fn port_names(&self) -> Vec<(usize, String)> {
        let ports = self.ports.iter().enumerate();
        let staying = ports.filter_map(|(at, slot)| {
            let slot = slot.as_ref().filter(|slot| !slot.leaving)?;
            Some((at, slot.name.clone()))
        });
        staying.collect()
    }

    /// Names of the ports that are being removed.
    pub fn leaving_names(&self) -> Vec<String> {
        let leaving = self.ports.iter().flatten().filter(|slot| slot.leaving);
        leaving.map(|slot| slot.name.clone()).collect()
    }

    /// Calls `each` with the number and each port.
    pub fn each_port(&self, mut each: impl FnMut(usize, &Port)) {
        for (at, slot) in self.ports.iter().enumerate() {
            if let Some(slot) = slot {
                each(at, &slot.port);
            }
        }
    }

    /// Adds a channel to a thread, which waits meanwhile, and registers it with these ports' queues in both directions.
    pub fn add_channel(&mut self, thread: usize, channel: Channel, ports: &[usize]) {
        let mut worker = self.threads[thread].between_steps();
        let channels = &mut worker.channels;
        let at = channels.iter().position(Channel::is_closed);
        let at = at.unwrap_or(channels.len());
        let channel = channel.of_thread(thread);
        match channels.get_mut(at) {
            Some(closed) => *closed = channel,
            None => channels.push(channel),
        }
        for slot in ports
            .iter()
            .filter_map(|port| self.ports.get(*port)?.as_ref())
        {
            if let Port::Vhost(port) = &*slot.port {
                port.attach(channels, (&[at], &[at]));
            }
        }
    }

    /// Begins to remove a channel by its name: it gets no further copies, and goes when none is in flight. False if there
    /// is none.
    pub fn remove_channel(&mut self, name: &str) -> bool {
        let mut found = false;
        for thread in &self.threads {
            let mut worker = thread.between_steps();
            let named = worker.channels.iter().position(|c| c.name() == name);
            if let Some(at) = named.filter(|_| !name.is_empty()) {
                worker.close_channel(at);
                found = true;
            }
        }
        found
    }

    /// Whether a channel has this name.
    pub fn has_channel(&self, name: &str) -> bool {
        let has = |thread: &Arc<Thread>| {
            let worker = thread.between_steps();
            worker.channels.iter().any(|channel| channel.name() == name)
        };
        self.threads.iter().any(has)
    }

    /// Channels of a thread that queues may be registered with: neither closed nor about to be.
    pub fn open_channels(&self, thread: usize) -> Vec<usize> {
        self.threads[thread].between_steps().open_channels()
    }

    /// Ports that were removed since this was called last, with their last counters.
    pub fn take_removed(&mut self) -> Vec<PortReport> {
        std::mem::take(&mut self.removed)
    }

    /// Calls `with` with the channels of a thread, which waits meanwhile.
    pub fn with_channels<R>(&self, thread: usize, with: impl FnOnce(&mut Channels) -> R) -> R {
        with(&mut self.threads[thread].between_steps().channels)
    }

    /// How long a port's turns were, at most.
    pub fn turns(&self, port: usize) -> Turns {
        let of = |watch: &Watch| watch.turns().get(port).copied().unwrap_or_default();
        let threads = self
            .threads
            .iter()
            .map(|thread| of(&thread.between_steps().watch));
        threads.fold(of(&self.watch), Turns::max)
    }

    /// Packets taken from ports.
    pub fn packets_switched(&self) -> u64 {
        let threads = self.threads.iter();
        threads
            .map(|thread| thread.between_steps().packets_switched)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::open_cpu;
    use crate::forward::Mode;
    use crate::port::{VhostPort, VhostSetup};

    /// A port that is being removed counts until it is gone, and what is being removed gets nothing new.
    #[test]
    fn what_is_being_removed_is_told_from_what_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let channels = ["a", "b"].map(|name| Channel::new(name, open_cpu()));
        let mut switch = Switch::with_threads(vec![channels.into()], Mode::Switch).expect("it");
        let setup = VhostSetup {
            to_guest: vec![0],
            ..VhostSetup::default()
        };
        let port = switch.with_channels(0, |channels| {
            VhostPort::open(&dir.path().join("a"), &setup, channels).expect("a socket")
        });
        let at = switch.add_port("p", Port::Vhost(Box::new(port)));
        assert_eq!(switch.port_names(), [(at, "p".to_owned())]);
        assert!(switch.remove_port(at, &mut Vec::new()));
        assert!(switch.port_names().is_empty());
        assert_eq!(switch.leaving_names(), ["p"]);
        // As while a copy of its port is in flight.
        switch.threads[0].work().closing.push(0);
        assert_eq!(switch.open_channels(0), [1]);
        switch.threads[0].work().closing.clear();
        assert!(switch.remove_channel("b"));
        assert_eq!(switch.open_channels(0), [0]);
        switch.step(&mut Vec::new());
        assert!(switch.leaving_names().is_empty());
    }
}
