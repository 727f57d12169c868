//! What each message does.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::device::{Backend, Saved};
use crate::VhostError;
use crate::memory::{DirtyLog, MemoryMap, RegionInfo};
use crate::net::rarp;
use crate::notify::non_blocking;
use crate::protocol::features as f;
use crate::protocol::{Message, Notify, Reply, Request, Session, VringAddress, VringConfig};
use crate::ring::MAX_SIZE;

impl Backend {
    /// Carries a message out. Copies that it could disturb have ended.
    pub(super) fn apply(&mut self, message: Message) -> Result<Option<Reply>, VhostError> {
        match message {
            Message::GetFeatures => {
                return Ok(Some(Reply::Number(self.session.options().features)));
            }
            Message::SetFeatures(features) => {
                let running = self.queues.iter().any(|q| q.is_started());
                let enables = self.session.set_features(features, running)?;
                self.use_log();
                if enables {
                    for queue in 0..self.queues.len() {
                        self.enable(queue, true);
                    }
                }
            }
            Message::SetOwner => {}
            Message::ResetOwner => {
                for queue in 0..self.queues.len() {
                    self.enable(queue, false);
                }
            }
            Message::SetMemTable(table) => self.set_table(table)?,
            Message::SetLogBase {
                bytes,
                offset,
                file,
            } => return self.set_log(bytes, offset, file).map(Some),
            Message::SetLogFd(event) => {
                self.log_event = non_blocking(event);
                self.tell_of_log();
            }
            Message::SetVringNum { index, size } => {
                let index = self.stopped(index, Request::SetVringNum)?;
                if size == 0 || size > MAX_SIZE {
                    return Err(VhostError::Ring {
                        index,
                        reason: "the size is 0 or above 32768",
                    });
                }
                self.vrings[index].size = size;
            }
            Message::SetVringAddr(address) => self.set_address(address)?,
            Message::SetVringBase { index, base } => {
                let index = self.stopped(index, Request::SetVringBase)?;
                self.vrings[index].base = base;
            }
            Message::GetVringBase { index } => {
                let at = self.known(index)?;
                let base = self.queue(at).stop();
                let vring = &mut self.vrings[at];
                vring.base = base.unwrap_or(vring.base);
                vring.kick = Notify::Unset;
                self.saved[at] = None;
                return Ok(Some(Reply::State(index, vring.base)));
            }
            Message::SetVringKick { index, descriptor } => {
                let index = self.known(index)?;
                self.vrings[index].kick = Notify::from_message(non_blocking(descriptor));
            }
            Message::SetVringCall { index, descriptor } => {
                let index = self.known(index)?;
                self.queue(index).set_call(non_blocking(descriptor));
            }
            Message::SetVringErr { index, descriptor } => {
                let index = self.known(index)?;
                self.queue(index).set_error(non_blocking(descriptor));
            }
            Message::GetProtocolFeatures => {
                let offered = self.session.options().protocol_features;
                return Ok(Some(Reply::Number(offered)));
            }
            Message::SetProtocolFeatures(features) => {
                self.session.set_protocol_features(features)?;
            }
            Message::GetQueueNum => return Ok(Some(Reply::Number(self.pairs() as u64))),
            Message::SetVringEnable { index, enable } => {
                let index = self.known(index)?;
                self.enable(index, enable);
            }
            Message::SendRarp(mac) => {
                self.from_guest(0).inject(rarp(mac));
            }
            Message::NetSetMtu(mtu) => self.session.set_mtu(mtu)?,
            Message::ResetDevice => self.reset(),
            Message::GetMaxMemSlots => {
                let slots = self.session.options().memory_slots;
                return Ok(Some(Reply::Number(slots.into())));
            }
            Message::AddMemReg(region, file) => self.add_region(region, file)?,
            Message::RemMemReg(region) => {
                let memory = self.memory.without(&region)?;
                self.use_memory(memory);
            }
            Message::SetStatus(status) => {
                if status == 0 {
                    self.reset();
                }
                self.session.set_status(status);
            }
            Message::GetStatus => return Ok(Some(Reply::Number(self.session.status()))),
            Message::NotOffered(request) => {
                return Err(VhostError::Refused {
                    request,
                    reason: "it was not offered",
                });
            }
            Message::Unknown(id) => {
                self.stats.unknown += 1;
                return Err(VhostError::UnknownRequest { id });
            }
        }
        Ok(None)
    }

