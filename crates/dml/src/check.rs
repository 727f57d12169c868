//! What a job must be before it is submitted: the checks that the job API documents for each operation.

use dray_spec::{Descriptor, Opcode};

use crate::status;

/// Largest size of the operations on deltas, bytes.
const LARGEST_DELTA: u32 = 0x8_0000;
/// Bytes of an entry of a delta record, and of the least record.
const DELTA_ENTRY: u32 = 10;
const LEAST_DELTA_RECORD: u32 = 80;
/// Least number of tasks of a batch (`DML_MIN_BATCH_SIZE`).
pub(crate) const LEAST_BATCH: u32 = 4;
/// Bytes of an integrity field.
const DIF_FIELD: u64 = 8;

/// Fails with the status of the first rule that is broken.
fn refuse(rules: &[(bool, u32)]) -> Result<(), u32> {
    match rules.iter().find(|(broken, _)| *broken) {
        Some((_, status)) => Err(*status),
        None => Ok(()),
    }
}

/// Bytes of a block by `dml_dif_block_size_t`.
fn block(d: &Descriptor) -> u64 {
    [512, 520, 4096, 4104][usize::from(d.dif_flags() & 3)]
}

fn overlap(a: u64, a_bytes: u64, b: u64, b_bytes: u64) -> bool {
    a < b.saturating_add(b_bytes) && b < a.saturating_add(a_bytes)
}

fn misaligned(addresses: &[u64]) -> bool {
    addresses.iter().any(|address| !address.is_multiple_of(8))
}

/// Checks a descriptor of the job API.
///
/// # Errors
/// The `dml_status_t` of the first rule that it breaks.
pub(crate) fn check(d: &Descriptor) -> Result<(), u32> {
    let Ok(opcode) = d.opcode() else {
        return Err(status::JOB_OPERATION_ERROR);
    };
    let (a, b, size) = (d.address1, d.address2, u64::from(d.size));
    match opcode {
        Opcode::Noop | Opcode::Drain => Ok(()),
        Opcode::Batch => refuse(&[
            (a == 0, status::NULL_POINTER_ERROR),
            (d.size < LEAST_BATCH, status::BATCH_SIZE_ERROR),
        ]),
        Opcode::Memmove | Opcode::Compare => refuse(&[
            (a == 0 || b == 0, status::NULL_POINTER_ERROR),
            (size == 0, status::JOB_LENGTH_ERROR),
        ]),
        Opcode::Fill | Opcode::CacheFlush => refuse(&[
            (b == 0, status::NULL_POINTER_ERROR),
            (size == 0, status::JOB_LENGTH_ERROR),
        ]),
        Opcode::ComparePattern | Opcode::CrcGenerate => refuse(&[
            (a == 0, status::NULL_POINTER_ERROR),
            (size == 0, status::JOB_LENGTH_ERROR),
        ]),
        Opcode::CopyCrc => refuse(&[
            (a == 0 || b == 0, status::NULL_POINTER_ERROR),
            (size == 0, status::JOB_LENGTH_ERROR),
            (overlap(a, size, b, size), status::OVERLAPPING_BUFFER_ERROR),
        ]),
        Opcode::CreateDelta => refuse(&[
            (
                a == 0 || b == 0 || d.delta_record() == 0,
                status::NULL_POINTER_ERROR,
            ),
            (
                size == 0 || d.max_delta_size() == 0,
                status::JOB_LENGTH_ERROR,
            ),
            (
                misaligned(&[a, b, d.delta_record()]),
                status::DELTA_ALIGN_ERROR,
            ),
            (
                !size.is_multiple_of(8) || d.size > LARGEST_DELTA,
                status::DELTA_INPUT_SIZE_ERROR,
            ),
            (
                !d.max_delta_size().is_multiple_of(DELTA_ENTRY),
                status::DELTA_RECORD_SIZE_ERROR,
            ),
            (
                d.max_delta_size() < LEAST_DELTA_RECORD,
                status::DELTA_RECORD_SIZE_ERROR,
            ),
        ]),
        Opcode::ApplyDelta => refuse(&[
            (a == 0 || b == 0, status::NULL_POINTER_ERROR),
            (
                size == 0 || d.delta_record_size() == 0,
                status::JOB_LENGTH_ERROR,
            ),
            (
                overlap(a, d.delta_record_size().into(), b, size),
                status::OVERLAPPING_BUFFER_ERROR,
            ),
            (misaligned(&[a, b]), status::DELTA_ALIGN_ERROR),
            (
                !size.is_multiple_of(8) || d.size > LARGEST_DELTA,
                status::DELTA_INPUT_SIZE_ERROR,
            ),
            (
                !d.delta_record_size().is_multiple_of(DELTA_ENTRY),
                status::DELTA_RECORD_SIZE_ERROR,
            ),
        ]),
        Opcode::Dualcast => {
            let second = d.destination2();
            refuse(&[
                (a == 0 || b == 0 || second == 0, status::NULL_POINTER_ERROR),
                (size == 0, status::JOB_LENGTH_ERROR),
                ((b ^ second) & 0xfff != 0, status::DUALCAST_ALIGN_ERROR),
                (overlap(a, size, b, size), status::OVERLAPPING_BUFFER_ERROR),
                (
                    overlap(a, size, second, size),
                    status::OVERLAPPING_BUFFER_ERROR,
                ),
                (
                    overlap(b, size, second, size),
                    status::OVERLAPPING_BUFFER_ERROR,
                ),
            ])
        }
        Opcode::DifCheck | Opcode::DifInsert | Opcode::DifStrip | Opcode::DifUpdate => {
            check_dif(opcode, d)
        }
        _ => Err(status::JOB_OPERATION_ERROR),
    }
}

fn check_dif(opcode: Opcode, d: &Descriptor) -> Result<(), u32> {
    let (a, b, size) = (d.address1, d.address2, u64::from(d.size));
    let fields = match opcode {
        Opcode::DifInsert => 0,
        _ => DIF_FIELD,
    };
    let whole = block(d) + fields;
    refuse(&[
        (
            a == 0 || b == 0 && opcode != Opcode::DifCheck,
            status::NULL_POINTER_ERROR,
        ),
        (
            size == 0 || !size.is_multiple_of(whole),
            status::JOB_LENGTH_ERROR,
        ),
    ])?;
    let blocks = size / whole;
    let written = match opcode {
        Opcode::DifCheck => return Ok(()),
        Opcode::DifInsert => size + blocks * DIF_FIELD,
        Opcode::DifStrip => size - blocks * DIF_FIELD,
        _ => size,
    };
    // Devices are known to fail where a strip's source follows its destination within the fields that are left out.
    let adjacent = opcode == Opcode::DifStrip && b < a && a <= b.saturating_add(size);
    refuse(&[
        (
            overlap(a, size, b, written),
            status::OVERLAPPING_BUFFER_ERROR,
        ),
        (adjacent, status::DIF_STRIP_ADJACENT_ERROR),
    ])
}
