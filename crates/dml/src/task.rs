//! Descriptors of jobs and of the tasks of batches.

use dray_spec::{Descriptor, DifTags, Flags, Opcode};

use crate::job::{DifConfig, Job, State, aligned};
use crate::status;

/// `DML_FLAG_FENCE`. In a descriptor this bit has another meaning.
const FENCE: u64 = 0x4;
/// `DML_FLAG_BATCH`, which no operation has: in a descriptor this bit is the fence.
const BATCH: u64 = 0x1;
/// `DML_FLAG_COPY_ONLY`: refused if the buffers overlap; no flag of a descriptor.
const COPY_ONLY: u64 = 0x20;
/// `DML_FLAG_CRC_READ_SEED`: the seed stands at `crc_checksum_ptr`. In a descriptor it would be an address.
const READ_SEED: u64 = 0x1_0000;
/// Bits that belong to one operation.
const OF_OPERATION: u64 = 0xff_0000;
/// Bits of `DML_DIF_FLAG_INVERT_CRC_*`, in place.
const DIF_COMMON: u32 = 16;
/// Bytes of a task: a descriptor and its record.
pub const TASK_BYTES: usize = size_of::<Descriptor>() + 32;

/// A descriptor with the flags that all operations have; a job of its own has nothing to be behind.
fn with(d: Descriptor, flags: u64, member: bool) -> Descriptor {
    let plain = flags & 0xffff & !(FENCE | BATCH);
    let d = d.with_flags(Flags::from_bits(plain as u32));
    match member && flags & FENCE != 0 {
        true => d.with_flags(Flags::FENCE),
        false => d,
    }
}

/// And with those of its own, but for some.
fn with_own(d: Descriptor, flags: u64, without: u64, member: bool) -> Descriptor {
    let own = Flags::from_bits((flags & OF_OPERATION & !without) as u32);
    with(d, flags, member).with_flags(own)
}

fn checks_result(flags: u64) -> bool {
    Flags::from_bits(flags as u32 & 0xffff).contains(Flags::CHECK_RESULT)
}

/// NOOP.
pub fn noop(flags: u64, member: bool) -> Descriptor {
    with(Descriptor::noop(), flags, member)
}

/// Memory move.
///
/// # Errors
/// It is to copy only, and the destination begins within the source.
pub fn memmove(
    source: u64,
    destination: u64,
    bytes: u32,
    flags: u64,
    member: bool,
) -> Result<Descriptor, u32> {
    let within = source <= destination && destination - source < bytes.into();
    if flags & COPY_ONLY != 0 && within {
        return Err(status::OVERLAPPING_BUFFER_ERROR);
    }
    let d = Descriptor::memmove(source, destination, bytes);
    Ok(with(d, flags & !COPY_ONLY, member))
}

/// Fill.
pub fn fill(pattern: u64, destination: u64, bytes: u32, flags: u64, member: bool) -> Descriptor {
    with(Descriptor::fill(pattern, destination, bytes), flags, member)
}

/// Dualcast.
pub fn dualcast(source: u64, to: [u64; 2], bytes: u32, flags: u64, member: bool) -> Descriptor {
    let d = Descriptor::dualcast(source, to[0], to[1], bytes);
    with_own(d, flags, 0, member)
}

/// Compare.
pub fn compare(of: [u64; 2], bytes: u32, expected: u32, flags: u64, member: bool) -> Descriptor {
    expecting(
        Descriptor::compare(of[0], of[1], bytes),
        expected,
        flags,
        member,
    )
}

/// Compare with a pattern.
pub fn compare_pattern(
    source: u64,
    pattern: u64,
    bytes: u32,
    expected: u32,
    flags: u64,
    member: bool,
) -> Descriptor {
    let d = Descriptor::compare_pattern(source, pattern, bytes);
    expecting(d, expected, flags, member)
}

fn expecting(d: Descriptor, expected: u32, flags: u64, member: bool) -> Descriptor {
    let d = with(d, flags, member);
    match checks_result(flags) {
        true => d.with_expected_result(expected as u8),
        false => d,
    }
}

