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

use block::{Checker, Maker};
use guard::TOGETHER;

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
    DifSizeError::blocks(src, step)?;
    let mut checker = Checker::new(flags, source, tags);
    for group in src.chunks(TOGETHER * step) {
        let guards = checker.guards(group);
        for (block, guard) in group.chunks_exact(step).zip(guards) {
            checker.check(block, guard)?;
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
    let groups = src.chunks(TOGETHER * step);
    for (group, to) in groups.zip(dst.chunks_mut(TOGETHER * to_step)) {
        let guards = maker.guards(group);
        let pairs = group.chunks_exact(step).zip(to.chunks_exact_mut(to_step));
        for ((block, to), guard) in pairs.zip(guards) {
            let (data, field) = to.split_at_mut(size.bytes());
            data.copy_from_slice(block);
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
    let groups = src.chunks(TOGETHER * step);
    for (group, to) in groups.zip(dst.chunks_mut(TOGETHER * to_step)) {
        let guards = checker.guards(group);
        let pairs = group.chunks_exact(step).zip(to.chunks_exact_mut(to_step));
        for ((block, to), guard) in pairs.zip(guards) {
            let (data, _) = checker.check(block, guard)?;
            to.copy_from_slice(data);
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
    DifSizeError::blocks(src, step)?;
    DifSizeError::destination(dst, src.len())?;
    let mut checker = Checker::new(flags, source, tags.source);
    let mut maker = Maker::new(flags, destination, tags.destination);
    let groups = src.chunks(TOGETHER * step);
    for (group, to) in groups.zip(dst.chunks_mut(TOGETHER * step)) {
        let guards = checker.guards(group);
        let pairs = group.chunks_exact(step).zip(to.chunks_exact_mut(step));
        for ((block, to), guard) in pairs.zip(guards) {
            let (data, checked) = checker.check(block, guard)?;
            let made = maker.update(data, checked);
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
    let groups = src.chunks(TOGETHER * step);
    for (group, fields) in groups.zip(fields.chunks_mut(TOGETHER)) {
        for (field, guard) in fields.iter_mut().zip(maker.guards(group)) {
            *field = maker.make(guard).bytes();
        }
    }
    Ok(maker.tags)
}

#[cfg(test)]
mod tests;
