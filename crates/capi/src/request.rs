//! What an operation with a handle is to do.

use std::ffi::c_void;

use dray::Operation;
use dray::task::{Segment, Work};
use dray_spec::Flags;

use crate::enqueue::{check, of_descriptor, of_flags};
use crate::error::Refusal;
use crate::integrity::parse;
use crate::operations::fitting;
use crate::structure::sized;
use crate::types::Dif;

/// What a handle's operation does: values below 256 are opcodes of the Intel DSA specification (as of
/// dray_supports). In parentheses: fields of dray_request that it uses, besides those that all do.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationCode {
    /// Nothing, which takes its time.
    Noop = 0x00,
    /// Copies (source, destination).
    Copy = 0x03,
    /// Fills with an 8-byte pattern (destination, value).
    Fill = 0x04,
    /// Compares two buffers (source, destination, which is only read).
    Compare = 0x05,
    /// Compares with an 8-byte pattern (source, value).
    ComparePattern = 0x06,
    /// Records where two buffers differ, in at most `second_bytes` bytes at `second` (source, destination, which is
    /// only read).
    CreateDelta = 0x07,
    /// Applies the record of `second_bytes` bytes at `second` (destination).
    ApplyDelta = 0x08,
    /// Copies to two destinations, whose address bits 11:0 are equal (source, destination, second).
    Dualcast = 0x09,
    /// CRC32C, from the seed `value` on (source): see dray_crc32c.
    Crc32c = 0x10,
    /// Copies, and takes the CRC32C of the same bytes (source, destination, value).
    CopyCrc32c = 0x11,
    /// CRC-64 of NVM Express, from the seed `value` on (source).
    Crc64 = 0x110,
    /// Copies, and takes the CRC-64 of the same bytes (source, destination, value).
    CopyCrc64 = 0x111,
    /// Checks integrity fields (source, dif).
    DifCheck = 0x12,
    /// Copies blocks, and adds a field to each (source, destination, dif).
    DifInsert = 0x13,
    /// Checks the fields of blocks, and copies these without (source, destination, dif).
    DifStrip = 0x14,
    /// Checks the fields of blocks, and copies these with new ones (source, destination, dif).
    DifUpdate = 0x15,
    /// Writes the fields of blocks side by side (source, destination, dif).
    DixGenerate = 0x17,
    /// Evicts from the processor's caches (destination).
    CacheFlush = 0x20,
    /// The descriptor of 64 bytes at `source`, which is read during the call: see dray_enqueue_descriptor.
    Descriptor = 0x200,
}

/// A run of bytes of a list, laid out as struct iovec of sys/uio.h.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Vector {
    /// Its first byte.
    pub base: *mut c_void,
    /// Its length; 0 is possible.
    pub bytes: usize,
}

const _: () = assert!(size_of::<Vector>() == size_of::<Segment>());

/// What an operation with a handle is to do, for dray_start. Set `size` to sizeof(dray_request), all else to 0 or what you
/// want. It is read during the call; what it points at is the mover's until the operation has ended.
///
/// Copies, fills, comparisons and CRCs take lists of segments in place of a buffer (`sources`, `destinations`):
/// `bytes` is 0 then, for it is their sum, and the sum of both sides is the same. Segments of one side need not end where
/// those of the other do. Parts may be done at the same time, in any order, so that sources and destinations must not
/// overlap; CRCs go on from one part to the next. At a fault or a difference nothing behind it is begun, and
/// `bytes_completed` counts from the first segment on.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// sizeof(dray_request), so that later versions can tell what is there.
    pub size: usize,
    /// A dray_operation.
    pub operation: u32,
    /// dray_flag values, added up.
    pub flags: u32,
    /// The caller's number, which the completion brings back.
    pub user_data: u64,
    /// What is read.
    pub source: *const c_void,
    /// What is written, or the second buffer of a comparison.
    pub destination: *mut c_void,
    /// Second destination of a dualcast, or a delta record.
    pub second: *mut c_void,
    /// Bytes of each buffer; of operations with integrity fields, of the source.
    pub bytes: usize,
    /// Bytes of the delta record, or of the place for it.
    pub second_bytes: usize,
    /// Pattern, or seed of a CRC.
    pub value: u64,
    /// Integrity fields.
    pub dif: *const Dif,
    /// Segments in place of `source`; NULL: none. The list must stay, too.
    pub sources: *const Vector,
    /// How many.
    pub source_count: usize,
    /// Segments in place of `destination`; NULL: none. The list must stay, too.
    pub destinations: *const Vector,
    /// How many.
    pub destination_count: usize,
    /// 1: dray_ended gives the handle when its operation has ended, and dray_event_fd is readable then. Until dray_ended has
    /// given it, it cannot be started again or freed.
    pub listed: u32,
    /// 0.
    pub reserved: u32,
}

