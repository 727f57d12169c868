//! Queues without ATS: faults on writes are not noticed, faults on reads have no address
//! (spec 3.13.1, Table 5-6).

use std::collections::BTreeMap;

use crate::common::profile::{one_group, queue};
use dray_device::{
    Access, Action, AddressSpace, DescriptorResult, Device, Domain, Domains, Effect, ListRead,
    Memory, Payload, Portal, Task, WorkKind, WorkQueueMode,
};
use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

const PAGE: u64 = 4096;

/// Some pages; all around them faults.
#[derive(Debug, Clone, Default)]
struct Pages {
    pages: BTreeMap<u64, Vec<u8>>,
    read_only: Vec<u64>,
    other: Option<Box<Pages>>,
}

impl Pages {
    fn of(numbers: &[u64]) -> Pages {
        let page = |n: &u64| (*n, vec![*n as u8; PAGE as usize]);
        Pages {
            pages: numbers.iter().map(page).collect(),
            ..Pages::default()
        }
    }

    fn has(&self, page: u64, byte: u8) -> bool {
        self.pages[&page].iter().all(|b| *b == byte)
    }
}

impl Memory for Pages {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        let there = |addr: &u64| {
            let page = addr / PAGE;
            let written = access == Access::Write && self.read_only.contains(&page);
            self.pages.contains_key(&page) && !written
        };
        (addr..addr.saturating_add(len)).take_while(there).count() as u64
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        for (n, byte) in into.iter_mut().enumerate() {
            let at = addr + n as u64;
            *byte = self.pages[&(at / PAGE)][(at % PAGE) as usize];
        }
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        for (n, byte) in from.iter().enumerate() {
            let at = addr + n as u64;
            let page = self.pages.get_mut(&(at / PAGE)).expect("a page");
            page[(at % PAGE) as usize] = *byte;
        }
    }

    fn alternate(&mut self, _: AddressSpace) -> Option<&mut dyn Memory> {
        self.other
            .as_deref_mut()
            .map(|other| other as &mut dyn Memory)
    }
}

/// The descriptor as a queue without ATS has it started, in these domains.
fn task(d: &Descriptor, domains: Option<Domains>) -> Task {
    let mut device = device(false, false);
    let limited = false;
    device.write_posted(Portal { wq: 0, limited }, &Descriptor::noop());
    let work = device.take(0).expect("work");
    let task = device.start(&work).expect("work under way");
    assert!(!task.translates);
    Task {
        action: Action::Execute(d.opcode().expect("an operation")),
        descriptor: *d,
        domains,
        ..task
    }
}

fn run(memory: &mut Pages, d: &Descriptor) -> CompletionRecord {
    task(d, None).execute(memory, Payload::Moved).record
}

fn only(status: Status) -> CompletionRecord {
    CompletionRecord::with_status(status)
}

const SIZE: u32 = 3 * PAGE as u32;
/// Pages 1 to 3 are the source; of the destination, pages 8 to 10, the middle is not there.
const HOLE: [u64; 5] = [1, 2, 3, 8, 10];

#[test]
fn writes_that_fault_are_lost_and_the_rest_is_written() {
    let mut memory = Pages::of(&HOLE);
    let copy = Descriptor::memmove(PAGE, 8 * PAGE, SIZE);
    assert_eq!(run(&mut memory, &copy), only(Status::SUCCESS));
    assert!(memory.has(8, 1) && memory.has(10, 3));
    // A page that cannot be written, and one destination of two.
    let mut memory = Pages::of(&[1, 2, 3, 8, 9, 10]);
    memory.read_only = vec![8];
    let dual = Descriptor::dualcast(PAGE, 8 * PAGE, 16 * PAGE, SIZE);
    assert_eq!(run(&mut memory, &dual), only(Status::SUCCESS));
    assert!(memory.has(8, 8) && memory.has(9, 2) && memory.has(10, 3));
    // From the end, where the source lies under the destination.
    let mut memory = Pages::of(&[1, 2, 3]);
    let copy = Descriptor::memmove(PAGE, 2 * PAGE, SIZE);
    assert_eq!(run(&mut memory, &copy), only(Status::SUCCESS));
    assert!(memory.has(1, 1) && memory.has(2, 1) && memory.has(3, 2));
    // Within a page, and with nothing there at all.
    let fill = Descriptor::fill(0xaaaa_aaaa_aaaa_aaaa, 9 * PAGE - 8, 16);
    assert_eq!(run(&mut Pages::of(&HOLE), &fill), only(Status::SUCCESS));
    assert_eq!(run(&mut Pages::of(&[]), &fill), only(Status::SUCCESS));
}

#[test]
fn a_read_that_faults_ends_the_descriptor_without_an_address() {
    let size = SIZE + 1;
    let failed = only(Status::HARDWARE_ERROR_READ);
    for d in [
        Descriptor::memmove(PAGE, 8 * PAGE, size),
        Descriptor::memmove(PAGE, 8 * PAGE, size).with_flags(Flags::BLOCK_ON_FAULT),
        Descriptor::dualcast(PAGE, 8 * PAGE, 16 * PAGE, size),
        Descriptor::crc(PAGE, size, 0),
        Descriptor::compare_pattern(4 * PAGE, 0x0101_0101_0101_0101, 8),
        Descriptor::cache_flush(PAGE, size),
        Descriptor::drain()
            .with_readback1(PAGE)
            .with_readback2(4 * PAGE),
    ] {
        assert_eq!(run(&mut Pages::of(&HOLE), &d), failed, "{d:?}");
    }
    // A difference that has been found counts more than a fault behind it, here as elsewhere.
    let compare = Descriptor::compare_pattern(PAGE, 0x0101_0101_0101_0101, size);
    let record = run(&mut Pages::of(&HOLE), &compare);
    assert_eq!((record.status(), record.result), (Status::SUCCESS, 1));
}

