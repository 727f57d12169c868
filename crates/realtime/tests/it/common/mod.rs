//! Devices to test, and memory that watches and holds up what they do.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use dray_device::{
    Access, Bar, DeviceConfig, Function, Hardware, Memory, PciControls, Portal, Submission,
    WorkQueueConfig, WorkQueueMode,
};
use dray_realtime::{
    AllAccessible, Engines, Event, Idle, MappedPortal, Options, ProcessMemory, RealtimeDevice,
    SharedMemory, StartError,
};
use dray_spec::registers::{EVLCFG, GenCfg};
use dray_spec::{CompletionRecord, Descriptor, GenCap, Status};

pub(crate) fn queue(id: u16, mode: WorkQueueMode, size: u16) -> WorkQueueConfig {
    WorkQueueConfig::new(id, mode, size)
}

/// One group with `engines` engines and these queues.
pub(crate) fn config(engines: u16, work_queues: Vec<WorkQueueConfig>) -> DeviceConfig {
    DeviceConfig::sapphire_rapids(engines, work_queues)
}

/// All ways to run, each with a number of engines.
pub(crate) fn ways() -> Vec<(u16, Options)> {
    let mut ways = Vec::new();
    for after in [Duration::ZERO, Duration::from_micros(50)] {
        for (engines, who) in [
            (1, Engines::Threads),
            (3, Engines::Threads),
            (3, Engines::ThreadsThatWait),
            (3, Engines::Dispatcher),
        ] {
            let options = Options {
                idle: Idle::Park { after },
                engines: who,
                ..Options::default()
            };
            ways.push((engines, options));
        }
    }
    ways
}

/// What tests know of a device's accesses.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    /// Addresses of records, in the order in which they were written.
    pub(crate) records: Mutex<Vec<u64>>,
    /// Reads that wait for the gate.
    pub(crate) held: AtomicUsize,
    closed: AtomicBool,
    /// Address of a record over which a thread panics.
    pub(crate) trap: AtomicU64,
    pub(crate) events: Mutex<Vec<Event>>,
}

impl Witness {
    pub(crate) fn close_gate(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn open_gate(&self) {
        self.closed.store(false, Ordering::SeqCst);
    }

    /// Until `count` engines are held up.
    pub(crate) fn wait_held(&self, count: usize) {
        while self.held.load(Ordering::SeqCst) != count {
            thread::yield_now();
        }
    }

    pub(crate) fn errors(&self) -> Vec<Status> {
        let events = self.events.lock().expect("no panic while it is held");
        let error = |event: &Event| match event {
            Event::SoftwareError { status, .. } => Some(*status),
            _ => None,
        };
        events.iter().filter_map(error).collect()
    }
}

/// Memory of the process, watched. Reads of [`HELD`] wait as long as the gate is closed.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    inner: ProcessMemory<AllAccessible>,
    witness: Arc<Witness>,
}

/// A source of 64 bytes at which engines are held up.
pub(crate) static HELD: [u8; 64] = [7; 64];
/// A source of 64 bytes over which a thread panics.
pub(crate) static TRAP: [u8; 64] = [8; 64];

pub(crate) fn address(bytes: &[u8]) -> u64 {
    bytes.as_ptr().expose_provenance() as u64
}

impl Memory for Watched {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        self.inner.accessible(addr, len, access)
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        assert_ne!(addr, address(&TRAP), "a trap in memory");
        if addr == address(&HELD) {
            self.witness.held.fetch_add(1, Ordering::SeqCst);
            while self.witness.closed.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            self.witness.held.fetch_sub(1, Ordering::SeqCst);
        }
        self.inner.read(addr, into);
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        self.inner.write(addr, from);
    }
}

impl SharedMemory for Watched {
    fn may_wait(&self, blocks: bool) -> bool {
        blocks
    }

    fn publish(&mut self, address: u64, record: &CompletionRecord) -> bool {
        let trap = self.witness.trap.load(Ordering::SeqCst);
        assert_ne!(address, trap, "a trap among the records");
        let published = self.inner.publish(address, record);
        let mut records = self
            .witness
            .records
            .lock()
            .expect("no thread panics with it");
        records.push(address);
        published
    }
}

/// A device on watched memory.
pub(crate) fn start(config: DeviceConfig, options: Options) -> (RealtimeDevice, Arc<Witness>) {
    watched(|memory, reported| {
        let listener = move |event| keep(&reported, event);
        RealtimeDevice::start(config, memory, options, listener)
    })
}

/// A device on watched memory, for a driver to enable.
pub(crate) fn start_function(
    function: Function,
    options: Options,
) -> (RealtimeDevice, Arc<Witness>) {
    watched(|memory, reported| {
        let listener = move |event| keep(&reported, event);
        RealtimeDevice::start_function(function, memory, options, listener)
    })
}