const _: () = assert!(size_of::<Request>() == 120);

/// A list of segments; `None`: there is none.
///
/// # Safety
/// `list` must be NULL or point to `count` readable ones.
unsafe fn segments<'a>(
    name: &str,
    list: *const Vector,
    count: usize,
) -> Result<Option<&'a [Segment]>, Refusal> {
    match (list.is_null(), count) {
        (true, 0) => Ok(None),
        (true, _) | (false, 0) => Err(Refusal::new(
            libc::EINVAL,
            format_args!("dray_request.{name} is a list of {count} segments, or NULL and 0"),
        )),
        _ if !list.is_aligned() || count > isize::MAX as usize / size_of::<Vector>() => {
            Err(Refusal::new(
                libc::EINVAL,
                format_args!("dray_request.{name} is not a list"),
            ))
        }
        // SAFETY: by the caller's promise.
        _ => Ok(Some(unsafe {
            std::slice::from_raw_parts(list.cast::<Segment>(), count)
        })),
    }
}

/// What a request asks for, and whether it is listed.
///
/// # Safety
/// `request` must be NULL or point to as many readable bytes as its size says; its lists and its dif must be readable.
pub(crate) unsafe fn read(request: *const Request) -> Result<(Work, bool), Refusal> {
    // SAFETY: so many bytes are readable, by the caller's promise; any bytes are a request.
    let request = unsafe { sized("dray_request", request, &[]) }?;
    crate::structure::reserved("dray_request.reserved", request.reserved)?;
    let listed = crate::structure::word("dray_request.listed", request.listed, &[false, true])?;
    // SAFETY: by the caller's promise.
    let sources = unsafe { segments("sources", request.sources, request.source_count) }?;
    let (list, count) = (request.destinations, request.destination_count);
    // SAFETY: as above.
    let destinations = unsafe { segments("destinations", list, count) }?;
    let with = of_flags(request.flags)?;
    if sources.is_none() && destinations.is_none() {
        // SAFETY: as above.
        let operation =
            unsafe { operation(&request, request.source, request.destination, request.bytes) }?;
        check(&operation)?;
        return Ok((finished(operation, &request, with).into(), listed));
    }
    if request.bytes != 0 {
        let message = "dray_request.bytes is the sum of the segments: it must be 0";
        return Err(Refusal::new(libc::EINVAL, message));
    }
    if request.operation == OperationCode::Descriptor as u32 {
        return Err(Refusal::new(libc::EINVAL, "a descriptor has no segments"));
    }
    // One byte stands for the bytes of a side that has segments.
    let placeholder: *mut c_void = std::ptr::dangling_mut::<u8>().cast();
    let source = sources.map_or(request.source, |_| placeholder.cast_const());
    let destination = destinations.map_or(request.destination, |_| placeholder);
    // SAFETY: as above; the placeholders are replaced.
    let operation = unsafe { operation(&request, source, destination, 1) }?;
    let operation = finished(operation, &request, with);
    let work = Work::on(operation, sources, destinations);
    Ok((
        work.map_err(|error| Refusal::of(libc::EINVAL, &error))?,
        listed,
    ))
}

fn finished(operation: Operation, request: &Request, flags: Flags) -> Operation {
    let operation = operation.with_changed_flags(Flags::EMPTY, flags);
    operation.with_user_data(request.user_data)
}

fn on_buffers<const BUFFERS: usize, const LENGTHS: usize>(
    buffers: [*const c_void; BUFFERS],
    lengths: [usize; LENGTHS],
    make: impl FnOnce([u64; BUFFERS], [u32; LENGTHS]) -> Operation,
) -> Result<Operation, Refusal> {
    let (addresses, lengths) = fitting(buffers, lengths)?;
    Ok(make(addresses, lengths))
}