    fn known(&self, index: u32) -> Result<usize, VhostError> {
        let count = self.queues.len();
        match (index as usize) < count {
            true => Ok(index as usize),
            false => Err(VhostError::NoQueue { index, count }),
        }
    }

    /// The index of a queue whose ring is stopped.
    fn stopped(&self, index: u32, request: Request) -> Result<usize, VhostError> {
        let index = self.known(index)?;
        match self.queue(index).is_started() {
            false => Ok(index),
            true => Err(VhostError::Refused {
                request,
                reason: "the ring is running",
            }),
        }
    }

    fn enable(&mut self, index: usize, enabled: bool) {
        self.vrings[index].enabled = enabled;
        self.queue(index).set_enabled(enabled);
    }

    fn set_address(&mut self, address: VringAddress) -> Result<(), VhostError> {
        let index = self.known(address.index)?;
        if self.queue(index).is_started() {
            // On a live ring only what concerns logging may change.
            let same = self.vrings[index]
                .address
                .is_some_and(|a| is_same(&a, &address));
            return match same {
                true => {
                    self.vrings[index].address = Some(address);
                    self.queue(index).set_ring_log(address.ring_log());
                    Ok(())
                }
                false => Err(VhostError::Refused {
                    request: Request::SetVringAddr,
                    reason: "the ring is running",
                }),
            };
        }
        self.vrings[index].address = Some(address);
        Ok(())
    }

    /// The front end waits for an answer even without `NEED_REPLY`.
    fn set_log(&mut self, bytes: u64, offset: u64, file: OwnedFd) -> Result<Reply, VhostError> {
        if self.session.protocol_features() & f::PROTOCOL_LOG_SHMFD == 0 {
            return Err(VhostError::Refused {
                request: Request::SetLogBase,
                reason: "LOG_SHMFD was not agreed on",
            });
        }
        match DirtyLog::new(file, bytes, offset, &self.memory) {
            Ok(log) => {
                self.log = Some(Arc::new(log));
                self.tell_of_log();
                self.use_log();
                Ok(Reply::Number(0))
            }
            Err(error) => {
                self.stats.refused += 1;
                self.keep_error(error);
                Ok(Reply::Number(1))
            }
        }
    }

    fn tell_of_log(&self) {
        if let Some(log) = &self.log {
            let event = self.log_event.as_ref();
            log.set_event(event.and_then(|event| event.try_clone().ok()));
        }
    }

    /// Queues log what they write while LOG_ALL is in force.
    fn use_log(&mut self) {
        let logs = self.session.features() & f::LOG_ALL != 0;
        for mut queue in self.queues.iter() {
            queue.set_log(self.log.clone().filter(|_| logs));
        }
    }

    /// Whether a table describes the memory that is mapped.
    pub(super) fn is_same_table(&self, table: &[(RegionInfo, OwnedFd)]) -> bool {
        table.len() == self.memory.len()
            && self
                .memory
                .regions()
                .all(|region| table.iter().any(|(info, _)| info == region))
    }

    fn set_table(&mut self, table: Vec<(RegionInfo, OwnedFd)>) -> Result<(), VhostError> {
        if self.is_same_table(&table) {
            return Ok(());
        }
        let memory = self.memory.replaced_by(table)?;
        self.use_memory(memory);
        Ok(())
    }

