//! Copies of the driver, so that several threads change different devices at once.

use super::{Driver, Event, Registers};

impl<R: Registers + Clone> Driver<R> {
    /// A copy in which one device is to be changed, with no events of its own yet.
    pub fn copy(&self) -> Driver<R> {
        Driver {
            options: self.options.clone(),
            devices: self.devices.clone(),
            events: Vec::new(),
        }
    }

    /// Takes one device from a [copy](Self::copy) in which it was changed, with the events of that change.
    /// Other devices may have been changed since the copy was made, this one not.
    ///
    /// A minor number that another device has got meanwhile is replaced by the lowest that is free.
    pub fn adopt(&mut self, device: u32, mut changed: Driver<R>) {
        let Some(at) = self.index_of(device) else {
            return;
        };
        for wq in 0..changed.devices[at].queues.len() {
            let minor = changed.devices[at].queues[wq].minor;
            let others = self
                .devices
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at);
            let mut taken = others.flat_map(|(_, other)| &other.queues).map(|q| q.minor);
            if minor.is_some() && taken.any(|other| other == minor) {
                changed.renumber(at, wq, self);
            }
        }
        self.devices[at] = changed.devices.swap_remove(at);
        self.events.append(&mut changed.events);
    }

    /// Gives the node of a work queue the lowest minor number that neither this device nor any of `current` has.
    fn renumber(&mut self, at: usize, wq: usize, current: &Driver<R>) {
        let others = current
            .devices
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at);
        let others = others.flat_map(|(_, device)| &device.queues);
        let taken: Vec<u32> = others
            .chain(&self.devices[at].queues)
            .filter_map(|queue| queue.minor)
            .collect();
        let free = (0..).find(|minor| !taken.contains(minor)).unwrap_or(0);
        let id = self.devices[at].part.id;
        self.devices[at].queues[wq].minor = Some(free);
        for event in &mut self.events {
            if let Event::NodeAppears {
                device,
                wq: node,
                minor,
            } = event
                && *device == id
                && usize::from(*node) == wq
            {
                *minor = free;
            }
        }
    }
}
