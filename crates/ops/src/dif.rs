//! T10 data integrity fields: checked, inserted, stripped, updated, generated apart.
//!
//! Each function takes the tags of the first block and returns those of the block after the last,
//! so that a transfer can be done in parts.

mod block;
mod error;
mod flags;
mod guard;
mod tags;

pub use error::{BadBlock, DifError, DifSizeError, DifStatus};
pub use flags::{BlockSize, DestinationDifFlags, DifFlags, SourceDifFlags};
pub use tags::{DIF_BYTES, Tags};

use std::ops::Range;

use block::{Checker, Maker};
use guard::TOGETHER;

/// Blocks that are worked on together: all, a few after the other.
///
/// Counted, because what cuts a slice into chunks divides, and does so again in each group: on some
/// processors that takes as long as a guard.
fn groups(blocks: usize) -> impl Iterator<Item = Range<usize>> {
    (0..blocks.div_ceil(TOGETHER)).map(move |group| {
        let first = group * TOGETHER;
        first..blocks.min(first + TOGETHER)
    })
}

/// Checks the fields of a source (spec 8.3.14).
///
/// # Errors
///
/// [`DifError`]: the first bad block, or a size that is no whole number of blocks.
pub fn dif_check(
    src: &[u8],
    flags: DifFlags,
    source: SourceDifFlags,
    tags: Tags,
) -> Result<Tags, DifError> {
    let step = flags.block_size().protected_bytes();
    let blocks = DifSizeError::blocks(src, step)?;
    let mut checker = Checker::new(flags, source, tags);
    for group in groups(blocks) {
        let guards = checker.guards(&src[group.start * step..group.end * step]);
        for (n, block) in group.enumerate() {
            checker.check(&src[block * step..][..step], guards.map(|guards| guards[n]))?;
        }
    }
    Ok(checker.tags)
}

/// Copies blocks and adds a field to each (spec 8.3.15).
///
/// # Errors
///
/// [`DifSizeError`]; nothing is written then.
pub fn dif_insert(
    src: &[u8],
    dst: &mut [u8],
    flags: DifFlags,
    destination: DestinationDifFlags,
    tags: Tags,
) -> Result<Tags, DifSizeError> {
    let size = flags.block_size();
    let blocks = DifSizeError::blocks(src, size.bytes())?;
    DifSizeError::destination(dst, blocks * size.protected_bytes())?;
    let mut maker = Maker::new(flags, destination, tags);
    let (step, to_step) = (size.bytes(), size.protected_bytes());
    for group in groups(blocks) {
        let guards = maker.guards(&src[group.start * step..group.end * step]);
        for (block, guard) in group.zip(guards) {
            let to = &mut dst[block * to_step..][..to_step];
            let (data, field) = to.split_at_mut(step);
            data.copy_from_slice(&src[block * step..][..step]);
            field.copy_from_slice(&maker.make(guard).bytes());
        }
    }
    Ok(maker.tags)
}

/// Checks the fields of a source and copies the blocks without them (spec 8.3.16).
///
/// # Errors
///
/// [`DifError`]: the first bad block, before which all blocks have been copied, or a size.
pub fn dif_strip(
    src: &[u8],
    dst: &mut [u8],
    flags: DifFlags,
    source: SourceDifFlags,
    tags: Tags,
) -> Result<Tags, DifError> {
    let size = flags.block_size();
    let blocks = DifSizeError::blocks(src, size.protected_bytes())?;
    DifSizeError::destination(dst, blocks * size.bytes())?;
    let mut checker = Checker::new(flags, source, tags);
    let (step, to_step) = (size.protected_bytes(), size.bytes());
    for group in groups(blocks) {
        let guards = checker.guards(&src[group.start * step..group.end * step]);
        for (n, block) in group.enumerate() {
            let from = &src[block * step..][..step];
            let (data, _) = checker.check(from, guards.map(|guards| guards[n]))?;
            dst[block * to_step..][..to_step].copy_from_slice(data);
        }
    }
    Ok(checker.tags)
}

/// The tags of both sides of an update.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UpdateTags {
    /// Expected in the source.
    pub source: Tags,
    /// Written to the destination.
    pub destination: Tags,
}

/// Checks the fields of a source and copies the blocks with new ones (spec 8.3.17).
///
/// # Errors
///
/// [`DifError`]: the first bad block, before which all blocks have been copied, or a size.
pub fn dif_update(
    src: &[u8],
    dst: &mut [u8],
    flags: DifFlags,
    source: SourceDifFlags,
    destination: DestinationDifFlags,
    tags: UpdateTags,
) -> Result<UpdateTags, DifError> {
    let size = flags.block_size();
    let step = size.protected_bytes();
    let blocks = DifSizeError::blocks(src, step)?;
    DifSizeError::destination(dst, src.len())?;
    let mut checker = Checker::new(flags, source, tags.source);
    let mut maker = Maker::new(flags, destination, tags.destination);
    for group in groups(blocks) {
        let guards = checker.guards(&src[group.start * step..group.end * step]);
        for (n, block) in group.enumerate() {
            let from = &src[block * step..][..step];
            let (data, checked) = checker.check(from, guards.map(|guards| guards[n]))?;
            let made = maker.update(data, checked);
            let to = &mut dst[block * step..][..step];
            let (to_data, to_field) = to.split_at_mut(size.bytes());
            to_data.copy_from_slice(data);
            to_field.copy_from_slice(&made.bytes());
        }
    }
    Ok(UpdateTags {
        source: checker.tags,
        destination: maker.tags,
    })
}

/// Writes the fields of a source's blocks, one after the other (spec 8.3.18).
///
/// # Errors
///
/// [`DifSizeError`]; nothing is written then.
pub fn dix_generate(
    src: &[u8],
    dst: &mut [u8],
    flags: DifFlags,
    destination: DestinationDifFlags,
    tags: Tags,
) -> Result<Tags, DifSizeError> {
    let step = flags.block_size().bytes();
    let blocks = DifSizeError::blocks(src, step)?;
    DifSizeError::destination(dst, blocks * DIF_BYTES)?;
    let mut maker = Maker::new(flags, destination, tags);
    let fields = dst.as_chunks_mut::<DIF_BYTES>().0;
    for group in groups(blocks) {
        let guards = maker.guards(&src[group.start * step..group.end * step]);
        for (field, guard) in fields[group].iter_mut().zip(guards) {
            *field = maker.make(guard).bytes();
        }
    }
    Ok(maker.tags)
}

#[cfg(test)]
mod tests;
