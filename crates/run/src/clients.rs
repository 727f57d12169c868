//! Open work queues and mapped portals: their clients, and what is done at their end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dray_idxd::driver::{ClientId, Errno};
use dray_realtime::Client as Writer;
use dray_remote::Spaces;
use dray_spec::registers::Command;
use dray_wire::{Attached, Flags, Node};

use crate::Require;
use crate::fault_injection::Countdown;
use crate::machine::SessionDevices;
use crate::node::UNSAFE_BATCHES;
use crate::openers::Openers;
use crate::processes::{Pid, Processes, is_capable, process_of};
use crate::recorder::Owners;
use crate::tree::Tree;

/// `CAP_SYS_RAWIO`.
const RAW_IO: u32 = 17;
/// The driver maps a portal, which is one page.
const PAGE: u64 = 4096;

/// All that programs have open.
#[derive(Debug)]
pub(crate) struct Clients {
    pub(crate) machine: Arc<SessionDevices>,
    spaces: Arc<Spaces>,
    processes: Processes,
    owners: Arc<Owners>,
    rules: Rules,
    pub(crate) openers: Openers,
    countdown: Countdown,
    table: Mutex<HashMap<u64, Client>>,
    /// By device and PASID: the writer in the rings, and how many mappings use it.
    writers: Mutex<HashMap<(u32, u32), (Writer, usize)>>,
    /// Held while an address space gets or loses its PASID: a number that is free is given again only when all that
    /// was known by it is forgotten.
    changing_pasids: Mutex<()>,
}

/// What programs may do with a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// One way in alone.
    pub(crate) require: Option<Require>,
    /// This process is root as the kernel understands it, and so may programs be.
    pub(crate) privileged: bool,
    /// Nodes are opened by the preload library alone.
    pub(crate) preloaded: bool,
}

/// An open node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    pub(crate) device: u32,
    pub(crate) wq: u16,
    pub(crate) pid: Pid,
    pub(crate) pasid: u32,
    id: ClientId,
    /// The open file, and each mapping that is known by its connection.
    holds: usize,
    /// Mappings without one: the kernel closes the file with the last of them.
    kept: usize,
}

/// A mapped portal.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) cookie: u64,
    pub(crate) device: u32,
    pasid: u32,
    /// The page is a mapping of the node's file.
    pub(crate) held_by_file: bool,
}

impl Clients {
    pub(crate) fn new(
        machine: Arc<SessionDevices>,
        spaces: Arc<Spaces>,
        owners: Arc<Owners>,
        rules: Rules,
        countdown: Countdown,
    ) -> Clients {
        Clients {
            machine,
            spaces,
            processes: Processes::default(),
            owners,
            rules,
            openers: Openers::default(),
            countdown,
            table: Mutex::default(),
            writers: Mutex::default(),
            changing_pasids: Mutex::default(),
        }
    }

    /// The files that programs find.
    pub(crate) fn tree(&self) -> Tree<'_> {
        Tree {
            machine: &self.machine,
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<u64, Client>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An open node, by its cookie.
    pub(crate) fn get(&self, cookie: u64) -> Option<Client> {
        self.table().get(&cookie).copied()
    }

    /// open(2) of a node by a thread; gives the cookie.
    pub(crate) fn open(&self, device: u32, wq: u16, thread: u32) -> Result<u64, Errno> {
        self.countdown.count();
        let pid = process_of(thread).ok_or(Errno::ENXIO)?;
        let pasid = self.hold(pid)?;
        let id = self
            .machine
            .open(device, wq, pasid)
            .inspect_err(|_| self.let_go(pasid))?;
        let client = Client {
            device,
            wq,
            pid,
            pasid,
            id,
            holds: 1,
            kept: 0,
        };
        let mut table = self.table();
        let cookie = loop {
            let cookie = random();
            // 0 is the handle of files that are no nodes.
            if cookie != 0 && !table.contains_key(&cookie) {
                break cookie;
            }
        };
        table.insert(cookie, client);
        drop(table);
        let node = format!("wq{device}.{wq}");
        self.openers.opened(cookie, pid, node, self.rules.preloaded);
        Ok(cookie)
    }

    /// The PASID of a process's address space, which the devices can reach from now on.
    fn hold(&self, pid: Pid) -> Result<u32, Errno> {
        let _changing = self.changing_pasids();
        let is_there = |pasid| self.spaces.is_there(pasid);
        let held = self.processes.hold(pid, is_there);
        let (pasid, new) = held.ok_or(Errno::ENXIO)?;
        if new && self.spaces.add(pasid, pid).is_err() {
            self.processes.let_go(pasid);
            return Err(Errno::ENXIO);
        }
        if new {
            self.owners.add(pasid, pid);
        }
        Ok(pasid)
    }

    fn changing_pasids(&self) -> MutexGuard<'_, ()> {
        let lock = self.changing_pasids.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }

    fn let_go(&self, pasid: u32) {
        let _changing = self.changing_pasids();
        if let Some(pid) = self.processes.let_go(pasid) {
            self.owners.remove(pasid, pid);
            self.spaces.remove(pasid);
        }
    }

    /// The open file is closed, or a mapping of it has ended. After the last of them the work that is
    /// under way ends before anyone else gets the queue or the PASID (`idxd_cdev_release`).
    pub(crate) fn close(&self, cookie: u64) {
        let last = {
            let mut table = self.table();
            let Some(client) = table.get_mut(&cookie) else {
                return;
            };
            client.holds -= 1;
            match client.holds {
                0 => table.remove(&cookie),
                _ => None,
            }
        };
        let Some(client) = last else {
            return;
        };
        self.openers.closed(cookie);
        for _ in 0..client.kept {
            self.forget_writer(client.device, client.pasid);
        }
        if let Some(device) = self.machine.device(client.device) {
            // A device that is disabled or has stopped has nothing to drain.
            let _ = device.command(Command::DrainPasid, client.pasid);
        }
        // The same: what is not there any more cannot be closed.
        let _ = self.machine.release(client.device, client.id);
        self.let_go(client.pasid);
    }

    /// mmap(2) of a node by a process: what it needs to write descriptors, and the mapping.
    pub(crate) fn map(
        &self,
        cookie: u64,
        pid: Pid,
        length: u64,
    ) -> Result<(Attached, Mapping), Errno> {
        let client = self.get(cookie).ok_or(Errno::ENXIO)?;
        // The order of `idxd_cdev_mmap`.
        if self.restricts_mapping(client.device) && !self.may_map(pid) {
            return Err(Errno::EPERM);
        }
        // A descriptor that came over execve(2) is of an address space that is gone.
        if pid != client.pid || !self.spaces.is_there(client.pasid) {
            return Err(Errno::EPERM);
        }
        if length > PAGE {
            return Err(Errno::EINVAL);
        }
        let device = self.machine.device(client.device).ok_or(Errno::ENXIO)?;
        self.machine.is_alive(client.device)?;
        let region = device.region().ok_or(Errno::ENXIO)?;
        let portal = self
            .machine
            .portal(client.device, client.wq)
            .ok_or(Errno::ENXIO)?;
        let writer = self.sign(client.device, client.pasid)?;
        let dedicated = match portal.mode() {
            dray_device::WorkQueueMode::Dedicated => Flags::DEDICATED,
            dray_device::WorkQueueMode::Shared => Flags::default(),
        };
        let block = match self.attribute(client, "block_on_fault") {
            Some(1) => Flags::BLOCK_ON_FAULT,
            _ => Flags::default(),
        };
        let shape = region.layout();
        let mut attached = Attached::blank();
        attached.pasid = client.pasid;
        attached.device = client.device;
        attached.wq = client.wq;
        attached.rings = shape.queues;
        attached.ring_entries = shape.entries;
        attached.size = portal.size();
        attached.threshold = self.attribute(client, "threshold").unwrap_or(0) as u16;
        attached.client = writer;
        attached.flags = dedicated.with(block);
        if let Some(client) = self.table().get_mut(&cookie) {
            client.holds += 1;
        }
        self.openers.mapped(cookie);
        let mapping = Mapping {
            cookie,
            device: client.device,
            pasid: client.pasid,
            held_by_file: false,
        };
        Ok((attached, mapping))
    }