    fn add_region(&mut self, region: RegionInfo, file: OwnedFd) -> Result<(), VhostError> {
        let slots = usize::from(self.session.options().memory_slots);
        if self.memory.len() >= slots {
            return Err(VhostError::Refused {
                request: Request::AddMemReg,
                reason: "all memory slots are taken",
            });
        }
        let memory = self.memory.with(region, file)?;
        self.use_memory(memory);
        Ok(())
    }

    /// Moves running rings to a map. A ring that is not in it is stopped.
    fn use_memory(&mut self, memory: MemoryMap) {
        self.memory = Arc::new(memory);
        for index in 0..self.queues.len() {
            let address = self.vrings[index].address;
            let mut queue = self.queues.lock(index);
            let (true, Some(address)) = (queue.is_started(), address) else {
                continue;
            };
            if let Err(reason) = queue.relocate(&address, &self.memory) {
                match queue.in_flight() {
                    0 => drop(queue.stop()),
                    _ => queue.give_up(),
                }
                drop(queue);
                // Until the front end says something new about it.
                self.vrings[index].kick = Notify::Unset;
                self.keep_error(VhostError::Ring { index, reason });
            }
        }
    }

    /// Starts every ring that has all it needs: size, addresses, a kick, and a ready driver.
    ///
    /// # Errors
    /// That of the last ring which cannot be started; others are kept.
    pub(super) fn start_ready(&mut self) -> Result<(), VhostError> {
        let mut result = Ok(());
        if !self.session.driver_ok() {
            return result;
        }
        for index in 0..self.queues.len() {
            let vring = &self.vrings[index];
            let (Some(address), true) = (vring.address, vring.kick.is_set()) else {
                continue;
            };
            let queue = self.queue(index);
            if queue.is_started() || queue.in_flight() > 0 || vring.size == 0 {
                continue;
            }
            drop(queue);
            self.restore_base(index, &address);
            let features = self.session.features();
            let (vring, memory) = (&self.vrings[index], self.memory.clone());
            let started = self.queue(index).start(vring, features, memory);
            if let Err(reason) = started {
                // Until the front end says something new about it.
                self.vrings[index].kick = Notify::Unset;
                let error = Err(VhostError::Ring { index, reason });
                if let Err(earlier) = std::mem::replace(&mut result, error) {
                    self.keep_error(earlier);
                }
            }
        }
        result
    }

    /// After a broken connection some front ends send base 0 for a packed ring that went on: where
    /// it stood is known if it is the same ring.
    fn restore_base(&mut self, index: usize, address: &VringAddress) {
        let Some(saved) = self.saved[index].take() else {
            return;
        };
        let vring = &mut self.vrings[index];
        let packed = self.session.features() & f::RING_PACKED != 0;
        let same = is_same(&saved.address, address) && saved.size == vring.size;
        if packed && same && vring.base == 0 {
            vring.base = saved.base;
        }
    }

    /// As after power-on, with the connection and its memory.
    fn reset(&mut self) {
        for index in 0..self.queues.len() {
            self.queue(index).stop();
            self.vrings[index].kick = Notify::Unset;
            self.vrings[index].base = 0;
            self.saved[index] = None;
        }
        self.session.set_status(0);
    }

    /// The connection is gone.
    pub(super) fn reset_connection(&mut self) {
        for index in 0..self.queues.len() {
            let mut queue = self.queues.lock(index);
            let base = queue.stop();
            let vring = &self.vrings[index];
            if let (Some(base), Some(address)) = (base, vring.address) {
                self.saved[index] = Some(Saved {
                    address,
                    size: vring.size,
                    base,
                });
            }
            queue.set_enabled(false);
            queue.set_call(None);
            queue.set_error(None);
            self.vrings[index] = VringConfig::default();
        }
        self.memory = Arc::new(self.memory.cleared());
        (self.log, self.log_event) = (None, None);
        self.session = Session::new(*self.session.options());
        self.use_log();
    }
}

fn is_same(a: &VringAddress, b: &VringAddress) -> bool {
    (a.descriptors, a.used, a.available) == (b.descriptors, b.used, b.available)
}
