//! T10 data integrity fields: checked, inserted, stripped, updated, generated apart.
//!
//! Each function takes the tags of the first block and returns those of the block after the last,
//! so that a transfer can be done in parts.

mod block;
mod error;
mod flags;
mod guard;
mod row;
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "nothing is worked on as a run there")
)]
mod run;
mod tags;

pub use error::{BadBlock, DifError, DifSizeError, DifStatus};
pub use flags::{BlockSize, DestinationDifFlags, DifFlags, SourceDifFlags};
pub use tags::{DIF_BYTES, Tags};

use block::{Checked, Checker, Maker};
use guard::Work;
use row::{Copies, Row, groups};

use crate::prefetch;

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
    prefetch::ends_of(src);
    let mut left = src;
    while !left.is_empty() {
        let good = checker.run(left, Work::Check);
        left = &left[good * step..];
        if left.is_empty() {
            break;
        }
        let (next, rest) = left.split_at(one_by_one(left, good, step));
        check_each(&mut checker, Row { bytes: next, step })?;
        left = rest;
    }
    Ok(checker.tags)
}

/// How many bytes to go through one by one after a run of `run` blocks: those of a group, after which
/// there may be another run, or all if there was none.
fn one_by_one(left: &[u8], run: usize, step: usize) -> usize {
    match run {
        0 => left.len(),
        _ => left.len().min(guard::TOGETHER * step),
    }
}

/// Checks blocks one by one.
#[inline(never)]
fn check_each(checker: &mut Checker, src: Row<'_>) -> Result<(), BadBlock> {
    for group in groups(src.bytes.len() / src.step) {
        let group = src.part(&group);
        let guards = checker.guards(group);
        for (n, block) in group.blocks().enumerate() {
            checker.check(block, guards.map(|guards| guards[n]))?;
        }
    }
    Ok(())
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
    prefetch::ends_of(src);
    prefetch::ends_of(dst);
    let mut maker = Maker::new(flags, destination, tags);
    let (step, to_step) = (size.bytes(), size.protected_bytes());
    let made = maker.run(src, dst);
    if made < blocks {
        let left = Row {
            bytes: &src[made * step..],
            step,
        };
        insert_each(&mut maker, left, &mut dst[made * to_step..]);
    }
    Ok(maker.tags)
}

/// Copies blocks one by one and adds a field to each.
#[inline(never)]
fn insert_each(maker: &mut Maker, src: Row<'_>, dst: &mut [u8]) {
    let to_step = src.step + DIF_BYTES;
    for group in groups(src.bytes.len() / src.step) {
        let copies = Copies::new(src, &group, dst, to_step);
        let guards = maker.guards_and_copies(src.part(&group), copies);
        for (block, guard) in group.zip(guards) {
            maker
                .make(guard)
                .write(&mut dst[block * to_step..][..to_step]);
        }
    }
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
    prefetch::ends_of(src);
    prefetch::ends_of(dst);
    let (mut left, mut to_left) = (src, dst);
    while !left.is_empty() {
        let good = checker.run(left, Work::Strip(to_left));
        (left, to_left) = (&left[good * step..], &mut to_left[good * to_step..]);
        if left.is_empty() {
            break;
        }
        let (next, rest) = left.split_at(one_by_one(left, good, step));
        let blocks = next.len() / step;
        let (to, to_rest) = to_left.split_at_mut(blocks * to_step);
        let next = Row { bytes: next, step };
        copy_checked(&mut checker, next, blocks, (to, to_step), |_, _, _| {})?;
        (left, to_left) = (rest, to_rest);
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
    prefetch::ends_of(src);
    prefetch::ends_of(dst);
    let src = Row { bytes: src, step };
    copy_checked(
        &mut checker,
        src,
        blocks,
        (dst, step),
        |data, checked, to| {
            maker.update(data, checked).write(to);
        },
    )?;
    Ok(UpdateTags {
        source: checker.tags,
        destination: maker.tags,
    })
}

/// Checks blocks and copies their data to places of `to_step` bytes. What `found` does with a good
/// block, its check and its place must leave the data of the place alone.
///
/// A group is copied while the guards of the next one are computed.
#[inline(always)]
fn copy_checked(
    checker: &mut Checker,
    src: Row<'_>,
    blocks: usize,
    (dst, to_step): (&mut [u8], usize),
    mut found: impl FnMut(&[u8], Checked, &mut [u8]),
) -> Result<(), BadBlock> {
    let mut groups = groups(blocks).peekable();
    let first = groups.peek().cloned().unwrap_or_default();
    let ahead = [&src.bytes[first.end * src.step..], &*dst];
    let mut guards = checker.guards_and_hints(src.part(&first), ahead);
    while let Some(group) = groups.next() {
        let mut good = group.start..group.start;
        let mut outcome = Ok(());
        for block in group.clone() {
            let guard = guards.map(|guards| guards[block - group.start]);
            match checker.check(src.block(block, src.step), guard) {
                Ok((data, checked)) => found(data, checked, &mut dst[block * to_step..][..to_step]),
                Err(bad) => {
                    outcome = Err(bad);
                    break;
                }
            }
            good.end += 1;
        }
        let copies = Copies::new(src, &good, dst, to_step);
        let next = match outcome {
            Ok(()) => groups.peek().cloned().unwrap_or_default(),
            Err(_) => 0..0,
        };
        guards = checker.guards_and_copies(src.part(&next), copies);
        outcome?;
    }
    Ok(())
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
    let src = Row { bytes: src, step };
    for group in groups(blocks) {
        let guards = maker.guards(src.part(&group));
        for (field, guard) in fields[group].iter_mut().zip(guards) {
            *field = maker.make(guard).bytes();
        }
    }
    Ok(maker.tags)
}

#[cfg(test)]
mod tests;
