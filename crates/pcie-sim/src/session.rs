//! The benchmark's calls, on the simulated fabric.
//!
//! A program initialises devices, allocates their memory, and calls the communication primitives;
//! each returns a handle that is polled, as the published API does with a completion word.
//! Virtual time passes in [`Session::poll`], [`Session::wait`] and [`Session::advance`].

use std::collections::{BTreeMap, HashMap};

use crate::{
    Arrival, Memory, Operation, Profile, Scheduling, Simulation, SimulationOptions, Stream,
};
use dray_topology::PcieError;
use dray_topology::{NodeId, NodeKind, Topology};

/// Addresses of device memory are multiples of it.
const ALIGNMENT: u64 = 64;
/// No transfer takes so long, ns.
const LIMIT_NS: u64 = 1 << 50;

/// A device of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device(u32);

/// Memory of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceMemory {
    /// The device.
    pub device: Device,
    /// Where it begins in the device's memory.
    pub address: u64,
    /// Its length.
    pub bytes: u64,
}

/// A transfer that was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(u64);

/// A complete transfer, in three phases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Completion {
    /// Software, waiting for a queue, and polling, ns.
    pub host_ns: f64,
    /// On the fabric, ns.
    pub fabric_ns: f64,
    /// In the device, ns.
    pub device_ns: f64,
    /// From the call to its being known, ns.
    pub total_ns: f64,
}

#[derive(Debug)]
struct DeviceState {
    node: NodeId,
    name: String,
    /// Free ranges by address.
    free: BTreeMap<u64, u64>,
    used: BTreeMap<u64, u64>,
    /// Bytes of its memory that the host has mapped.
    mapped: u64,
}

/// A program at work on a fabric.
#[derive(Debug)]
pub struct Session<'a> {
    topology: &'a Topology,
    simulation: Simulation<'a>,
    host: NodeId,
    scheduling: Scheduling,
    outstanding: u32,
    seed: u64,
    devices: Vec<DeviceState>,
    streams: HashMap<(Operation, Device, Option<Device>), u32>,
    done: HashMap<u64, Completion>,
}

impl<'a> Session<'a> {
    /// A session of a thread on a host's socket. Transfers without a queue number go where
    /// `scheduling` says; at most `outstanding` of a kind and device are in flight.
    ///
    /// # Errors
    ///
    /// No host of this name.
    pub fn new(
        topology: &'a Topology,
        host: &str,
        scheduling: Scheduling,
        outstanding: u32,
        options: &SimulationOptions,
    ) -> Result<Self, PcieError> {
        Ok(Self {
            topology,
            simulation: Simulation::new(topology, &[], &[], options)?,
            host: topology.find(host)?,
            scheduling,
            outstanding,
            seed: options.seed,
            devices: Vec::new(),
            streams: HashMap::new(),
            done: HashMap::new(),
        })
    }

    /// `dev_init`: takes a device into the session.
    ///
    /// # Errors
    ///
    /// No endpoint of this name, or no path to it.
    pub fn dev_init(&mut self, name: &str) -> Result<Device, PcieError> {
        let node = self.topology.find(name)?;
        let NodeKind::Endpoint { parameters, .. } = &self.topology.node(node).kind else {
            return Err(refuse("dev_init", format!("`{name}` is not an endpoint")));
        };
        self.topology.route(self.host, node)?;
        self.devices.push(DeviceState {
            node,
            name: name.to_owned(),
            free: BTreeMap::from([(0, parameters.memory_bytes)]),
            used: BTreeMap::new(),
            mapped: 0,
        });
        Ok(Device(self.devices.len() as u32 - 1))
    }

    /// `dev_setup_mapping`: maps the first `bytes` of the device's memory for loads and stores.
    ///
    /// # Errors
    ///
    /// More than the device has.
    pub fn dev_setup_mapping(&mut self, device: Device, bytes: u64) -> Result<(), PcieError> {
        let NodeKind::Endpoint { parameters, .. } = &self.topology.node(self.node(device)).kind
        else {
            return Err(refuse("dev_setup_mapping", "not an endpoint".to_owned()));
        };
        if bytes == 0 || bytes > parameters.memory_bytes {
            let rule = format!("{bytes} bytes of a memory of {}", parameters.memory_bytes);
            return Err(refuse("dev_setup_mapping", rule));
        }
        self.devices[device.0 as usize].mapped = bytes;
        Ok(())
    }