/// CRC, of a copy if there is a destination.
pub fn crc(
    source: u64,
    destination: Option<u64>,
    bytes: u32,
    seed: u32,
    flags: u64,
    member: bool,
) -> Descriptor {
    let d = match destination {
        Some(destination) => Descriptor::copy_crc(source, destination, bytes, seed),
        None => Descriptor::crc(source, bytes, seed),
    };
    with_own(d, flags, READ_SEED, member)
}

/// Create delta record.
pub fn create_delta(
    of: [u64; 2],
    bytes: u32,
    record: (u64, u32),
    expected: u32,
    flags: u64,
    member: bool,
) -> Descriptor {
    let d = Descriptor::create_delta(of[0], of[1], bytes, record.0, record.1);
    let d = with(d, flags, member);
    match checks_result(flags) {
        true => d.with_expected_result_mask(expected as u8),
        false => d,
    }
}

/// Apply delta record.
pub fn apply_delta(
    record: (u64, u32),
    destination: u64,
    bytes: u32,
    flags: u64,
    member: bool,
) -> Descriptor {
    let d = Descriptor::apply_delta(record.0, destination, bytes, record.1);
    with(d, flags, member)
}

/// Cache flush.
pub fn cache_flush(destination: u64, bytes: u32, flags: u64, member: bool) -> Descriptor {
    with(Descriptor::cache_flush(destination, bytes), flags, member)
}

/// An operation on integrity fields.
pub fn dif(
    opcode: Opcode,
    from: u64,
    to: u64,
    bytes: u32,
    config: &DifConfig,
    flags: u64,
    member: bool,
) -> Descriptor {
    let common = (config.flags >> DIF_COMMON) as u8 & 0x0c | config.block_size as u8 & 3;
    let source = (
        config.flags as u8,
        DifTags {
            reference: config.source_reference_tag_seed,
            app_mask: config.source_application_tag_mask,
            app: config.source_application_tag_seed,
        },
    );
    let written = (
        (config.flags >> 8) as u8,
        DifTags {
            reference: config.destination_reference_tag_seed,
            app_mask: config.destination_application_tag_mask,
            app: config.destination_application_tag_seed,
        },
    );
    let d = match opcode {
        Opcode::DifInsert => Descriptor::dif_insert(from, to, bytes, common, written.0, written.1),
        Opcode::DifStrip => Descriptor::dif_strip(from, to, bytes, common, source.0, source.1),
        Opcode::DifUpdate => Descriptor::dif_update(from, to, bytes, common, source, written),
        _ => Descriptor::dif_check(from, bytes, common, source.0, source.1),
    };
    with(d, flags, member)
}

/// The seed of a CRC: what stands in memory if the flags say so.
///
/// # Safety
/// The pointer is null or valid.
unsafe fn seed(at: *const u32, flags: u64) -> u32 {
    match flags & READ_SEED != 0 && !at.is_null() {
        // SAFETY: it is valid; C aligns it, and a byte buffer need not be.
        true => unsafe { at.read_unaligned() },
        false => 0,
    }
}

/// The tasks of a batch: their descriptors, and behind these their records.
#[derive(Debug, Clone, Copy)]
pub struct Tasks {
    /// The first descriptor, aligned.
    pub descriptors: *mut Descriptor,
    /// How many there are.
    pub count: u32,
}

impl Tasks {
    /// In a job's destination.
    pub fn of(job: &Job) -> Tasks {
        let first = aligned(job.destination_first);
        // What `dml_get_batch_size` gives has room for it.
        let skipped = first.addr() - job.destination_first.addr();
        let bytes = (job.destination_length as usize).saturating_sub(skipped);
        Tasks {
            descriptors: first.cast(),
            count: (bytes / TASK_BYTES) as u32,
        }
    }

    /// Makes the records say that nothing has ended.
    pub fn clear(self) {
        if !self.descriptors.is_null() {
            // SAFETY: the caller's memory has the records behind the descriptors, and no device writes them.
            unsafe { std::ptr::write_bytes(self.record(0), 0, self.count as usize) };
        }
    }

    /// The record of a task.
    pub fn record(self, index: u32) -> *mut dray_spec::CompletionRecord {
        let records = self.descriptors.wrapping_add(self.count as usize);
        records
            .cast::<dray_spec::CompletionRecord>()
            .wrapping_add(index as usize)
    }
}

