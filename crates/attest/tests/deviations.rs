//! Devices that do otherwise than the specification says, one deviation each: each is found by what is about it, and
//! a device as it is deviates in nothing.

use std::sync::{Arc, Mutex, PoisonError};

use dray_attest::{AsItIs, Attest, Deviation, Plan, attest_virtual};
use dray_device::{Capabilities, DeviceConfig, WorkQueueConfig, WorkQueueMode};
use dray_spec::{CompletionRecord, Descriptor, Flags, Opcode, Status};

fn config(capabilities: Capabilities, mode: WorkQueueMode, engines: u16) -> DeviceConfig {
    let queue = WorkQueueConfig::new(0, mode, 32);
    DeviceConfig {
        capabilities,
        ..DeviceConfig::sapphire_rapids(engines, vec![queue])
    }
}

/// The table's memory is at its addresses once in a process.
static GROUND: Mutex<()> = Mutex::new(());

fn attested(config: DeviceConfig, deviation: impl Deviation) -> Attest {
    let _one = GROUND.lock().unwrap_or_else(PoisonError::into_inner);
    let plan = Plan {
        litmus_times: 10,
        ..Plan::default()
    };
    let attested = attest_virtual(config, Arc::new(deviation), plan, &|_| true);
    attested.expect("a device that completes what it takes")
}

/// Names of rows and cases that deviate.
fn named(attest: &Attest) -> Vec<String> {
    let rows = attest.failed_rows().map(|row| row.rule.clone());
    let cases = attest.forbidden().map(|case| case.case.clone());
    rows.chain(cases).collect()
}

#[test]
fn a_device_as_it_is_deviates_in_nothing() {
    use WorkQueueMode::{Dedicated, Shared};
    for (capabilities, mode, engines) in [
        (Capabilities::sapphire_rapids(), Dedicated, 1),
        (Capabilities::sapphire_rapids(), Shared, 2),
        (Capabilities::version_2(), Dedicated, 4),
    ] {
        let attest = attested(config(capabilities, mode, engines), AsItIs);
        assert_eq!(named(&attest), Vec::<String>::new(), "{attest:?}");
        let held: usize = attest.rows.iter().map(|row| row.held).sum();
        assert!(held > 1500, "{held} cases");
        let untried = attest.litmus.iter().filter(|case| case.needs.is_some());
        assert_eq!(untried.count(), 0);
    }
}

/// What a queue is not configured for is left out by name, and is no deviation.
#[test]
fn a_queue_with_few_operations_deviates_in_nothing() {
    let mut config = config(Capabilities::version_2(), WorkQueueMode::Dedicated, 1);
    let queue = &mut config.work_queues[0];
    // NOOP, copy and fill; transfers of 16 KiB; no translation.
    queue.op_config = [1 << 0 | 1 << 3 | 1 << 4, 0, 0, 0];
    queue.max_transfer_size = 16 << 10;
    queue.ats_disable = true;
    let attest = attested(config, AsItIs);
    assert_eq!(named(&attest), Vec::<String>::new(), "{attest:?}");
    let needs = |what: &str| {
        let mut needs = attest
            .litmus
            .iter()
            .filter_map(|case| case.needs.as_deref());
        needs.any(|needs| needs == what)
    };
    for what in [
        "transfers of 262144 bytes",
        "batches of 8",
        "the operation drain",
        "drains",
    ] {
        assert!(needs(what), "{what}: {:?}", attest.litmus);
    }
}

/// What a device does otherwise.
#[derive(Debug, Default, Clone, Copy)]
struct Planted {
    descriptor: Option<fn(&mut Descriptor)>,
    member: Option<fn(&mut Descriptor)>,
    record: Option<fn(&Descriptor, &mut CompletionRecord)>,
    write: Option<fn(&mut [u8])>,
    record_first: bool,
    status_first: bool,
}

impl Deviation for Planted {
    fn descriptor(&self, descriptor: &mut Descriptor) {
        if let Some(change) = self.descriptor {
            change(descriptor);
        }
    }

    fn member(&self) -> Option<fn(&mut Descriptor)> {
        self.member
    }

    fn record(&self, of: &Descriptor, record: &mut CompletionRecord) {
        if let Some(change) = self.record {
            change(of, record);
        }
    }

