//! Who has a work queue open (`drivers/dma/idxd/cdev.c`).

use super::enable::Bound;
use super::{Driver, Errno, Registers};

/// An open work queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId {
    /// Number of the device.
    device: u32,
    /// Counts those that have opened a work queue of the device.
    number: u64,
}

impl<R: Registers> Driver<R> {
    /// open(2) of `/dev/dsa/wqD.Q` by a process with this PASID.
    ///
    /// A dedicated queue gets the PASID for as long as it is open: it is disabled, written and
    /// enabled again.
    ///
    /// # Errors
    /// `ENOENT` where there is no such node, `EBUSY` for a dedicated queue that someone has open,
    /// `ENXIO` where the device refuses, `EAGAIN` while descriptors are in flight.
    pub fn open(&mut self, device: u32, wq: u16, pasid: u32) -> Result<ClientId, Errno> {
        let index = self.index_of(device).ok_or(Errno::ENOENT)?;
        let wq = usize::from(wq);
        let part = &mut self.devices[index];
        let queue = part.queues.get(wq).ok_or(Errno::ENOENT)?;
        if queue.bound != Some(Bound::User) {
            return Err(Errno::ENOENT);
        }
        if queue.dedicated && !queue.clients.is_empty() {
            return Err(Errno::EBUSY);
        }
        if queue.dedicated && part.part.pasid_enabled {
            part.command_disable(wq)?;
            part.write_pasid(wq, Some(pasid), false);
            part.command_enable(wq)?;
        }
        let id = ClientId {
            device,
            number: part.next_client,
        };
        part.next_client += 1;
        part.queues[wq].clients.push(id);
        Ok(id)
    }

    /// The last reference to an open work queue is gone: closed and unmapped. A queue that was
    /// disabled meanwhile knows nothing of it any more.
    ///
    /// # Errors
    /// `ENOENT` where this is not open; `EAGAIN` while descriptors are in flight.
    pub fn release(&mut self, client: ClientId) -> Result<(), Errno> {
        let index = self.index_of(client.device).ok_or(Errno::ENOENT)?;
        let device = &mut self.devices[index];
        let mut queues = device.queues.iter();
        let Some(wq) = queues.position(|queue| queue.clients.contains(&client)) else {
            return match client.number < device.next_client {
                true => Ok(()),
                false => Err(Errno::ENOENT),
            };
        };
        if device.queues[wq].dedicated && device.part.pasid_enabled && device.queues[wq].enabled {
            device.command_disable(wq)?;
            device.write_pasid(wq, None, false);
            device.command_enable(wq)?;
        }
        let clients = &mut device.queues[wq].clients;
        clients.retain(|other| *other != client);
        Ok(())
    }
}
