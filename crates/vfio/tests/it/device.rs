//! A driver reads, configures, submits and resets; and clients connect one after the other.

use dray_device::DeviceConfig;
use dray_spec::registers::Command;
use dray_spec::{CompletionRecord, Descriptor, Status};
use std::os::fd::AsFd;
use std::time::Instant;
use zerocopy::FromBytes;

use crate::client::{
    BAR0, BAR2, CONFIG, Client, LONG, Running, SharedFile, Vector, config, hardware, portal,
};
use dray_vfio::Options;

const MEMORY_BYTES: u64 = 4 << 20;
/// Where the client's memory is for the device.
const BASE: u64 = 0x1_0000_0000;
const RECORD: u64 = BASE;
const SOURCE: u64 = BASE + 0x10_0000;
const DESTINATION: u64 = BASE + 0x20_0000;

/// A client with memory mapped and vectors set up.
struct Driver {
    client: Client,
    memory: SharedFile,
    vectors: Vec<Vector>,
}

impl Driver {
    fn new(running: &Running) -> Driver {
        let mut client = running.client();
        let memory = SharedFile::new(MEMORY_BYTES);
        client.map(BASE, MEMORY_BYTES, &memory.0).expect("mapped");
        let vectors: Vec<Vector> = (0..9).map(|_| Vector::new()).collect();
        let fds: Vec<_> = vectors.iter().map(|vector| vector.0.as_fd()).collect();
        client.set_vectors(0, &fds).expect("set up");
        Driver {
            client,
            memory,
            vectors,
        }
    }

    fn enabled(running: &Running, config: &DeviceConfig) -> Driver {
        let mut driver = Driver::new(running);
        let version = config.capabilities.version;
        driver.client.enable(version, config);
        driver
    }

    fn put(&self, address: u64, bytes: &[u8]) {
        self.memory.put(address - BASE, bytes);
    }

    fn get(&self, address: u64, length: usize) -> Vec<u8> {
        self.memory.get(address - BASE, length)
    }

    /// Polls a record as programs do.
    fn record(&self, address: u64) -> CompletionRecord {
        let begin = Instant::now();
        loop {
            let bytes = self.get(address, 32);
            let record = CompletionRecord::read_from_bytes(&bytes).expect("32 bytes");
            if record.status != 0 {
                return record;
            }
            assert!(begin.elapsed() < LONG, "no completion record");
            std::thread::yield_now();
        }
    }

    fn clear(&self, address: u64) {
        self.put(address, &[0; 32]);
    }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n * 7 + n / 251) as u8).collect()
}

#[test]
fn configuration_space_is_that_of_a_dsa() {
    let running = Running::start();
    let mut client = running.client();
    assert_eq!(client.read32(CONFIG, 0), 0x0b25_8086);
    assert_eq!(client.read32(CONFIG, 8) >> 8, 0x08_8000);
    // The size of a BAR is given by the bits that stay 0.
    for (bar, bytes) in [(0x10, 0x2_0000), (0x18, 0x2_0000)] {
        client.write(CONFIG, bar, &[0xff; 8]).expect("written");
        let low = client.read32(CONFIG, bar);
        assert_eq!((low & 0xf, !(low & !0xf) + 1), (0xc, bytes));
        assert_eq!(client.read32(CONFIG, bar + 4), u32::MAX);
    }
    let mut found = Vec::new();
    let mut at = u64::from(client.read32(CONFIG, 0x34) & 0xff);
    while at != 0 {
        let header = client.read32(CONFIG, at);
        found.push(header & 0xff);
        at = u64::from(header >> 8 & 0xff);
    }
    assert_eq!(
        found,
        [0x10, 0x11, 0x01],
        "PCI Express, MSI-X, power management"
    );
    let (mut found, mut at) = (Vec::new(), 0x100);
    while at != 0 {
        let header = client.read32(CONFIG, at);
        found.push(header & 0xffff);
        at = u64::from(header >> 20);
    }
    assert_eq!(found, [0x0b, 0x0f, 0x1b], "vendor specific, ATS, PASID");
    // Nine vectors, in BAR0; function level reset; end-to-end TLP prefixes.
    assert_eq!(client.read32(CONFIG, 0x80) >> 16 & 0x7ff, 8);
    assert_eq!(client.read32(CONFIG, 0x84), 0x2000);
    assert_eq!(client.read32(CONFIG, 0x44) >> 28 & 1, 1);
    assert_eq!(client.read32(CONFIG, 0x64) >> 21 & 1, 1);
    // Read-only bits keep their value.
    client.write(CONFIG, 0, &[0; 4]).expect("ignored");
    assert_eq!(client.read32(CONFIG, 0), 0x0b25_8086);
}