    /// `dev_mem_alloc`: a range of the device's memory, aligned to 64 bytes; the lowest that fits.
    ///
    /// # Errors
    ///
    /// A length of 0, or no room.
    pub fn dev_mem_alloc(&mut self, device: Device, bytes: u64) -> Result<DeviceMemory, PcieError> {
        let state = &mut self.devices[device.0 as usize];
        let length = bytes
            .checked_next_multiple_of(ALIGNMENT)
            .filter(|length| *length > 0);
        let found = length.and_then(|length| {
            let fits = state.free.iter().find(|(_, free)| **free >= length);
            fits.map(|(address, free)| (*address, *free, length))
        });
        let Some((address, free, length)) = found else {
            return Err(refuse(
                "dev_mem_alloc",
                format!("no {bytes} bytes are free on `{}`", state.name),
            ));
        };
        state.free.remove(&address);
        if free > length {
            state.free.insert(address + length, free - length);
        }
        state.used.insert(address, length);
        Ok(DeviceMemory {
            device,
            address,
            bytes,
        })
    }

    /// `dev_mem_free`: gives a range back.
    ///
    /// # Errors
    ///
    /// A range that is not allocated.
    pub fn dev_mem_free(&mut self, memory: DeviceMemory) -> Result<(), PcieError> {
        let state = &mut self.devices[memory.device.0 as usize];
        let Some(mut length) = state.used.remove(&memory.address) else {
            let rule = format!("{:#x} of `{}` is not allocated", memory.address, state.name);
            return Err(refuse("dev_mem_free", rule));
        };
        let mut address = memory.address;
        if let Some(after) = state.free.remove(&(address + length)) {
            length += after;
        }
        if let Some((before, free)) = state
            .free
            .range(..address)
            .next_back()
            .map(|(a, l)| (*a, *l))
            && before + free == address
        {
            state.free.remove(&before);
            address = before;
            length += free;
        }
        state.free.insert(address, length);
        Ok(())
    }

    /// `dev_mem_getaddr`: the address of a range.
    pub fn dev_mem_getaddr(&self, memory: DeviceMemory) -> u64 {
        memory.address
    }

    /// `mmio_rd`: loads from mapped memory.
    ///
    /// # Errors
    ///
    /// A range that is not mapped or not allocated; a length that is not 8, 16, 32 or a multiple
    /// of 64.
    pub fn mmio_rd(&mut self, memory: DeviceMemory, bytes: u64) -> Result<Handle, PcieError> {
        self.mmio(Operation::MmioRead, memory, bytes)
    }

    /// `mmio_wr`: stores to mapped memory.
    ///
    /// # Errors
    ///
    /// As [`Session::mmio_rd`].
    pub fn mmio_wr(&mut self, memory: DeviceMemory, bytes: u64) -> Result<Handle, PcieError> {
        self.mmio(Operation::MmioWrite, memory, bytes)
    }

    fn mmio(
        &mut self,
        operation: Operation,
        memory: DeviceMemory,
        bytes: u64,
    ) -> Result<Handle, PcieError> {
        let mapped = self.devices[memory.device.0 as usize].mapped;
        if memory.address + bytes > mapped {
            let rule = format!(
                "{:#x} to {:#x} is not mapped",
                memory.address,
                memory.address + bytes
            );
            return Err(refuse(operation.name(), rule));
        }
        self.call(operation, memory, None, bytes, 1, None)
    }

    /// `h2d`: the device reads `bytes` of host memory. `queue` is a number, or `None` for the
    /// session's scheduler.
    ///
    /// # Errors
    ///
    /// A length that is 0, no multiple of 64 or beyond the range; no such queue; no engine.
    pub fn h2d(
        &mut self,
        memory: DeviceMemory,
        bytes: u64,
        queue: Option<u32>,
    ) -> Result<Handle, PcieError> {
        self.h2d_batch(memory, bytes, 1, queue)
    }

    /// `h2d` for a list of `count` elements of `bytes` each.
    ///
    /// # Errors
    ///
    /// As [`Session::h2d`].
    pub fn h2d_batch(
        &mut self,
        memory: DeviceMemory,
        bytes: u64,
        count: u32,
        queue: Option<u32>,
    ) -> Result<Handle, PcieError> {
        self.call(Operation::H2d, memory, None, bytes, count, queue)
    }

    /// `d2h`: the device writes `bytes` to host memory.
    ///
    /// # Errors
    ///
    /// As [`Session::h2d`].
    pub fn d2h(
        &mut self,
        memory: DeviceMemory,
        bytes: u64,
        queue: Option<u32>,
    ) -> Result<Handle, PcieError> {
        self.d2h_batch(memory, bytes, 1, queue)
    }

    /// `d2h` for a list of `count` elements of `bytes` each.
    ///
    /// # Errors
    ///
    /// As [`Session::h2d`].
    pub fn d2h_batch(
        &mut self,
        memory: DeviceMemory,
        bytes: u64,
        count: u32,
        queue: Option<u32>,
    ) -> Result<Handle, PcieError> {
        self.call(Operation::D2h, memory, None, bytes, count, queue)
    }

