//! Threads that change one device do not hold up those of another.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Condvar, TryLockError};

use dray_device::{Access, Capabilities, Hardware};
use dray_idxd::driver::Options as DriverOptions;
use dray_realtime::{AllAccessible, ProcessMemory, Translation};
use dray_spec::{CompletionRecord, Descriptor};

use super::*;
use crate::recorder::Recording;

/// Bounds a test that would hang where it fails.
const HANGS: Duration = Duration::from_secs(60);

/// Memory with one address at which an access waits until the gate is opened.
#[derive(Debug, Default)]
struct Gated {
    address: u64,
    state: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Gate {
    reached: bool,
    open: bool,
}

impl Gated {
    fn wait_until(&self, condition: impl Fn(&Gate) -> bool) {
        let state = self.state.lock().unwrap();
        let waited = self
            .changed
            .wait_timeout_while(state, HANGS, |gate| !condition(gate));
        assert!(!waited.unwrap().1.timed_out());
    }

    fn set(&self, change: impl FnOnce(&mut Gate)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }
}

impl Translation for Gated {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        if addr == self.address {
            self.set(|gate| gate.reached = true);
            self.wait_until(|gate| gate.open);
        }
        AllAccessible.accessible(addr, len, access)
    }
}

/// A machine with the devices dsa0 and dsa2, and a copy that dsa0 has begun and that waits at the gate.
struct Busy {
    machine: Arc<SessionDevices>,
    memory: Arc<Gated>,
    // What the copy reads and writes, and its record.
    bytes: Box<([u8; 64], [u8; 64])>,
    _record: Box<CompletionRecord>,
}

fn address<T>(value: &mut T) -> u64 {
    std::ptr::from_mut(value).expose_provenance() as u64
}

impl Busy {
    fn new() -> Busy {
        let mut bytes = Box::new(([7; 64], [0; 64]));
        let mut record = Box::<CompletionRecord>::default();
        let (from, to) = (address(&mut bytes.0), address(&mut bytes.1));
        let completion = address(&mut *record);
        let memory = Arc::new(Gated {
            address: from,
            ..Gated::default()
        });
        let machine = machine(&memory);
        enable(&machine, 0).unwrap();
        machine.open(0, 0, 1).unwrap();
        let copy = Descriptor::memmove(from, to, 64).with_completion(completion);
        machine.portal(0, 0).unwrap().write_posted(&copy);
        memory.wait_until(|gate| gate.reached);
        Busy {
            machine,
            memory,
            bytes,
            _record: record,
        }
    }

    /// Disables the queue of dsa0, which drains it.
    fn disable(&self) -> Receiver<Result<(), Errno>> {
        let machine = self.machine.clone();
        in_thread(move || machine.write("/sys/bus/dsa/drivers/user/unbind", b"wq0.0"))
    }

    /// Waits until a thread is changing dsa0.
    fn wait_for_change(&self) {
        let changing = &self.machine.session_device(0).unwrap().changing;
        while !matches!(changing.try_lock(), Err(TryLockError::WouldBlock)) {
            std::thread::yield_now();
        }
    }
}

fn machine(memory: &Arc<Gated>) -> Arc<SessionDevices> {
    let hardware = Hardware::new(Capabilities::sapphire_rapids());
    let parts = [0, 2].map(|id| Part::new(id, hardware.clone()));
    let driver = Driver::new(DriverOptions::new(Personality::Linux6_8), parts.into());
    // SAFETY: what a test's descriptor names is kept until its queue has been drained.
    let memory = unsafe { ProcessMemory::new(memory.clone()) };
    let mut recorder = Recorder::new(&Recording::default(), &Arc::default(), false, None).unwrap();
    let machine =
        SessionDevices::start(driver, &memory, &mut recorder, &Arc::default(), None, None);
    Arc::new(machine.unwrap())
}

