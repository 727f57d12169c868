//! The adversary: it does what the specification allows, and no more, and the same each time.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{Records, Witness, config, insist, portal, queue, start};
use dray_device::{Access, Memory, Portal, Submission, WorkId, WorkQueueMode};
use dray_realtime::{
    AllAccessible, Attachment, Event, Options, ProcessMemory, RealtimeDevice, SharedMemory, Stop,
};
use dray_spec::{CompletionRecord, Descriptor, Flags, Status};

use WorkQueueMode::{Dedicated, Shared};

const PAGE: usize = 4096;

fn options(chaos: &str) -> Options {
    Options {
        chaos: Some(chaos.parse().unwrap()),
        steps: true,
        ..Options::default()
    }
}

fn at(bytes: &[u8]) -> u64 {
    bytes.as_ptr().expose_provenance() as u64
}

fn at_mut(bytes: &mut [u8]) -> u64 {
    bytes.as_mut_ptr().expose_provenance() as u64
}

/// Hands descriptors in at one moment, between two steps of the device.
fn submit_at_once(device: &RealtimeDevice, descriptors: Vec<Descriptor>) {
    let accepted = device.control(move |function, _| {
        let portal = Portal {
            wq: 0,
            limited: false,
        };
        let mut answers = descriptors.iter().map(|d| function.submit(portal, d));
        answers.all(|answer| answer == Submission::Accepted)
    });
    assert_eq!(accepted, Ok(true));
}

fn ends(witness: &Witness) -> Vec<(WorkId, Option<CompletionRecord>)> {
    let events = witness.events.lock().unwrap();
    let ends = events.iter().filter_map(|event| match event {
        Event::Ended { id, record } => Some((*id, *record)),
        _ => None,
    });
    ends.collect()
}

/// In which order 40 copies end, and what their records say of bytes.
fn trace(chaos: &str, engines: u16) -> Vec<(WorkId, Status, u32)> {
    let (device, witness) = start(
        config(engines, vec![queue(0, Dedicated, 64)]),
        options(chaos),
    );
    let source = vec![3_u8; 3 * PAGE];
    let mut into = vec![0_u8; 40 * 3 * PAGE];
    let records = Records::new(40);
    let copies = into.chunks_mut(3 * PAGE).enumerate();
    let copies = copies.map(|(n, into)| {
        let copy = Descriptor::memmove(at(&source), at_mut(into), 3 * PAGE as u32);
        copy.with_completion(records.address(n))
    });
    submit_at_once(&device, copies.collect());
    for n in 0..40 {
        records.wait(n);
    }
    device.stop(Stop::Drain).unwrap();
    let ends = ends(&witness).into_iter().map(|(id, record)| {
        let record = record.unwrap();
        // By the page, for the memory is another one.
        (id, record.status(), record.bytes_completed / PAGE as u32)
    });
    ends.collect()
}

#[test]
fn the_same_seed_and_submissions_give_the_same_trace() {
    for seed in 0..6 {
        let chaos = format!("{seed}:delay+record+lines+retry");
        assert_eq!(trace(&chaos, 4), trace(&chaos, 4), "{chaos}");
    }
    let one = trace("1", 4);
    assert_ne!(one, trace("2", 4));
    let is_fault = |end: &&(WorkId, Status, u32)| end.1.code() == Status::PAGE_FAULT.code();
    let faults = one.iter().filter(is_fault).count();
    assert!((1..20).contains(&faults), "{one:?}");
}

/// Descriptors that were submitted before one that ended before them.
fn overtaken(ends: &[(WorkId, Status, u32)], accepted: &[WorkId]) -> usize {
    let place = |id: &WorkId| accepted.iter().position(|other| other == id).unwrap();
    let places: Vec<usize> = ends.iter().map(|(id, ..)| place(id)).collect();
    places.windows(2).filter(|pair| pair[0] > pair[1]).count()
}

#[test]
fn one_engine_keeps_the_order_of_its_queue_and_several_do_not() {
    let mut accepted: Vec<WorkId> = trace("0:none", 1).iter().map(|end| end.0).collect();
    accepted.dedup();
    for seed in 0..4 {
        let chaos = seed.to_string();
        assert_eq!(overtaken(&trace(&chaos, 1), &accepted), 0, "{chaos}");
        assert!(overtaken(&trace(&chaos, 4), &accepted) > 4, "{chaos}");
    }
}