fn keep(reported: &Witness, event: Event) {
    let mut events = reported.events.lock().expect("no thread panics with it");
    events.push(event);
}

fn watched(
    start: impl FnOnce(Watched, Arc<Witness>) -> Result<RealtimeDevice, StartError>,
) -> (RealtimeDevice, Arc<Witness>) {
    let witness = Arc::new(Witness::default());
    let memory = Watched {
        // SAFETY: tests keep what descriptors name until the device has ended.
        inner: unsafe { ProcessMemory::new(AllAccessible) },
        witness: witness.clone(),
    };
    let device = start(memory, witness.clone());
    (
        device.expect("a configuration that can be enabled"),
        witness,
    )
}

pub(crate) fn portal(device: &RealtimeDevice, wq: u16, limited: bool) -> MappedPortal {
    device.map(Portal { wq, limited }).expect("a queue")
}

/// RingView for records, shared with the device by their status bytes.
pub(crate) struct Records(Vec<CompletionRecord>);

impl Records {
    pub(crate) fn new(count: usize) -> Records {
        Records(vec![CompletionRecord::default(); count])
    }

    pub(crate) fn address(&self, n: usize) -> u64 {
        (&raw const self.0[n]).expose_provenance() as u64
    }

    pub(crate) fn status(&self, n: usize) -> Status {
        let byte = self.address(n) as *mut u8;
        // SAFETY: the record is there, and its status byte is accessed as an atomic alone.
        Status(unsafe { AtomicU8::from_ptr(byte) }.load(Ordering::Acquire))
    }

    /// Waits for record `n`.
    pub(crate) fn wait(&self, n: usize) -> CompletionRecord {
        while self.status(n) == Status::NONE {
            thread::yield_now();
        }
        let record = self.address(n) as *const CompletionRecord;
        // SAFETY: it has been written, and is not written again.
        unsafe { record.read() }
    }
}

/// Submits until it is accepted. How often it was not.
pub(crate) fn insist(portal: &MappedPortal, descriptor: &Descriptor) -> u64 {
    let mut refused = 0;
    while portal.submit(descriptor) != Submission::Accepted {
        refused += 1;
        thread::yield_now();
    }
    refused
}

/// Holds every engine up: with one copy each, from [`HELD`] to `into`. The gate is closed.
pub(crate) fn hold(portal: &MappedPortal, witness: &Witness, into: &mut [u8], engines: usize) {
    witness.close_gate();
    for (n, into) in into.chunks_mut(64).take(engines).enumerate() {
        let dst = into.as_mut_ptr().expose_provenance() as u64;
        insist(portal, &Descriptor::memmove(address(&HELD), dst, 64));
        witness.wait_held(n + 1);
    }
}

/// The event log of a device, of 64 entries.
pub(crate) struct EventLog(Vec<u64>);

impl EventLog {
    pub(crate) fn new() -> EventLog {
        EventLog(vec![0; 3 * 4096])
    }

    fn base(&self) -> u64 {
        let start = self.0.as_ptr().expose_provenance() as u64;
        start.next_multiple_of(4096)
    }

    /// A device of version 2 with a dedicated queue of 16 entries, whose log this is, and that asks for no pages; it is not
    /// enabled.
    pub(crate) fn function(&self) -> Function {
        let mut config = config(1, vec![queue(0, WorkQueueMode::Dedicated, 16)]);
        config.capabilities.version = 0x200;
        let gen_cap = GenCap::from_bits(config.capabilities.gen_cap).with_event_log_entry(1);
        config.capabilities.gen_cap = gen_cap.into_bits();
        let hardware = Hardware::new(config.capabilities.clone());
        let mut writes = config.register_writes(&hardware).expect("registers");
        let pci = PciControls {
            page_requests: false,
            ..PciControls::default()
        };
        let mut function = Function::new(hardware, pci);
        let enabled = GenCfg::from(writes[0].value as u32).with_event_log_enable(true);
        writes[0].value = enabled.into_bits().into();
        for write in writes {
            let bytes = &write.value.to_le_bytes()[..usize::from(write.size)];
            function.write(Bar::Registers, write.offset, bytes, &mut Vec::new());
        }
        for (offset, value) in [(EVLCFG, self.base()), (EVLCFG + 8, 64)] {
            let value = value.to_le_bytes();
            function.write(Bar::Registers, offset, &value, &mut Vec::new());
        }
        function
    }

    /// An entry that the device has written, and that it does not write meanwhile.
    pub(crate) fn entry(&self, index: u64) -> [u64; 8] {
        assert!(index < 64);
        let entry = (self.base() + 64 * index) as *const [u64; 8];
        // SAFETY: it is within the log, and nobody writes to it.
        unsafe { entry.read() }
    }
}
