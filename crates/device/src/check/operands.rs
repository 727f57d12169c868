//! Sizes, alignments, overlaps: what the operands of each operation must be (spec 5.4, 8.3).

use dray_ops::{DELTA_ENTRY_BYTES, DELTA_MAX_BYTES};
use dray_spec::{Descriptor, Flags, GenCap, Opcode, Status, dif};

use super::{Rejection, refuse_if};
use crate::{DeviceConfig, WorkQueueConfig};

/// Deltas that one cache line can give, in bytes: the smallest record to create (spec 8.3.8).
const SMALLEST_DELTA_RECORD: u64 = 8 * DELTA_ENTRY_BYTES as u64;

/// IDCAP bit 24: windows can be in offset mode (spec 9.2.18).
const IDCAP_OFFSET_MODE: u64 = 1 << 24;

/// What device and queue set as limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    max_transfer: u64,
    min_batch: u32,
    max_batch: u32,
    overlapping_copy: bool,
    offset_mode: bool,
}

/// Refuses the operands that no device takes, whatever its limits: for software that does its work.
///
/// # Errors
/// The status that a device gives (spec 5.4 to 5.6).
pub fn check_operands(opcode: Opcode, descriptor: &Descriptor) -> Result<(), Status> {
    let checked = Limits::NONE.check(opcode, descriptor);
    checked.map_err(|rejection| rejection.status)
}

impl Limits {
    const NONE: Limits = Limits {
        max_transfer: u64::MAX,
        min_batch: 1,
        max_batch: u32::MAX,
        overlapping_copy: true,
        offset_mode: true,
    };

    pub(super) fn new(device: &DeviceConfig, queue: &WorkQueueConfig) -> Limits {
        let capabilities = &device.capabilities;
        let gen_cap = GenCap::from(capabilities.gen_cap);
        Limits {
            max_transfer: queue.max_transfer_size.min(capabilities.max_transfer_size),
            min_batch: match gen_cap.batch_of_one() {
                true => 1,
                false => 2,
            },
            max_batch: queue.max_batch_size.min(capabilities.max_batch_size),
            overlapping_copy: gen_cap.overlapping_copy(),
            offset_mode: capabilities.id_cap & IDCAP_OFFSET_MODE != 0,
        }
    }

    #[inline(always)]
    pub(super) fn check(&self, opcode: Opcode, d: &Descriptor) -> Result<(), Rejection> {
        match opcode {
            Opcode::Noop | Opcode::Drain => return Ok(()),
            Opcode::Batch => return self.check_batch(d),
            Opcode::TranslationFetch => return check_region(d),
            Opcode::UpdateWindow => return self.check_window(d),
            _ => {}
        }
        let size = u64::from(d.size);
        refuse_if(size == 0 || size > self.max_transfer, Status::TRANSFER_SIZE)?;
        let (src, dst) = ((d.address1, size), (d.address2, size));
        match opcode {
            Opcode::Memmove if self.overlapping_copy => Ok(()),
            Opcode::Memmove => refuse_overlap(src, dst),
            Opcode::CreateDelta | Opcode::ApplyDelta => self.check_delta(opcode, d),
            Opcode::Dualcast => check_dualcast(d),
            Opcode::CrcGenerate => check_seed(d),
            Opcode::CopyCrc => {
                check_seed(d)?;
                refuse_overlap(src, dst)
            }
            Opcode::DifCheck
            | Opcode::DifInsert
            | Opcode::DifStrip
            | Opcode::DifUpdate
            | Opcode::DixGenerate => check_dif(opcode, d),
            // Physical memory of two address spaces may overlap; that is not looked for (8.3.28).
            _ => Ok(()),
        }
    }

    /// Whether it depends on the addresses of its operands if the operation may run.
    pub(super) fn counts_addresses(&self, opcode: Opcode) -> bool {
        match opcode {
            Opcode::Memmove => !self.overlapping_copy,
            Opcode::Noop | Opcode::Fill | Opcode::Compare | Opcode::ComparePattern => false,
            _ => true,
        }
    }

    fn check_batch(&self, d: &Descriptor) -> Result<(), Rejection> {
        let count = self.min_batch..=self.max_batch;
        refuse_if(!count.contains(&d.size), Status::DESCRIPTOR_COUNT)?;
        let aligned = d.address1.is_multiple_of(64);
        refuse_if(!aligned, Status::DESCRIPTOR_LIST_ALIGNMENT)
    }