/// # Safety
/// `request.dif` must be NULL or point to as many readable bytes as its size says, `source` to 64 if it is a descriptor.
unsafe fn operation(
    request: &Request,
    source: *const c_void,
    destination: *mut c_void,
    bytes: usize,
) -> Result<Operation, Refusal> {
    use OperationCode as Code;
    let code = request.operation;
    let (to, second) = (destination.cast_const(), request.second.cast_const());
    let value = request.value;
    let on_one = |buffer, make: &dyn Fn(u64, u32) -> Operation| {
        on_buffers([buffer], [bytes], |[at]: [u64; 1], [len]: [u32; 1]| {
            make(at, len)
        })
    };
    let on_two = |make: &dyn Fn(u64, u64, u32) -> Operation| {
        let make = |[from, to]: [u64; 2], [len]: [u32; 1]| make(from, to, len);
        on_buffers([source, to], [bytes], make)
    };
    let on_three = |first, second, third, make: &dyn Fn([u64; 3], [u32; 2]) -> Operation| {
        on_buffers([first, second, third], [bytes, request.second_bytes], make)
    };
    let seed = || {
        u32::try_from(value).map_err(|_| {
            let message = "dray_request.value is the seed of a CRC32C: 32 bits";
            Refusal::new(libc::EINVAL, message)
        })
    };
    // SAFETY: by the caller's promise.
    let dif = || unsafe { parse(request.dif) };
    let is = |known: Code| code == known as u32;
    match () {
        () if is(Code::Noop) => Ok(Operation::noop()),
        () if is(Code::Copy) => on_two(&Operation::memmove),
        () if is(Code::Fill) => on_one(to, &|at, len| Operation::fill(value, at, len)),
        () if is(Code::Compare) => on_two(&Operation::compare),
        () if is(Code::ComparePattern) => on_one(source, &|at, len| {
            Operation::compare_pattern(at, value, len)
        }),
        () if is(Code::CreateDelta) => {
            on_three(source, to, second, &|[a, b, record], [len, most]| {
                Operation::create_delta(a, b, len, record, most)
            })
        }
        () if is(Code::ApplyDelta) => {
            let lengths = [bytes, request.second_bytes];
            on_buffers([second, to], lengths, |[record, to], [len, of_record]| {
                Operation::apply_delta(record, to, len, of_record)
            })
        }
        () if is(Code::Dualcast) => {
            on_three(source, to, second, &|[from, first, second], [len, _]| {
                Operation::dualcast(from, first, second, len)
            })
        }
        () if is(Code::Crc32c) => {
            let seed = seed()?;
            on_one(source, &|at, len| Operation::crc(at, len, seed))
        }
        () if is(Code::CopyCrc32c) => {
            let seed = seed()?;
            on_two(&|from, to, len| Operation::copy_crc(from, to, len, seed))
        }
        () if is(Code::Crc64) => on_one(source, &|at, len| Operation::crc64(at, len, value)),
        () if is(Code::CopyCrc64) => {
            on_two(&|from, to, len| Operation::copy_crc64(from, to, len, value))
        }
        () if is(Code::DifCheck) => {
            let dif = dif()?;
            on_one(source, &|at, len| {
                Operation::dif_check(at, len, dif.flags, dif.source)
            })
        }
        () if is(Code::DifInsert) => {
            let dif = dif()?;
            on_two(&|from, to, len| {
                Operation::dif_insert(from, to, len, dif.flags, dif.destination)
            })
        }
        () if is(Code::DifStrip) => {
            let dif = dif()?;
            on_two(&|from, to, len| Operation::dif_strip(from, to, len, dif.flags, dif.source))
        }
        () if is(Code::DifUpdate) => {
            let dif = dif()?;
            on_two(&|from, to, len| {
                Operation::dif_update(from, to, len, dif.flags, dif.source, dif.destination)
            })
        }
        () if is(Code::DixGenerate) => {
            let dif = dif()?;
            on_two(&|from, to, len| {
                Operation::dix_generate(from, to, len, dif.flags, dif.destination)
            })
        }
        () if is(Code::CacheFlush) => on_one(to, &Operation::cache_flush),
        // SAFETY: by the caller's promise.
        () if is(Code::Descriptor) => unsafe { of_descriptor(source) },
        () => Err(Refusal::new(
            libc::EINVAL,
            format_args!("dray_request.operation is {code:#x}, which is no dray_operation"),
        )),
    }
}

/// The register of the instruction CRC32 (`_mm_crc32_u64`) as a seed for dray_crc32c and its like, and their result as that
/// register: one is the other inverted, so this function goes both ways. To begin with a register of 0 the seed is
/// dray_crc32c_register(0); after "123456789" dray_crc32c_register of the result is 0x58e3fa20.
#[unsafe(no_mangle)]
pub extern "C" fn dray_crc32c_register(value: u32) -> u32 {
    !value
}