#[test]
fn a_readback_finds_what_is_not_there_at_the_end() {
    let read_back = |pages: &[u64], d: Descriptor| {
        let d = d.with_flags(Flags::DESTINATION_READBACK);
        run(&mut Pages::of(pages), &d).status()
    };
    let copy = || Descriptor::memmove(PAGE, 8 * PAGE, SIZE);
    assert_eq!(read_back(&HOLE, copy()), Status::SUCCESS);
    let lost = Status::HARDWARE_ERROR_WRITE;
    assert_eq!(read_back(&[1, 2, 3, 8, 9], copy()), lost);
    let dual = |second| Descriptor::dualcast(PAGE, 8 * PAGE, second, PAGE as u32);
    assert_eq!(read_back(&[1, 8, 16], dual(16 * PAGE)), Status::SUCCESS);
    assert_eq!(read_back(&[1, 8], dual(16 * PAGE)), lost);
    // After a read that failed nothing is read back.
    assert_eq!(read_back(&[2, 3], copy()), Status::HARDWARE_ERROR_READ);
}

#[test]
fn other_domains_are_the_same() {
    let domain = |page: u64| Domain {
        handle: 3,
        space: AddressSpace::default(),
        address: page * PAGE,
        hidden: false,
        submitter_bit: None,
    };
    let mut memory = Pages::of(&[1, 2, 3]);
    memory.other = Some(Box::new(Pages::of(&[8, 10])));
    let fill = Descriptor::inter_domain_fill(0, 0, SIZE);
    let mut run = |d: &Descriptor, domains: Domains| {
        task(d, Some(domains)).execute(&mut memory, Payload::Moved)
    };
    let into = |page| Domains {
        first: None,
        second: Some(domain(page)),
    };
    assert_eq!(
        run(&fill, into(8)),
        DescriptorResult::status(Status::SUCCESS)
    );
    let read_back = fill.with_flags(Flags::DESTINATION_READBACK);
    assert_eq!(
        run(&read_back, into(8)),
        DescriptorResult::status(Status::SUCCESS)
    );
    let lost = DescriptorResult::status(Status::HARDWARE_ERROR_WRITE);
    assert_eq!(
        run(&read_back, into(6)),
        DescriptorResult::status(Status::SUCCESS)
    );
    assert_eq!(run(&read_back, into(7)), lost);
    let compare = Descriptor::inter_domain_compare(PAGE, 0, SIZE);
    let failed = DescriptorResult::status(Status::HARDWARE_ERROR_READ);
    assert_eq!(run(&compare, into(8)).record.result, 1);
    assert_eq!(run(&compare, into(20)), failed);
    assert!(memory.other.expect("other").has(10, 0));
}

#[test]
fn nothing_is_written_behind_the_end_of_the_address_space() {
    let last = u64::MAX / PAGE;
    let mut memory = Pages::of(&[1, 2, 3]);
    memory.other = Some(Box::new(Pages::of(&[0, 1, 2, last])));
    let into = Domains {
        first: None,
        second: Some(Domain {
            handle: 3,
            space: AddressSpace::default(),
            address: last * PAGE + 8,
            hidden: false,
            submitter_bit: None,
        }),
    };
    let fill = Descriptor::inter_domain_fill(0, 0, SIZE);
    let mut run = |d: &Descriptor| {
        let ended = task(d, Some(into)).execute(&mut memory, Payload::Moved);
        ended.record.status()
    };
    assert_eq!(run(&fill), Status::SUCCESS);
    let read_back = fill.with_flags(Flags::DESTINATION_READBACK);
    assert_eq!(run(&read_back), Status::HARDWARE_ERROR_WRITE);
    let other = memory.other.expect("other");
    assert!(other.has(0, 0) && other.has(1, 1) && other.has(2, 2));
    // The memory above ends a byte early.
    assert!(other.pages[&last][8..4095].iter().all(|byte| *byte == 0));
}

fn device(ats: bool, disable: bool) -> Device {
    let mut config = one_group(
        1,
        vec![
            queue(0, WorkQueueMode::Dedicated, 8),
            queue(1, WorkQueueMode::Dedicated, 8),
        ],
    );
    config.work_queues[1].ats_disable = disable;
    config.capabilities.version = 0x200;
    config.pci.ats = ats;
    Device::new(config).expect("a configuration that can be enabled")
}

/// Status and fault address of a batch whose list cannot be read, on either queue.
fn unreadable_lists(mut device: Device) -> Vec<(bool, Status, u64)> {
    let end = |wq: u16| {
        let batch = Descriptor::batch(0x40, 2).with_completion(0x1000);
        let limited = false;
        device.write_posted(Portal { wq, limited }, &batch);
        let work = device.take(0).expect("work");
        assert!(matches!(work.kind, WorkKind::FetchList { .. }));
        let translates = device.start(&work).expect("work under way").translates;
        let mut effects = Vec::new();
        device.list_read(work.id, &[], ListRead::until(0x5000), &mut effects);
        let [Effect::Record { record, .. }] = effects[..] else {
            panic!("{effects:?}");
        };
        (translates, record.status(), record.fault_address)
    };
    [0, 1].map(end).to_vec()
}

#[test]
fn ats_is_off_for_a_queue_or_for_the_device() {
    let on = (true, Status::BATCH_PAGE_FAULT, 0x5000);
    let off = (false, Status::HARDWARE_ERROR_READ, 0);
    assert_eq!(unreadable_lists(device(true, false)), [on, on]);
    assert_eq!(unreadable_lists(device(true, true)), [on, off]);
    assert_eq!(unreadable_lists(device(false, false)), [off, off]);
}