    fn write(&self, bytes: &mut [u8]) {
        if let Some(change) = self.write {
            change(bytes);
        }
    }

    fn record_first(&self) -> bool {
        self.record_first
    }

    fn status_first(&self) -> bool {
        self.status_first
    }
}

fn of_record(change: fn(&Descriptor, &mut CompletionRecord)) -> Planted {
    Planted {
        record: Some(change),
        ..Planted::default()
    }
}

fn of_descriptor(change: fn(&mut Descriptor)) -> Planted {
    Planted {
        descriptor: Some(change),
        ..Planted::default()
    }
}

fn is(descriptor: &Descriptor, opcode: Opcode) -> bool {
    descriptor.opcode() == Ok(opcode)
}

fn says(record: &mut CompletionRecord, from: Status, to: Status) {
    if record.status == from.0 {
        record.status = to.0;
    }
}

/// Each deviation; what must be among the names that are given for it; and what the names have in common, of
/// which there must be no other.
type About = fn(&str) -> bool;

fn planted() -> Vec<(&'static str, Planted, &'static str, About)> {
    vec![
        (
            "overlapping buffers are refused with the status of a size",
            of_record(|_, record| says(record, Status::OVERLAP, Status::TRANSFER_SIZE)),
            "copy with CRC: buffers do not overlap",
            |name| name.contains("overlap") || name.contains("buffers"),
        ),
        (
            "an unknown opcode is refused as invalid flags",
            of_record(|_, record| says(record, Status::BAD_OPCODE, Status::INVALID_FLAGS)),
            "OPCAP has the operation",
            |name| {
                name.contains("OPCAP")
                    || name.contains("architecture")
                    || name.contains("OPCFG")
                    || name.contains("in a batch")
                    || name.contains("in the batch")
                    || name.contains("translation fetch")
            },
        ),
        (
            "reserved bytes are not looked at",
            of_descriptor(|d| {
                if is(d, Opcode::Memmove) {
                    d.operation = [0; 24];
                    d.reserved = 0;
                }
            }),
            "reserved bytes of memmove",
            |name| name.contains("reserved bytes of memmove"),
        ),
        (
            "a comparison gives the wrong result",
            of_record(|d, record| {
                if is(d, Opcode::Compare) && record.status == 1 {
                    record.result ^= 1;
                }
            }),
            "compare: predicate",
            |name| {
                name.contains("compar") || name.contains("difference") || name.contains("predicate")
            },
        ),
        (
            "a false predicate is reported as success",
            of_record(|d, record| {
                if is(d, Opcode::Compare) {
                    says(record, Status::SUCCESS_PREDICATE, Status::SUCCESS);
                }
            }),
            "compare: predicate",
            |name| name.contains("predicate") || name.contains("compare"),
        ),
        (
            "bytes completed before a fault are one line too many",
            of_record(|d, record| {
                if is(d, Opcode::Memmove) && record.status & 0x3f == 3 {
                    record.bytes_completed += 64;
                }
            }),
            "memmove reads up to a hole",
            |name| name.contains("memmove") || name.contains("overlapping move"),
        ),
        (
            "a fault is reported at the page behind",
            of_record(|_, record| {
                if record.status & 0x3f == 3 {
                    record.fault_address += 4096;
                }
            }),
            "fill",
            |name| !name.contains("reserved") && !name.contains("size of"),
        ),
        (
            "a fault of a write is reported as one of a read",
            of_record(|_, record| {
                if record.status == 0x83 {
                    record.status = 3;
                }
            }),
            "fill",
            |name| !name.contains("reserved") && !name.contains("size of"),
        ),
        (
            "fences are ignored",
            Planted {
                member: Some(|d| d.flags_opcode &= !Flags::FENCE.bits()),
                ..Planted::default()
            },
            "fence behind a size of 0",
            |name| name.contains("fence") || name.contains("failure"),
        ),
        (
            "records are written before the data",
            Planted {
                record_first: true,
                ..Planted::default()
            },
            "data before record: copy of 4096",
            |_| true,
        ),
        (
            "the status is written before the rest of the record",
            Planted {
                status_first: true,
                ..Planted::default()
            },
            "whole record: CRC of 64",
            |name| {
                name.contains("record") || name.contains("counted") || name.contains("CRC behind")
            },
        ),
        (
            "the seed of a CRC is not used",
            of_descriptor(|d| {
                if is(d, Opcode::CrcGenerate) {
                    d.operation[..4].fill(0);
                }
            }),
            "crc: a seed or its address",
            |name| name.to_lowercase().contains("crc"),
        ),
        (
            "CRCs are inverted",
            of_record(|d, record| {
                if (is(d, Opcode::CrcGenerate) || is(d, Opcode::CopyCrc)) && record.status == 1 {
                    record.set_crc32(!record.crc32());
                }
            }),
            "whole record: CRC of 4096",
            |name| name.to_lowercase().contains("crc") || name.contains("seed"),
        ),
        (
            "a batch counts one member too few",
            of_record(|d, record| {
                if is(d, Opcode::Batch) {
                    record.bytes_completed = record.bytes_completed.saturating_sub(1);
                }
            }),
            "batch: members that ended are counted",
            |name| {
                name.contains("batch")
                    || name.contains("member")
                    || name.contains("list")
                    || name.contains("fence")
                    || name.contains("failure")
            },
        ),
        (
            "a batch of a member that failed succeeds",
            of_record(|d, record| {
                if is(d, Opcode::Batch) {
                    says(record, Status::BATCH_FAIL, Status::SUCCESS);
                }
            }),
            "all members succeed",
            |name| name.contains("member") || name.contains("fence") || name.contains("batch"),
        ),
        (
            "a delta may be larger than 512 KiB",
            of_record(|d, record| {
                if is(d, Opcode::CreateDelta) {
                    says(record, Status::TRANSFER_SIZE, Status::SUCCESS);
                }
            }),
            "a delta describes at most 512 KiB",
            |name| name.contains("delta"),
        ),
        (
            "an overflow of a delta record is reported as a delta",
            of_record(|d, record| {
                if is(d, Opcode::CreateDelta) && record.result == 2 {
                    record.result = 1;
                }
            }),
            "a full delta record ends with a whole entry",
            |name| name.contains("delta") || name.contains("record to create"),
        ),
        (
            "a drain does not wait",
            of_descriptor(|d| {
                if *d == Descriptor::drain().with_completion(d.completion_addr) {
                    *d = Descriptor::noop().with_completion(d.completion_addr);
                }
            }),
            // Which of them sees it is a matter of time.
            "drain behind",
            |name| name.contains("drain"),
        ),
        (
            "dualcast does not look at the alignment of its destinations",
            of_record(|d, record| {
                if is(d, Opcode::Dualcast) {
                    says(record, Status::DUALCAST_ALIGNMENT, Status::SUCCESS);
                }
            }),
            "dualcast: destinations agree",
            |name| name.contains("dualcast"),
        ),
        (
            "the last byte that is written is wrong",
            Planted {
                write: Some(|bytes| {
                    if let Some(last) = bytes.last_mut().filter(|_| bytes_are_data()) {
                        *last ^= 0x80;
                    }
                }),
                ..Planted::default()
            },
            "data before record: copy of 64",
            |_| true,
        ),
    ]
}

/// All that goes through this hook are operands: records have one of their own.
fn bytes_are_data() -> bool {
    true
}

#[test]
fn twenty_deviations_are_named_each_by_what_is_about_it() {
    let all = planted();
    assert_eq!(all.len(), 20);
    let mut wrong = Vec::new();
    for (what, planted, expected, about) in all {
        let mut seen = Vec::new();
        // A thread that is off its processor at the wrong time sees no wrong order: the next one may.
        for _ in 0..5 {
            let config = config(Capabilities::sapphire_rapids(), WorkQueueMode::Dedicated, 4);
            seen = named(&attested(config, planted));
            println!("{what}: {seen:?}");
            let strangers: Vec<&String> = seen.iter().filter(|name| !about(name)).collect();
            if !strangers.is_empty() {
                wrong.push(format!("{what}: {strangers:?}"));
            }
            if seen.iter().any(|name| name.contains(expected)) {
                break;
            }
        }
        if !seen.iter().any(|name| name.contains(expected)) {
            wrong.push(format!("{what}: {expected:?} is not in {seen:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