    #[inline(never)]
    fn check_delta(&self, opcode: Opcode, d: &Descriptor) -> Result<(), Rejection> {
        let size = u64::from(d.size);
        refuse_if(size > DELTA_MAX_BYTES as u64, Status::TRANSFER_SIZE)?;
        let create = opcode == Opcode::CreateDelta;
        // The address of the record need not be aligned (spec Table 5-6).
        let source = if create { d.address1 } else { 0 };
        let aligned = (source | d.address2 | size).is_multiple_of(8);
        refuse_if(!aligned, Status::ADDRESS_ALIGNMENT)?;
        let (record, least) = match create {
            true => (
                (d.delta_record(), d.max_delta_size().into()),
                SMALLEST_DELTA_RECORD,
            ),
            false => (
                (d.address1, d.delta_record_size().into()),
                DELTA_ENTRY_BYTES as u64,
            ),
        };
        let sizes = least..=self.max_transfer;
        refuse_if(!sizes.contains(&record.1), Status::DELTA_RECORD_SIZE)?;
        refuse_overlap_if(create, (d.address1, size), record)?;
        refuse_overlap((d.address2, size), record)
    }

    /// Window fields alone; the entry is looked at when the descriptor runs (spec 5.4, 8.3.27).
    #[inline(never)]
    fn check_window(&self, d: &Descriptor) -> Result<(), Rejection> {
        let flags = d.window_flags();
        let (base, size) = (d.address1, d.window_size());
        refuse_if(flags.has_reserved(), Status::NONZERO_RESERVED)?;
        let mode = flags.offset_mode() && !(flags.window_enable() && self.offset_mode);
        refuse_if(mode, Status::UPDATE_WINDOW_FIELDS)?;
        match flags.window_enable() {
            false => refuse_if(base | size != 0, Status::NONZERO_RESERVED),
            true => refuse_if(size == 0 || !fits(base, size), Status::UPDATE_WINDOW_FIELDS),
        }
    }
}

/// Whether base plus size is at most 2^64.
pub(crate) fn fits(base: u64, size: u64) -> bool {
    size == 0 || base.checked_add(size - 1).is_some()
}

/// No limit of the queue counts: nothing is transferred (spec 8.3.11).
#[inline(never)]
fn check_region(d: &Descriptor) -> Result<(), Rejection> {
    let size = u64::from(d.region_size());
    let region = size != 0 && fits(d.address1, size);
    refuse_if(!region, Status::TRANSFER_SIZE)?;
    let strides = d.flags().contains(Flags::TRANSLATION_FETCH_USE_STRIDE);
    let stride = d.region_stride();
    let valid = stride >= 4096 && stride.is_power_of_two();
    refuse_if(strides && !valid, Status::ADDRESS_ALIGNMENT)
}

#[inline(never)]
fn check_dualcast(d: &Descriptor) -> Result<(), Rejection> {
    let size = u64::from(d.size);
    let (src, dst, second) = (
        (d.address1, size),
        (d.address2, size),
        (d.destination2(), size),
    );
    let differ = (dst.0 ^ second.0) & 0xfff != 0;
    refuse_if(differ, Status::DUALCAST_ALIGNMENT)?;
    refuse_overlap(src, dst)?;
    refuse_overlap(src, second)?;
    refuse_overlap(dst, second)
}

/// A seed in memory is aligned to its size (spec 5.4).
#[inline(never)]
fn check_seed(d: &Descriptor) -> Result<(), Rejection> {
    let flags = d.flags();
    let size = match flags.contains(Flags::CRC_64) {
        true => 8,
        false => 4,
    };
    let aligned = d.crc_seed_address().is_multiple_of(size);
    let read = flags.contains(Flags::CRC_READ_SEED);
    refuse_if(read && !aligned, Status::ADDRESS_ALIGNMENT)
}

/// The specification says that the size should be a multiple of the block, and names no status;
/// what else is wrong with a size has status 0x13.
#[inline(never)]
fn check_dif(opcode: Opcode, d: &Descriptor) -> Result<(), Rejection> {
    // Flag bytes that the operation does not have are reserved as a whole (spec 8.3.17.1, .3).
    let reserved = d.dif_flags() & 0xf0 != 0 || d.destination_dif_flags() & 0x07 != 0;
    refuse_if(reserved, Status::NONZERO_RESERVED)?;
    let (from, to) = dif::block_bytes(opcode, d.dif_flags());
    let (from, to) = (from as u64, to as u64);
    let size = u64::from(d.size);
    refuse_if(!size.is_multiple_of(from), Status::TRANSFER_SIZE)?;
    let unaligned = opcode == Opcode::DixGenerate && !d.address2.is_multiple_of(8);
    refuse_if(unaligned, Status::ADDRESS_ALIGNMENT)?;
    refuse_overlap((d.address1, size), (d.address2, size / from * to))
}

/// Addresses do not wrap: what lies beyond the last one faults.
#[inline]
fn refuse_overlap(a: (u64, u64), b: (u64, u64)) -> Result<(), Rejection> {
    refuse_overlap_if(true, a, b)
}

#[inline]
fn refuse_overlap_if(condition: bool, a: (u64, u64), b: (u64, u64)) -> Result<(), Rejection> {
    let (low, high) = if a.0 <= b.0 { (a, b) } else { (b, a) };
    let overlap = high.0 - low.0 < low.1 && high.1 > 0;
    refuse_if(condition && overlap, Status::OVERLAP)
}
