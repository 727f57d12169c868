//! T10 data integrity fields: checked, inserted, stripped, updated, generated apart.
//!
//! Each function takes the tags of the first block and returns those of the block after the last,
//! so that a transfer can be done in parts.

mod block;
mod error;
mod flags;
mod guard;
mod row;
mod tags;

pub use error::{BadBlock, DifError, DifSizeError, DifStatus};
pub use flags::{BlockSize, DestinationDifFlags, DifFlags, SourceDifFlags};
pub use tags::{DIF_BYTES, Tags};

use block::{Checked, Checker, Maker};
use row::{Copies, Row, groups};

use crate::prefetch;

/// Blocks from one that is checked to one that is asked for: two groups. Four blocks that are read side by
/// side are no stream that a processor fetches ahead by itself.
const AHEAD: usize = 2 * guard::TOGETHER;
/// Below so many bytes, what is asked for would come too late.
const HINTS_FROM_BYTES: usize = 16 << 10;
/// Ticks of the time stamp counter that the first group takes if its lines come from memory: some 900, and
/// 130 from a cache. Hints cost a tenth of what is in a cache, and save half of what is not.
const COLD_TICKS: u64 = 400;

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
    ask_for_ends(src);
    let src = Row { bytes: src, step };
    if src.bytes.len() >= HINTS_FROM_BYTES {
        check_many(&mut checker, src, blocks)?;
        return Ok(checker.tags);
    }
    for group in groups(blocks) {
        let group = src.part(&group);
        let guards = checker.guards(group);
        check_each(&mut checker, group, guards)?;
    }
    Ok(checker.tags)
}

/// Asks for the first and the last line: the pages of both may be looked up at the same time.
#[inline(always)]
fn ask_for_ends(bytes: &[u8]) {
    if let [first, .., last] = bytes {
        prefetch::line_of(first);
        prefetch::line_of(last);
    }
}

/// Checks many blocks. What lies ahead is asked for if the first group came from memory.
#[inline(never)]
fn check_many(checker: &mut Checker, src: Row<'_>, blocks: usize) -> Result<(), BadBlock> {
    let mut is_cold = false;
    for group in groups(blocks) {
        let ahead = (group.start + AHEAD) * src.step;
        let is_first = group.start == 0;
        let group = src.part(&group);
        let guards = match is_cold {
            true => {
                let ahead = src.bytes.get(ahead..).unwrap_or_default();
                checker.guards_and_hints(group, [ahead, &[]])
            }
            false => {
                let begin = if is_first { prefetch::ticks() } else { 0 };
                let guards = checker.guards(group);
                if is_first {
                    is_cold = prefetch::ticks().wrapping_sub(begin) > COLD_TICKS;
                }
                guards
            }
        };
        check_each(checker, group, guards)?;
    }
    Ok(())
}

/// Checks the blocks of a group against their guards.
#[inline(always)]
fn check_each(
    checker: &mut Checker,
    group: Row<'_>,
    guards: Option<[u16; guard::TOGETHER]>,
) -> Result<(), BadBlock> {
    if checker.check_group(group, guards) {
        return Ok(());
    }
    for (n, block) in group.blocks().enumerate() {
        checker.check(block, guards.map(|guards| guards[n]))?;
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
    ask_for_ends(dst);
    let mut maker = Maker::new(flags, destination, tags);
    let (step, to_step) = (size.bytes(), size.protected_bytes());
    let src = Row { bytes: src, step };
    for group in groups(blocks) {
        let copies = Copies::new(src, &group, dst, to_step);
        let guards = maker.guards_and_copies(src.part(&group), copies);
        for (block, guard) in group.zip(guards) {
            maker
                .make(guard)
                .write(&mut dst[block * to_step..][..to_step]);
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
    let src = Row { bytes: src, step };
    copy_checked(&mut checker, src, blocks, (dst, to_step), |_, _, _| {})?;
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
    ask_for_ends(src.bytes);
    ask_for_ends(dst);
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