    /// Whether a process needs `CAP_SYS_RAWIO` to map a portal of a device: a kernel from 6.10 on asks for it where
    /// users can harm others by batches.
    fn restricts_mapping(&self, device: u32) -> bool {
        let unsafe_batches = |machine: &SessionDevices| {
            let device = machine.device(device);
            device.is_some_and(|d| d.hardware().capabilities.version <= UNSAFE_BATCHES)
        };
        match self.rules.require {
            Some(Require::Write) => true,
            Some(Require::Portal) => false,
            None => self.machine.personality().restricts_mapping() && unsafe_batches(&self.machine),
        }
    }

    /// Whether the kernel would let a process map where that can harm others (INTEL-SA-01084).
    fn may_map(&self, pid: Pid) -> bool {
        self.rules.privileged && is_capable(pid, RAW_IO)
    }

    /// A mapping has ended: its process has unmapped the portal, or has ended.
    pub(crate) fn unmap(&self, mapping: Mapping) {
        self.forget_writer(mapping.device, mapping.pasid);
        self.close(mapping.cookie);
    }

    /// The connection of a mapping has ended without a word: its process has closed it, which the mapping
    /// outlives, or is about to end. The kernel closes the file with the mapping.
    pub(crate) fn keep(&self, mapping: Mapping) {
        if let Some(client) = self.table().get_mut(&mapping.cookie) {
            client.kept += 1;
        }
        self.close(mapping.cookie);
    }

    /// Whether a client of this queue may be about to end: the connection of a mapping has ended, and not yet
    /// the mapping.
    pub(crate) fn is_ending(&self, device: u32, wq: u16) -> bool {
        let table = self.table();
        let mut of_queue = table.values().filter(|c| (c.device, c.wq) == (device, wq));
        of_queue.any(|client| client.kept > 0)
    }

    /// A mapping signs no more with its address space's number.
    fn forget_writer(&self, id: u32, pasid: u32) {
        let last = {
            let mut writers = self.writers();
            let key = (id, pasid);
            match writers.get_mut(&key) {
                Some((_, holds)) if *holds > 1 => {
                    *holds -= 1;
                    None
                }
                _ => writers.remove(&key),
            }
        };
        if last.is_some() {
            self.owners.unmapped(id, pasid);
        }
        if let (Some((writer, _)), Some(device)) = (last, self.machine.device(id)) {
            // A device that has stopped has forgotten all writers.
            let _ = device.abandon(writer);
        }
    }

    fn writers(&self) -> MutexGuard<'_, HashMap<(u32, u32), (Writer, usize)>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an address space signs with in the rings of a device: the same for all that it maps.
    fn sign(&self, id: u32, pasid: u32) -> Result<u16, Errno> {
        let device = self.machine.device(id).ok_or(Errno::ENXIO)?;
        let mut writers = self.writers();
        if let Some((writer, holds)) = writers.get_mut(&(id, pasid)) {
            *holds += 1;
            return Ok(writer.number());
        }
        let writer = device.admit().ok_or(Errno::EAGAIN)?;
        let number = writer.number();
        writers.insert((id, pasid), (writer, 1));
        Ok(number)
    }

    /// Whether a client's address space is the one that its process has now.
    pub(crate) fn is_present(&self, client: Client) -> bool {
        self.spaces.is_there(client.pasid)
    }

    /// Device and queue of an open node, for a caller of ioctl.
    pub(crate) fn node(&self, cookie: u64) -> Option<Node> {
        let client = self.get(cookie)?;
        Some(Node::new(client.device, client.wq, cookie))
    }

    pub(crate) fn rules(&self) -> Rules {
        self.rules
    }

    /// A number that the driver shows of a work queue.
    pub(crate) fn attribute(&self, client: Client, name: &str) -> Option<u32> {
        let Client { device, wq, .. } = client;
        let path = format!("/sys/bus/dsa/devices/wq{device}.{wq}/{name}");
        let bytes = self.machine.read(&path).ok()?;
        std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
    }
}

/// A number that cannot be guessed.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    let mut filled = 0;
    while filled < bytes.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        match rustix::rand::getrandom(&mut bytes[filled..], flags) {
            Ok(more) => filled += more,
            // Interrupted, by no signal that this process handles.
            Err(_) => continue,
        }
    }
    u64::from_ne_bytes(bytes)
}