    /// `dev2dev_rd`: the first range's device reads `count` elements of `bytes` from the second.
    ///
    /// # Errors
    ///
    /// As [`Session::h2d`], for both ranges.
    pub fn dev2dev_rd(
        &mut self,
        to: DeviceMemory,
        from: DeviceMemory,
        bytes: u64,
        count: u32,
        queue: Option<u32>,
    ) -> Result<Handle, PcieError> {
        self.call(Operation::DeviceRead, to, Some(from), bytes, count, queue)
    }

    /// `dev2dev_wr`: the first range's device writes `count` elements of `bytes` to the second.
    ///
    /// # Errors
    ///
    /// As [`Session::h2d`], for both ranges.
    pub fn dev2dev_wr(
        &mut self,
        from: DeviceMemory,
        to: DeviceMemory,
        bytes: u64,
        count: u32,
        queue: Option<u32>,
    ) -> Result<Handle, PcieError> {
        self.call(Operation::DeviceWrite, from, Some(to), bytes, count, queue)
    }

    fn call(
        &mut self,
        operation: Operation,
        memory: DeviceMemory,
        peer: Option<DeviceMemory>,
        bytes: u64,
        count: u32,
        queue: Option<u32>,
    ) -> Result<Handle, PcieError> {
        let whole = bytes.saturating_mul(u64::from(count));
        for range in [Some(memory), peer].into_iter().flatten() {
            let state = &self.devices[range.device.0 as usize];
            let allocated = state.used.get(&range.address).copied().unwrap_or(0);
            if whole > range.bytes || range.bytes > allocated {
                let rule = format!(
                    "{whole} bytes at {:#x} of `{}` are not allocated",
                    range.address, state.name
                );
                return Err(refuse(operation.name(), rule));
            }
        }
        let key = (operation, memory.device, peer.map(|peer| peer.device));
        let stream = match self.streams.get(&key) {
            Some(stream) => *stream,
            None => {
                let name = format!(
                    "{} {}",
                    operation.name(),
                    self.devices[memory.device.0 as usize].name
                );
                let stream = Stream {
                    peer: peer.map(|peer| self.node(peer.device)),
                    outstanding: self.outstanding,
                    scheduling: self.scheduling,
                    arrival: Arrival::OnCall,
                    memory: Memory::Main,
                    ..Stream::new(
                        &name,
                        operation,
                        self.host,
                        self.node(memory.device),
                        ALIGNMENT,
                    )
                };
                let stream = self.simulation.add_stream(&stream, self.seed)?;
                self.streams.insert(key, stream);
                stream
            }
        };
        self.simulation.ask(stream, bytes, count, queue).map(Handle)
    }

    /// Looks whether a transfer is complete. No time passes.
    pub fn poll(&mut self, handle: Handle) -> Option<Completion> {
        self.collect();
        self.done.get(&handle.0).copied()
    }

    /// Lets time pass until a transfer is complete.
    ///
    /// # Errors
    ///
    /// It never completes: a deadlock, or a handle of another session.
    pub fn wait(&mut self, handle: Handle) -> Result<Completion, PcieError> {
        loop {
            if let Some(completion) = self.poll(handle) {
                return Ok(completion);
            }
            if !self.simulation.step(LIMIT_NS) {
                return Err(PcieError::Stuck {
                    topology: self.topology.name.clone(),
                    at_ns: self.simulation.now_ps() / 1000,
                    open: 1,
                    why: "nothing is under way".to_owned(),
                });
            }
        }
    }

    /// Lets time pass.
    ///
    /// # Errors
    ///
    /// As [`Simulation::run_until`].
    pub fn advance(&mut self, ns: u64) -> Result<(), PcieError> {
        self.simulation
            .run_until(self.simulation.now_ps() / 1000 + ns)
    }

    /// Durations of all transfers of a kind and device by phase.
    pub fn profile(
        &self,
        operation: Operation,
        device: Device,
        peer: Option<Device>,
    ) -> Option<Profile> {
        let stream = self.streams.get(&(operation, device, peer))?;
        self.simulation
            .streams()
            .into_iter()
            .nth(*stream as usize)
            .map(|result| result.profile)
    }

    fn collect(&mut self) {
        for (ticket, [asked, sent, arrived, first, stored, known]) in
            self.simulation.take_finished()
        {
            let ns = |ps: u64| ps as f64 / 1000.0;
            let completion = Completion {
                host_ns: ns((sent - asked) + (known - stored)),
                fabric_ns: ns((arrived - sent) + (stored - first)),
                device_ns: ns(first - arrived),
                total_ns: ns(known - asked),
            };
            self.done.insert(ticket, completion);
        }
    }

    fn node(&self, device: Device) -> NodeId {
        self.devices[device.0 as usize].node
    }
}

fn refuse(call: &str, rule: String) -> PcieError {
    PcieError::Transfer {
        transfer: call.to_owned(),
        rule,
    }
}