#[test]
fn a_copy_signals_its_interrupt_vector() {
    let running = Running::start();
    let mut driver = Driver::enabled(&running, &config(0x100));
    let bytes = pattern(300_000);
    driver.put(SOURCE, &bytes);
    let copy = Descriptor::memmove(SOURCE, DESTINATION, bytes.len() as u32)
        .with_completion(RECORD)
        .with_interrupt(1);
    driver.client.post(0, &copy);
    assert_eq!(driver.vectors[1].wait(), 1);
    assert_eq!(driver.record(RECORD).status(), Status::SUCCESS);
    assert_eq!(driver.get(DESTINATION, bytes.len()), bytes);
    drop(driver);
    let (counts, ends) = running.stop();
    assert_eq!(counts.queues[&0].bytes, 300_000);
    assert_eq!((counts.queues[&0].descriptors, counts.interrupts), (1, 1));
    assert_eq!((counts.unmodelled.len(), ends.len()), (0, 0));
}

/// Statuses and completed bytes of copies whose destinations a page fault may stop, under an adversary.
fn disturbed(seed: &str) -> Vec<(u8, u32)> {
    let mut options = Options::new(hardware(0x100));
    options.chaos = Some(seed.parse().expect("a seed"));
    let running = Running::with(options);
    let mut driver = Driver::enabled(&running, &config(0x100));
    let bytes = pattern(0x8000);
    driver.put(SOURCE, &bytes);
    let ends = (0..24).map(|_| {
        driver.clear(RECORD);
        driver.put(DESTINATION, &vec![0; bytes.len()]);
        let copy = Descriptor::memmove(SOURCE, DESTINATION, bytes.len() as u32);
        driver.client.post(0, &copy.with_completion(RECORD));
        let record = driver.record(RECORD);
        let done = match record.status() {
            Status::SUCCESS => bytes.len(),
            _ => record.bytes_completed as usize,
        };
        assert_eq!(driver.get(DESTINATION, done), bytes[..done]);
        (record.status, record.bytes_completed)
    });
    ends.collect()
}

#[test]
fn an_adversary_makes_the_same_choices_for_each_client() {
    let ends = disturbed("1:fault+lines+record");
    assert_eq!(ends, disturbed("1:fault+lines+record"));
    assert_ne!(ends, disturbed("2:fault+lines+record"));
    let faults = |ends: &[(u8, u32)]| ends.iter().filter(|end| end.0 != 1).count();
    assert!(faults(&ends) > 0);
    assert_eq!(faults(&disturbed("1:lines+record")), 0);
}

#[test]
fn commands_with_request_interrupt_signal_vector_0() {
    let running = Running::start();
    let mut driver = Driver::enabled(&running, &config(0x100));
    // Drain All, with an interrupt at its end.
    let drain = 3_u32 << 20 | 1 << 31;
    driver
        .client
        .write(BAR0, 0xa0, &drain.to_le_bytes())
        .expect("written");
    assert_eq!(driver.vectors[0].wait(), 1);
    assert_eq!(driver.client.read32(BAR0, 0x98) & 2, 2, "INTCAUSE: command");
}

#[test]
fn a_descriptor_may_be_written_as_eight_qwords() {
    let running = Running::start();
    let mut driver = Driver::enabled(&running, &config(0x100));
    let fill = Descriptor::fill(0x1122_3344_5566_7788, DESTINATION, 64).with_completion(RECORD);
    let bytes = zerocopy::IntoBytes::as_bytes(&fill).to_vec();
    for (n, word) in (0..).zip(bytes.chunks(8)) {
        // In whichever slot of the page.
        driver
            .client
            .write(BAR2, portal(0) + 0x40 + 8 * n, word)
            .expect("written");
    }
    assert_eq!(driver.record(RECORD).status(), Status::SUCCESS);
    assert_eq!(
        driver.get(DESTINATION, 8),
        0x1122_3344_5566_7788_u64.to_le_bytes()
    );
}

#[test]
fn queues_refuse_writes_of_the_wrong_kind() {
    let running = Running::start();
    let mut driver = Driver::enabled(&running, &config(0x100));
    let noop = Descriptor::noop().with_completion(RECORD);
    assert!(
        !driver.client.enqueue(0, &noop),
        "ENQCMD to a dedicated queue"
    );
    assert!(
        !driver.client.enqueue(5, &noop),
        "ENQCMD to a disabled queue"
    );
    driver.client.post(1, &noop);
    driver.client.post(5, &noop);
    assert!(driver.client.enqueue(1, &noop.with_pasid(7)));
    drop(driver);
    let (counts, _) = running.stop();
    let ignored = "a posted write to a queue that takes none";
    assert_eq!(counts.unmodelled[ignored], 2);
}