#[test]
fn sources_may_be_read_late() {
    let late = (0..32).any(|seed| {
        let chaos = format!("{seed}:delay");
        let (device, _) = start(config(4, vec![queue(0, Dedicated, 16)]), options(&chaos));
        let source = [const { AtomicU8::new(1) }; 64];
        let mut into = [0_u8; 64];
        let records = Records::new(1);
        let from = source.as_ptr().expose_provenance() as u64;
        let copy = Descriptor::memmove(from, at_mut(&mut into), 64);
        insist(
            &portal(&device, 0, false),
            &copy.with_completion(records.address(0)),
        );
        for byte in &source {
            byte.store(2, Ordering::Relaxed);
        }
        records.wait(0);
        device.stop(Stop::Drain).unwrap();
        into[0] == 2
    });
    assert!(late);
}

/// Memory that keeps where it was written.
#[derive(Clone)]
struct Logged {
    inner: ProcessMemory<AllAccessible>,
    writes: Arc<Mutex<Vec<(u64, usize)>>>,
}

impl Memory for Logged {
    fn accessible(&self, addr: u64, len: u64, access: Access) -> u64 {
        self.inner.accessible(addr, len, access)
    }

    fn read(&self, addr: u64, into: &mut [u8]) {
        self.inner.read(addr, into);
    }

    fn write(&mut self, addr: u64, from: &[u8]) {
        self.writes.lock().unwrap().push((addr, from.len()));
        self.inner.write(addr, from);
    }
}

impl SharedMemory for Logged {
    fn publish(&mut self, address: u64, record: &CompletionRecord) -> bool {
        self.writes.lock().unwrap().push((0, 0));
        self.inner.publish(address, record)
    }
}

#[test]
fn lines_are_written_in_any_order_all_of_them_before_the_record() {
    let source: Vec<u8> = (0..1000).map(|n| n as u8).collect();
    let mut disordered = 0;
    for seed in 0..16 {
        let memory = Logged {
            // SAFETY: what the descriptor names lives until the device has ended.
            inner: unsafe { ProcessMemory::new(AllAccessible) },
            writes: Arc::default(),
        };
        let writes = memory.writes.clone();
        let config = config(2, vec![queue(0, Dedicated, 16)]);
        let options = options(&format!("{seed}:lines+record"));
        let device = RealtimeDevice::start(config, memory, options, |_| {}).unwrap();
        let mut into = vec![0_u8; 1001];
        let records = Records::new(1);
        let copy = Descriptor::memmove(at(&source), at_mut(&mut into[1..]), 1000);
        insist(
            &portal(&device, 0, false),
            &copy.with_completion(records.address(0)),
        );
        records.wait(0);
        assert_eq!(into[1..], source[..]);
        device.stop(Stop::Drain).unwrap();
        let mut writes = writes.lock().unwrap().clone();
        assert_eq!(writes.pop(), Some((0, 0)), "the record");
        disordered += usize::from(!writes.is_sorted());
        assert!(
            writes
                .iter()
                .all(|(address, len)| address % 64 + *len as u64 <= 64 || writes.len() == 1)
        );
        assert_eq!(writes.iter().map(|(_, len)| len).sum::<usize>(), 1000);
    }
    assert!((4..16).contains(&disordered), "{disordered}");
}

/// A move of 8 pages from one place of a buffer of 16 to another: the bytes before and after it, and its record.
fn moved(seed: u64, from: usize, to: usize, flags: Flags) -> (Vec<u8>, Vec<u8>, CompletionRecord) {
    let chaos = format!("{seed}:fault+lines+record");
    let mut queue = queue(0, Dedicated, 16);
    queue.block_on_fault = true;
    let (device, _) = start(config(2, vec![queue]), options(&chaos));
    let mut bytes: Vec<u8> = (0..16 * PAGE).map(|n| (n % 251) as u8).collect();
    let before = bytes.clone();
    let base = at_mut(&mut bytes);
    let size = 8 * PAGE as u32;
    let copy = Descriptor::memmove(base + from as u64, base + to as u64, size);
    let copy = copy.with_flags(copy.flags() | flags);
    let records = Records::new(1);
    insist(
        &portal(&device, 0, false),
        &copy.with_completion(records.address(0)),
    );
    let record = records.wait(0);
    device.stop(Stop::Drain).unwrap();
    (before, bytes, record)
}

