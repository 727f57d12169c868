//! Operations on their way to a mover: singly, with flags, in batches.

use std::ffi::{c_int, c_void};

use dray::{BatchError, Mover as _, Operation};
use dray_spec::{Descriptor, Flags, Opcode};

use crate::completion::count;
use crate::error::{Refusal, call};
use crate::handle::{Kind, Mover, Open, using, with};
use crate::types::Flag;

/// What [`dray_next_flags`] takes.
const FLAGS: u32 = Flag::BlockOnFault as u32
    | Flag::CacheControl as u32
    | Flag::StrictOrdering as u32
    | Flag::DestinationReadback as u32
    | Flag::CrcBypassInversion as u32
    | Flag::CrcBypassDataReflection as u32;

/// Enqueues an operation, or adds it to the batch that has begun, if `check` takes it.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open); the operation's addresses valid until it has ended.
pub(crate) unsafe fn enqueue(
    mover: *mut Mover,
    operation: Operation,
    check: impl FnOnce(&Operation) -> Result<(), Refusal>,
) -> c_int {
    let work = |open: &mut Open| {
        check(&operation)?;
        let capabilities = with!(&mut open.kind, m => m.capabilities());
        if !capabilities.supports(&operation) {
            let (opcode, len) = (operation.opcode(), operation.len());
            return Err(Refusal::new(
                libc::ENOTSUP,
                format_args!("{} of {len} bytes is not supported", opcode.name()),
            ));
        }
        let flags = open.next_flags;
        let operation = operation.with_changed_flags(Flags::EMPTY, flags);
        if open.in_batch {
            let max = capabilities.max_batch as usize;
            if open.batch.len() >= max {
                return Err(Refusal::new(
                    libc::E2BIG,
                    format_args!("a batch of this mover has {max} operations at most"),
                ));
            }
            open.batch.push(operation);
        } else {
            let enqueued = with!(&mut open.kind, m => {
                // SAFETY: the caller's promise is the same.
                unsafe { m.enqueue(&operation) }
            });
            enqueued.map_err(|full| Refusal::of(libc::EAGAIN, &full))?;
        }
        open.next_flags = Flags::EMPTY;
        Ok(0)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Values of dray_flag.
pub(crate) fn of_flags(flags: u32) -> Result<Flags, Refusal> {
    match flags & !FLAGS {
        0 => Ok(Flags::from_bits(flags)),
        unknown => Err(Refusal::new(
            libc::EINVAL,
            format_args!("the flags have bits {unknown:#x}, which are no dray_flag"),
        )),
    }
}

/// Whether sizes and alignment are such as the operation needs them, where it needs any: no executor takes it otherwise.
#[inline(always)]
pub(crate) fn check(operation: &Operation) -> Result<(), Refusal> {
    const CREATE_DELTA: u8 = Opcode::CreateDelta as u8;
    const DUALCAST: u8 = Opcode::Dualcast as u8;
    const DIF_CHECK: u8 = Opcode::DifCheck as u8;
    const DIX_GENERATE: u8 = Opcode::DixGenerate as u8;
    // Between them are apply_delta and the other operations on integrity fields.
    let needs = matches!(
        operation.descriptor().opcode_byte(),
        CREATE_DELTA..=DUALCAST | DIF_CHECK..=DIX_GENERATE
    );
    match needs {
        true => check_needs(operation),
        false => Ok(()),
    }
}

#[cold]
fn check_needs(operation: &Operation) -> Result<(), Refusal> {
    dray_device::check_software(operation.descriptor()).map_or_else(
        |refused| {
            let (opcode, status) = (operation.opcode(), refused.outcome().record.status());
            let message = format_args!("{} is not possible so: {status}", opcode.name());
            Err(Refusal::new(libc::EINVAL, message))
        },
        |_| Ok(()),
    )
}

/// The operation of a descriptor.
///
/// # Safety
/// `descriptor` must be NULL or point to 64 readable bytes.
pub(crate) unsafe fn of_descriptor(descriptor: *const c_void) -> Result<Operation, Refusal> {
    if descriptor.is_null() {
        return Err(Refusal::new(libc::EINVAL, "the descriptor is NULL"));
    }
    // SAFETY: 64 bytes by the caller's promise, of which any are a descriptor.
    let read = unsafe { descriptor.cast::<Descriptor>().read_unaligned() };
    Operation::try_from(read).map_err(|error| Refusal::of(libc::EINVAL, &error))
}

/// Gives the next operation that is enqueued on a mover these flags, dray_flag values added up: 0. Until
/// one is, a call that fails changes nothing; another call of this function replaces them.
///
/// # Errors
/// -EINVAL: other bits. -ENOTSUP: the mover's queue does not block on page faults.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_next_flags(mover: *mut Mover, flags: u32) -> c_int {
    let work = |open: &mut Open| {
        let flags = of_flags(flags)?.bits();
        let blocks = flags & Flag::BlockOnFault as u32 != 0;
        let on_core = matches!(open.kind, Kind::Cpu(_) | Kind::CpuChannels(_));
        let capabilities = with!(&mut open.kind, m => m.capabilities());
        // A core waits for pages anyway.
        if blocks && !on_core && !capabilities.block_on_fault {
            let message = "the work queue does not block on page faults (block_on_fault in sysfs)";
            return Err(Refusal::new(libc::ENOTSUP, message));
        }
        // The fence of a batch stays.
        let fence = open.next_flags.bits() & Flags::FENCE.bits();
        open.next_flags = Flags::from_bits(flags | fence);
        Ok(0)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Enqueues a descriptor of 64 bytes, as the specification and `struct dsa_hw_desc` of linux/idxd.h have
/// it. Its first 32-bit word (PASID, reserved bits, privilege) must be 0, for the kernel says who submits.
/// Its completion record is the mover's: address and flags of it are replaced. Its other fields go to the
/// device as they are, which refuses what is wrong by the status of the completion.
///
/// # Errors
/// -EINVAL: a null pointer, an opcode that is not defined, a batch (see dray_batch_begin), a first word that
/// is not 0. -ENOTSUP, -EAGAIN, -E2BIG: as of all operations.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open); `descriptor` must point to 64 readable
/// bytes, and its addresses must be valid until the operation has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_enqueue_descriptor(
    mover: *mut Mover,
    descriptor: *const c_void,
    user_data: u64,
) -> c_int {
    let mut operation = None;
    let refused = call(|| {
        // SAFETY: the caller's promise is the same.
        operation = Some(unsafe { of_descriptor(descriptor) }?);
        Ok(0)
    });
    match operation {
        // SAFETY: the caller's promise is the same.
        Some(operation) => unsafe {
            enqueue(mover, operation.with_user_data(user_data), |_| Ok(()))
        },
        None => refused,
    }
}

/// Begins a batch: the operations that follow are handed over together, by [`dray_batch_end`].
///
/// # Errors
/// -EALREADY: one has begun.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_batch_begin(mover: *mut Mover) -> c_int {
    let work = |open: &mut Open| {
        if open.in_batch {
            return Err(Refusal::new(libc::EALREADY, "a batch has begun"));
        }
        open.in_batch = true;
        open.batch.clear();
        Ok(0)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// The next operation of the batch starts when all before it have ended; not at all if one of them has
/// not succeeded.
///
/// # Errors
/// -ENOENT: no batch has begun.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_batch_fence(mover: *mut Mover) -> c_int {
    let work = |open: &mut Open| {
        if !open.in_batch {
            return Err(Refusal::new(libc::ENOENT, "no batch has begun"));
        }
        open.next_flags = Flags::from_bits(open.next_flags.bits() | Flags::FENCE.bits());
        Ok(0)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Enqueues the batch: how many operations it has. Each completes on its own.
///
/// # Errors
/// -ENOENT: no batch has begun, or it has no operations. -EAGAIN: there are not enough slots; the batch
/// stays, for another try.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open); the addresses of all its operations valid until they have
/// ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_batch_end(mover: *mut Mover) -> c_int {
    let work = |open: &mut Open| {
        if !open.in_batch || open.batch.is_empty() {
            leave_batch(open);
            let message = "no batch has begun, or it is empty";
            return Err(Refusal::new(libc::ENOENT, message));
        }
        let batch = &open.batch;
        let enqueued = with!(&mut open.kind, m => {
            // SAFETY: the caller's promise is the same.
            unsafe { m.enqueue_batch(batch) }
        });
        match enqueued {
            Ok(_) => {
                leave_batch(open);
                Ok(count(open.batch.len()))
            }
            Err(full @ BatchError::Full(_)) => Err(Refusal::of(libc::EAGAIN, &full)),
            Err(error) => Err(Refusal::of(libc::E2BIG, &error)),
        }
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Forgets the batch that has begun, if one has: 0.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`](crate::dray_open).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_batch_cancel(mover: *mut Mover) -> c_int {
    let work = |open: &mut Open| {
        leave_batch(open);
        Ok(0)
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// What is enqueued next is no member of a batch, and has no fence.
fn leave_batch(open: &mut Open) {
    open.in_batch = false;
    let fence = Flags::FENCE.bits();
    open.next_flags = Flags::from_bits(open.next_flags.bits() & !fence);
}