#[test]
fn a_pasid_without_guest_tables_is_an_error_in_swerror() {
    let running = Running::start();
    let mut driver = Driver::enabled(&running, &config(0x100));
    let noop = Descriptor::memmove(SOURCE, DESTINATION, 8)
        .with_completion(RECORD)
        .with_pasid(7);
    assert!(driver.client.enqueue(1, &noop));
    assert_eq!(driver.client.command(Command::DrainAll, 0), 0);
    // The record's page cannot be translated either: the error is in SWERROR.
    let error = driver.client.read32(BAR0, 0xc0);
    assert_eq!((error & 1, error >> 8 & 0x7f), (1, 0x1a));
    assert_eq!(driver.get(RECORD, 32), [0; 32]);
    drop(driver);
    let (counts, _) = running.stop();
    assert!(counts.unmodelled["PASID without the guest's root table"] > 0);
}

#[test]
fn an_unmapped_page_is_a_page_fault_and_the_copy_resumes() {
    let running = Running::start();
    let mut driver = Driver::enabled(&running, &config(0x100));
    let end = BASE + MEMORY_BYTES;
    let copy = Descriptor::memmove(SOURCE, end - 0x1000, 0x3000).with_completion(RECORD);
    driver.client.post(0, &copy);
    let record = driver.record(RECORD);
    assert_eq!(record.status(), Status::PAGE_FAULT.with_write_fault());
    assert_eq!(
        (record.bytes_completed, record.fault_address),
        (0x1000, end)
    );
    let more = SharedFile::new(0x2000);
    driver.client.map(end, 0x2000, &more.0).expect("mapped");
    driver.clear(RECORD);
    let rest = Descriptor::memmove(SOURCE + 0x1000, end, 0x2000).with_completion(RECORD);
    driver.client.post(0, &rest);
    assert_eq!(driver.record(RECORD).status(), Status::SUCCESS);
}

#[test]
fn a_function_level_reset_under_load_resets_the_device() {
    let running = Running::start();
    let mut driver = Driver::enabled(&running, &config(0x100));
    for n in 0..64 {
        let copy =
            Descriptor::memmove(SOURCE, DESTINATION, 1 << 20).with_completion(RECORD + 32 * n);
        driver.client.post(0, &copy);
    }
    // Initiate Function Level Reset, as QEMU passes it on.
    driver
        .client
        .write(CONFIG, 0x48, &0x8000_u16.to_le_bytes())
        .expect("reset");
    // The device writes no more: the memory keeps its contents.
    let before = driver.get(RECORD, 64 * 32);
    assert_eq!(driver.client.read32(BAR0, 0x90), 0, "disabled");
    assert_eq!(driver.client.read32(CONFIG, 4) & 6, 0, "no bus master");
    assert_eq!(driver.get(RECORD, 64 * 32), before);
    driver.client.enable(0x100, &config(0x100));
    driver.clear(RECORD);
    driver
        .client
        .post(0, &Descriptor::noop().with_completion(RECORD));
    assert_eq!(driver.record(RECORD).status(), Status::SUCCESS);
    driver.client.reset().expect("DEVICE_RESET");
    assert_eq!(driver.client.read32(BAR0, 0x90), 0, "disabled");
}

#[test]
fn memory_unmapped_in_flight_is_not_written_afterwards() {
    let running = Running::start();
    let mut driver = Driver::enabled(&running, &config(0x100));
    let bytes = pattern(1 << 20);
    driver.put(SOURCE, &bytes);
    for n in 0..16 {
        let copy =
            Descriptor::memmove(SOURCE, DESTINATION, 1 << 20).with_completion(RECORD + 32 * n);
        driver.client.post(0, &copy);
    }
    driver.client.unmap(BASE, MEMORY_BYTES).expect("unmapped");
    let zeros = vec![0; 1 << 20];
    driver.put(DESTINATION, &zeros);
    assert_eq!(driver.client.command(Command::DrainAll, 0), 0);
    assert_eq!(driver.get(DESTINATION, 1 << 20), zeros);
    driver
        .client
        .map(BASE, MEMORY_BYTES, &driver.memory.0)
        .expect("mapped again");
    driver.clear(RECORD);
    driver
        .client
        .post(0, &Descriptor::noop().with_completion(RECORD));
    assert_eq!(driver.record(RECORD).status(), Status::SUCCESS);
}