#[test]
fn a_page_fault_leaves_the_bytes_that_are_done_in_its_direction() {
    const SIZE: usize = 8 * PAGE;
    // Apart; overlapping downwards; overlapping upwards, which goes from the end.
    for (from, to, backward) in [(0, SIZE, false), (5000, 100, false), (100, 5000, true)] {
        let (mut faults, mut partial) = (0, 0);
        for seed in 0..48 {
            let (before, after, record) = moved(seed, from, to, Flags::EMPTY);
            let mut expected = before.clone();
            let mut done = SIZE;
            if record.status().code() == Status::PAGE_FAULT.code() {
                done = record.bytes_completed as usize;
                faults += 1;
                partial += usize::from(done > 0);
                assert!(done < SIZE);
                assert_eq!(record.result, u8::from(backward));
                assert_ne!(record.fault_address, 0);
            } else {
                assert_eq!(record.status(), Status::SUCCESS);
            }
            let first = if backward { SIZE - done } else { 0 };
            expected[to + first..to + first + done]
                .copy_from_slice(&before[from + first..from + first + done]);
            assert_eq!(after, expected, "seed {seed}, {record:?}");
        }
        assert!((1..30).contains(&faults), "{faults}");
        assert!(partial > 0);
    }
}

#[test]
fn who_blocks_on_faults_has_none() {
    for seed in 0..32 {
        let (.., record) = moved(seed, 0, 8 * PAGE, Flags::BLOCK_ON_FAULT);
        assert_eq!(record.status(), Status::SUCCESS, "seed {seed}");
    }
}

#[test]
fn a_shared_queue_answers_retry_with_room_and_accepts_later() {
    // A queue answers retry for a time after a submission, which a busy machine lets pass: seeds until one is seen.
    let is_refused = (0..256).any(|seed| {
        let chaos = format!("{seed}:retry");
        let (device, _) = start(config(2, vec![queue(0, Shared, 16)]), options(&chaos));
        let portal = portal(&device, 0, true);
        let records = Records::new(16);
        let noop = |n| Descriptor::noop().with_completion(records.address(n));
        let refused = (0..16).map(|n| {
            let refused = insist(&portal, &noop(n));
            records.wait(n);
            refused
        });
        let refused: u64 = refused.sum();
        device.stop(Stop::Drain).unwrap();
        refused > 0
    });
    assert!(is_refused);
}

#[test]
fn fences_and_drains_hold() {
    for seed in 0..24 {
        let chaos = format!("{seed}:delay+record+lines");
        let (device, _) = start(config(4, vec![queue(0, Dedicated, 32)]), options(&chaos));
        let mut pages = [
            vec![1_u8; PAGE],
            vec![2; PAGE],
            vec![3; PAGE],
            vec![4; PAGE],
        ];
        let [a, b, c, d] = [0, 1, 2, 3].map(|n| at_mut(&mut pages[n]));
        let copy = |from, to| Descriptor::memmove(from, to, PAGE as u32);
        let fenced = |d: Descriptor| d.with_flags(d.flags() | Flags::FENCE);
        #[repr(align(64))]
        struct List([Descriptor; 3]);
        let list = List([copy(a, b), fenced(copy(b, c)), fenced(copy(c, d))]);
        let list = list.0.as_ptr().expose_provenance() as u64;
        let records = Records::new(10);
        let portal = portal(&device, 0, false);
        let mut bytes = [[0_u8; 64]; 8];
        for (n, bytes) in bytes.iter_mut().enumerate() {
            let fill = Descriptor::fill(0x0909_0909_0909_0909, at_mut(bytes), 64);
            insist(&portal, &fill.with_completion(records.address(n)));
        }
        insist(
            &portal,
            &Descriptor::batch(list, 3).with_completion(records.address(8)),
        );
        insist(
            &portal,
            &Descriptor::drain().with_completion(records.address(9)),
        );
        assert_eq!(records.wait(9).status(), Status::SUCCESS);
        // All before the drain has ended with it.
        for n in 0..9 {
            assert_eq!(records.status(n), Status::SUCCESS, "seed {seed}, {n}");
        }
        assert!(bytes.iter().flatten().all(|byte| *byte == 9));
        device.stop(Stop::Drain).unwrap();
        assert!(pages.iter().flatten().all(|byte| *byte == 1));
    }
}