/// Configures a dedicated queue with one engine, and enables it.
fn enable(machine: &SessionDevices, device: u32) -> Result<(), Errno> {
    for (path, value) in [
        (format!("engine{device}.0/group_id"), "0"),
        (format!("wq{device}.0/group_id"), "0"),
        (format!("wq{device}.0/mode"), "dedicated"),
        (format!("wq{device}.0/size"), "16"),
        (format!("wq{device}.0/priority"), "10"),
        (format!("wq{device}.0/type"), "user"),
        (format!("wq{device}.0/name"), "app"),
        (format!("wq{device}.0/driver_name"), "user"),
    ] {
        machine.write(&format!("/sys/bus/dsa/devices/{path}"), value.as_bytes())?;
    }
    let bind = |driver: &str, name: String| {
        let path = format!("/sys/bus/dsa/drivers/{driver}/bind");
        machine.write(&path, name.as_bytes())
    };
    bind("idxd", format!("dsa{device}"))?;
    bind("user", format!("wq{device}.0"))
}

fn state(machine: &SessionDevices, wq: &str) -> String {
    let path = format!("/sys/bus/dsa/devices/{wq}/state");
    String::from_utf8(machine.read(&path).unwrap()).unwrap()
}

fn in_thread<R: Send + 'static>(action: impl FnOnce() -> R + Send + 'static) -> Receiver<R> {
    let (done, result) = channel();
    std::thread::spawn(move || drop(done.send(action())));
    result
}

#[test]
fn draining_a_device_does_not_delay_other_devices() {
    let busy = Busy::new();
    let disabled = busy.disable();
    busy.wait_for_change();

    let other = busy.machine.clone();
    let answered = in_thread(move || {
        let before = state(&other, "wq2.0");
        enable(&other, 2)?;
        other.open(2, 0, 2)?;
        Ok::<_, Errno>((before, state(&other, "wq2.0"), other.nodes().len()))
    });
    // Both nodes are there: dsa0 is seen as it was before the change that waits.
    let answered = answered.recv_timeout(HANGS).expect("dsa2 answers");
    assert_eq!(answered, Ok(("disabled\n".into(), "enabled\n".into(), 2)));
    assert!(disabled.try_recv().is_err(), "the copy is in flight");

    busy.memory.set(|gate| gate.open = true);
    let disabled = disabled.recv_timeout(HANGS).expect("dsa0 is drained");
    assert_eq!(disabled, Ok(()));
    assert_eq!(busy.bytes.1, [7; 64]);
    assert_eq!(state(&busy.machine, "wq0.0"), "disabled\n");
    assert_eq!(state(&busy.machine, "wq2.0"), "enabled\n");
}

#[test]
fn only_one_of_two_waiting_calls_disables_the_queue() {
    let busy = Busy::new();
    let disabled = [busy.disable(), busy.disable()];
    busy.wait_for_change();
    busy.memory.set(|gate| gate.open = true);
    let mut results = disabled.map(|result| result.recv_timeout(HANGS).expect("dsa0 is drained"));
    results.sort_by_key(Result::is_err);
    assert_eq!(results, [Ok(()), Err(Errno::ENODEV)]);
    assert_eq!(state(&busy.machine, "wq0.0"), "disabled\n");
}

#[test]
fn devices_enabled_at_once_get_different_minor_numbers() {
    let machine = machine(&Arc::default());
    let enabled = [0, 2].map(|device| {
        let machine = machine.clone();
        in_thread(move || enable(&machine, device))
    });
    for result in enabled {
        assert_eq!(result.recv_timeout(HANGS).expect("enabled"), Ok(()));
    }
    let minor = |entry: Entry| match entry.kind {
        EntryKind::Node { minor, .. } => minor,
        other => panic!("{other:?}"),
    };
    let mut minors: Vec<u32> = machine.nodes().into_iter().map(minor).collect();
    minors.sort_unstable();
    assert_eq!(minors, [0, 1]);
}