#[test]
fn a_new_client_is_served_after_one_dies_in_flight() {
    let running = Running::start();
    for _ in 0..3 {
        let mut driver = Driver::enabled(&running, &config(0x100));
        for n in 0..16 {
            let copy = Descriptor::memmove(SOURCE, DESTINATION, 1 << 20)
                .with_completion(RECORD + 32 * n)
                .with_interrupt(1);
            driver.client.post(0, &copy);
        }
        // It is gone with all of that under way; the next finds a new device.
        drop(driver);
    }
    let mut client = running.client();
    assert_eq!(client.read32(BAR0, 0x90), 0, "disabled");
    assert_eq!(client.read32(CONFIG, 4) & 6, 0);
}

#[test]
fn version_2_has_interrupt_handles() {
    let running = Running::with(dray_vfio::Options::new(crate::client::hardware(0x200)));
    let mut driver = Driver::enabled(&running, &config(0x200));
    assert_eq!(driver.client.read32(BAR0, 0), 0x200);
    // Request Interrupt Handle of vector 3.
    let status = driver.client.command(Command::RequestInterruptHandle, 3);
    let handle = (status >> 8) as u16;
    assert_eq!(status & 0xff, 0);
    let noop = Descriptor::noop()
        .with_completion(RECORD)
        .with_interrupt(handle);
    driver.client.post(0, &noop);
    assert_eq!(driver.vectors[3].wait(), 1);
    driver.clear(RECORD);
    let other = Descriptor::noop().with_completion(RECORD).with_interrupt(4);
    driver.client.post(0, &other);
    assert_eq!(driver.record(RECORD).status(), Status::INTERRUPT_HANDLE);
}

#[test]
fn a_fixed_configuration_cannot_be_changed() {
    let mut options = dray_vfio::Options::new(crate::client::hardware(0x100));
    options.fixed = Some(config(0x100));
    let running = Running::with(options);
    let mut client = running.client();
    assert_eq!(
        client.read(BAR0, 0x10, 8).expect("GENCAP")[3] >> 7,
        0,
        "bit 31"
    );
    let size = client.read32(BAR0, 0x800);
    client
        .write(BAR0, 0x800, &1_u32.to_le_bytes())
        .expect("ignored");
    assert_eq!((size, client.read32(BAR0, 0x800)), (16, 16));
}

#[test]
fn injected_faults_are_reported_as_those_of_the_device() {
    let mut options = dray_vfio::Options::new(crate::client::hardware(0x100));
    options.injections = ["1=0x18", "halt@2"]
        .map(|text| text.parse().expect("an injection"))
        .into();
    let running = Running::with(options);
    let mut driver = Driver::new(&running);
    assert_eq!(driver.client.command(Command::EnableDevice, 0), 0x18);
    driver.client.enable(0x100, &config(0x100));
    for n in 0..2 {
        driver
            .client
            .post(0, &Descriptor::noop().with_completion(RECORD + 32 * n));
    }
    assert_eq!(driver.client.read32(BAR0, 0x90) & 3, 3, "halted");
    assert_eq!(
        driver.client.command(Command::DrainAll, 0),
        5,
        "while halted"
    );
    assert_eq!(driver.client.command(Command::ResetDevice, 0), 0);
    assert_eq!(driver.client.read32(BAR0, 0x90) & 3, 0);
}

#[test]
fn a_halted_device_ignores_descriptors_and_answers_reads() {
    let mut options = dray_vfio::Options::new(crate::client::hardware(0x100));
    options.injections = vec!["halt-flr@1".parse().expect("an injection")];
    let running = Running::with(options);
    let mut driver = Driver::enabled(&running, &config(0x100));
    // A driver is informed of the halt by an interrupt: its programs submit for a while after it.
    for n in 0..20 {
        let noop = Descriptor::noop().with_completion(RECORD + 32 * n);
        driver.client.post(0, &noop);
        // Halted, and a function level reset would end it.
        assert_eq!(driver.client.read32(BAR0, 0x90) & 0xf, 7);
    }
    assert!(!driver.client.enqueue(1, &Descriptor::noop()));
    driver.client.reset().expect("reset");
    assert_eq!(driver.client.read32(BAR0, 0x90) & 0xf, 0);
    assert!(
        driver
            .get(RECORD + 32, 32 * 19)
            .iter()
            .all(|byte| *byte == 0)
    );
}