#[test]
fn nothing_is_overtaken_by_more_than_the_device_says() {
    let (device, witness) = start(config(2, vec![queue(0, Dedicated, 64)]), options("3:delay"));
    let reach = device.reach(0);
    let portal = portal(&device, 0, false);
    let records = Records::new(1000);
    for n in 0..1000 {
        if n >= 60 {
            records.wait(n - 60);
        }
        insist(
            &portal,
            &Descriptor::noop().with_completion(records.address(n)),
        );
    }
    device.stop(Stop::Drain).unwrap();
    let order = witness.records.lock().unwrap();
    let numbers: Vec<usize> = order
        .iter()
        .map(|address| (address - records.address(0)) as usize / 32)
        .collect();
    let mut oldest = 0;
    let mut ended = vec![false; 1000];
    for number in numbers {
        assert!(number < oldest + reach, "{number} before {oldest}");
        ended[number] = true;
        while ended.get(oldest) == Some(&true) {
            oldest += 1;
        }
    }
    assert_eq!(oldest, 1000);
}

#[test]
fn hardware_errors_are_a_profile_of_their_own() {
    let statuses = |chaos: &str| {
        let ends = trace(chaos, 4).into_iter();
        ends.map(|end| end.1).collect::<Vec<_>>()
    };
    let errors = [
        Status::HARDWARE_ERROR_READ,
        Status::HARDWARE_ERROR_WRITE,
        Status::TRANSLATION_FAIL,
    ];
    let is_error = |status: &Status| errors.contains(status);
    assert!((0..4).all(|seed| !statuses(&seed.to_string()).iter().any(is_error)));
    assert!((0..4).any(|seed| statuses(&format!("{seed}:errors")).iter().any(is_error)));
}

/// Whether, for a seed, something ends between the last member of a batch and the batch.
fn is_batch_late(chaos: &str) -> bool {
    let (device, witness) = start(config(4, vec![queue(0, Dedicated, 32)]), options(chaos));
    let records = Records::new(11);
    let noop = |n| Descriptor::noop().with_completion(records.address(n));
    #[repr(align(64))]
    struct List([Descriptor; 2]);
    let list = List([noop(0), noop(1)]);
    let list = list.0.as_ptr().expose_provenance() as u64;
    let batch = Descriptor::batch(list, 2).with_completion(records.address(2));
    submit_at_once(
        &device,
        std::iter::once(batch).chain((3..11).map(noop)).collect(),
    );
    for n in 0..11 {
        assert_eq!(records.wait(n).status(), Status::SUCCESS, "{chaos}");
    }
    device.stop(Stop::Drain).unwrap();
    let ends = ends(&witness);
    let place = |id: &WorkId| ends.iter().position(|end| end.0 == *id).unwrap();
    let events = witness.events.lock().unwrap();
    let members = events.iter().filter_map(|event| match event {
        Event::Started { id, batch, .. } => Some((place(id), place(&(*batch)?))),
        _ => None,
    });
    let (last, batch) = members.max().unwrap();
    assert!(last < batch, "{chaos}");
    batch - last > 1
}

#[test]
fn the_record_of_a_batch_comes_late() {
    assert!((0..32).any(|seed| is_batch_late(&format!("{seed}:record"))));
    assert!(!(0..4).any(|seed| is_batch_late(&format!("{seed}:none"))));
}

/// Who submits as programs do goes on when the device says so: half of the descriptors have ended by then.
#[test]
fn prompt_descriptors_end_before_their_program_goes_on() {
    let options = Options {
        shared: true,
        ..options("3:delay+record+prompt")
    };
    let (device, _) = start(config(1, vec![queue(0, Dedicated, 64)]), options);
    let region = device.region().unwrap();
    let attachment = Attachment::new(region.fd(), region.layout(), 1).unwrap();
    let portal = attachment
        .portal(Portal {
            wq: 0,
            limited: false,
        })
        .unwrap();
    assert!(portal.is_watched());
    let records = Records::new(64);
    let mut prompt = 0;
    for n in 0..64 {
        let noop = Descriptor::noop().with_completion(records.address(n));
        assert_eq!(portal.write_posted(&noop), Submission::Accepted);
        while !portal.has_looked(portal.accepted()) {
            std::thread::yield_now();
        }
        prompt += u32::from(records.status(n) == Status::SUCCESS);
    }
    assert!((16..64).contains(&prompt), "{prompt}");
    for n in 0..64 {
        records.wait(n);
    }
    device.stop(Stop::Drain).unwrap();
}