/// The descriptor of a job; its record is in its state.
///
/// # Errors
/// The `dml_status_t` of the rule that the job breaks.
///
/// # Safety
/// The job's pointers are null or valid for its operation.
pub unsafe fn descriptor(job: &Job) -> Result<Descriptor, u32> {
    let address = |pointer: *mut u8| pointer.expose_provenance() as u64;
    let (a, b) = (address(job.source_first), address(job.source_second));
    let (c, d) = (
        address(job.destination_first),
        address(job.destination_second),
    );
    let (read, written) = (job.source_length, job.destination_length);
    let (flags, expected) = (job.flags, job.expected_result);
    let pattern = u64::from_le_bytes(job.pattern);
    let Some(opcode) = u8::try_from(job.operation)
        .ok()
        .and_then(|code| Opcode::try_from(code).ok())
    else {
        return Err(status::JOB_OPERATION_ERROR);
    };
    Ok(match opcode {
        Opcode::Noop => noop(flags, false),
        Opcode::Batch => {
            let tasks = Tasks::of(job);
            with(
                Descriptor::batch(address(tasks.descriptors.cast()), tasks.count),
                flags,
                false,
            )
        }
        Opcode::Drain => {
            let drain = Descriptor {
                address1: c,
                address2: d,
                ..Descriptor::drain()
            };
            with_own(drain, flags, 0, false)
        }
        Opcode::Memmove => memmove(a, c, read, flags, false)?,
        Opcode::Fill => fill(pattern, c, written, flags, false),
        Opcode::Compare => compare([a, b], read, expected, flags, false),
        Opcode::ComparePattern => compare_pattern(a, pattern, read, expected, flags, false),
        Opcode::CreateDelta => create_delta([a, b], read, (c, written), expected, flags, false),
        Opcode::ApplyDelta => apply_delta((a, read), c, written, flags, false),
        Opcode::Dualcast => dualcast(a, [c, d], read, flags, false),
        Opcode::CrcGenerate | Opcode::CopyCrc => {
            if job.crc_checksum.is_null() {
                return Err(status::NULL_POINTER_ERROR);
            }
            // SAFETY: the caller vouches for the job's pointers.
            let seed = unsafe { seed(job.crc_checksum, flags) };
            let copy = (opcode == Opcode::CopyCrc).then_some(c);
            crc(a, copy, read, seed, flags, false)
        }
        Opcode::CacheFlush => cache_flush(c, written, flags, false),
        Opcode::DifCheck | Opcode::DifInsert | Opcode::DifStrip | Opcode::DifUpdate => {
            dif(opcode, a, c, read, &job.dif_config, flags, false)
        }
        _ => return Err(status::JOB_OPERATION_ERROR),
    })
}

/// Writes into a job what its record says.
///
/// # Safety
/// The job's pointers are valid for its operation, which has ended.
pub unsafe fn results(job: &mut Job, state: &State) {
    let record = &state.record;
    let (done, result) = (record.bytes_completed, u32::from(record.result));
    match state.descriptor.opcode() {
        Ok(Opcode::Memmove) => job.result = result,
        // SAFETY: the pointer was checked when the job was submitted.
        Ok(Opcode::CrcGenerate | Opcode::CopyCrc) => unsafe {
            job.crc_checksum.write_unaligned(record.crc32());
        },
        Ok(Opcode::CreateDelta) => {
            job.result = result;
            job.destination_length = record.delta_record_size();
            // Where the sources first differ, in words of 8 bytes: the offset of the first entry.
            job.offset = match result {
                0 => 0,
                // SAFETY: the destination of a record with an entry is valid for 10 bytes.
                _ => unsafe { job.destination_first.cast::<u16>().read_unaligned() }.into(),
            };
        }
        Ok(Opcode::DifInsert) => job.offset = done,
        Ok(
            Opcode::Compare
            | Opcode::ComparePattern
            | Opcode::DifCheck
            | Opcode::DifStrip
            | Opcode::DifUpdate,
        ) => {
            job.offset = done;
            job.result = result;
        }
        _ => {}
    }
}
