//! Data integrity fields, as spec 8.3.14 to 8.3.18 and appendix B define them.

use crate::{
    BadBlock, DestinationDifFlags, DifError, DifFlags, DifSizeError, SourceDifFlags, Tags,
    UpdateTags,
};

/// Checks block by block (spec 8.3.14); see [`dif_check`](crate::dif_check).
///
/// # Errors
///
/// [`DifError`]: the first bad block, or a size.
pub fn dif_check(
    src: &[u8],
    flags: DifFlags,
    source: SourceDifFlags,
    mut tags: Tags,
) -> Result<Tags, DifError> {
    let block_bytes = flags.block_size().bytes();
    let blocks = DifSizeError::blocks(src, block_bytes + 8)?;
    for n in 0..blocks {
        let start = n * (block_bytes + 8);
        let data = &src[start..start + block_bytes];
        let field = &src[start + block_bytes..start + block_bytes + 8];
        let status = dif_status(data, field, flags, source, tags);
        if status != 0 {
            return Err(DifError::Block(BadBlock {
                status,
                bytes_completed: start,
                tags,
            }));
        }
        tags = next_source(tags, source);
    }
    Ok(tags)
}

/// Copies block by block and adds fields (spec 8.3.15).
///
/// # Errors
///
/// [`DifSizeError`]; nothing is written then.
pub fn dif_insert(
    src: &[u8],
    dst: &mut [u8],
    flags: DifFlags,
    destination: DestinationDifFlags,
    mut tags: Tags,
) -> Result<Tags, DifSizeError> {
    let block_bytes = flags.block_size().bytes();
    let blocks = DifSizeError::blocks(src, block_bytes)?;
    DifSizeError::destination(dst, src.len() + 8 * blocks)?;
    for n in 0..blocks {
        let data = &src[n * block_bytes..(n + 1) * block_bytes];
        let to = &mut dst[n * (block_bytes + 8)..(n + 1) * (block_bytes + 8)];
        to[..block_bytes].copy_from_slice(data);
        to[block_bytes..].copy_from_slice(&new_field(data, flags, tags));
        tags = next_destination(tags, destination);
    }
    Ok(tags)
}

/// Checks, then copies what was good without fields (spec 8.3.16).
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
    let block_bytes = flags.block_size().bytes();
    let blocks = DifSizeError::blocks(src, block_bytes + 8)?;
    DifSizeError::destination(dst, src.len() - 8 * blocks)?;
    let checked = dif_check(src, flags, source, tags);
    for n in 0..good_bytes(src, &checked) / (block_bytes + 8) {
        let data = &src[n * (block_bytes + 8)..][..block_bytes];
        dst[n * block_bytes..(n + 1) * block_bytes].copy_from_slice(data);
    }
    checked
}

/// Checks, then copies what was good with new fields (spec 8.3.17).
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
    mut tags: UpdateTags,
) -> Result<UpdateTags, DifError> {
    let block_bytes = flags.block_size().bytes();
    DifSizeError::blocks(src, block_bytes + 8)?;
    DifSizeError::destination(dst, src.len())?;
    let checked = dif_check(src, flags, source, tags.source);
    for n in 0..good_bytes(src, &checked) / (block_bytes + 8) {
        let from = &src[n * (block_bytes + 8)..(n + 1) * (block_bytes + 8)];
        let to = &mut dst[n * (block_bytes + 8)..(n + 1) * (block_bytes + 8)];
        to.copy_from_slice(from);
        let field = new_field(&from[..block_bytes], flags, tags.destination);
        if !destination.guard_pass_through() {
            to[block_bytes..block_bytes + 2].copy_from_slice(&field[0..2]);
        }
        if !destination.app_tag_pass_through() {
            to[block_bytes + 2..block_bytes + 4].copy_from_slice(&field[2..4]);
        }
        if !destination.reference_tag_pass_through() {
            to[block_bytes + 4..block_bytes + 8].copy_from_slice(&field[4..8]);
        }
        tags.destination = next_destination(tags.destination, destination);
    }
    tags.source = checked?;
    Ok(tags)
}

/// Writes fields only (spec 8.3.18).
///
/// # Errors
///
/// [`DifSizeError`]; nothing is written then.
pub fn dix_generate(
    src: &[u8],
    dst: &mut [u8],
    flags: DifFlags,
    destination: DestinationDifFlags,
    mut tags: Tags,
) -> Result<Tags, DifSizeError> {
    let block_bytes = flags.block_size().bytes();
    let blocks = DifSizeError::blocks(src, block_bytes)?;
    DifSizeError::destination(dst, 8 * blocks)?;
    for n in 0..blocks {
        let data = &src[n * block_bytes..(n + 1) * block_bytes];
        dst[8 * n..8 * n + 8].copy_from_slice(&new_field(data, flags, tags));
        tags = next_destination(tags, destination);
    }
    Ok(tags)
}

/// Source bytes of the blocks before a bad one.
fn good_bytes(src: &[u8], checked: &Result<Tags, DifError>) -> usize {
    match checked {
        Ok(_) => src.len(),
        Err(DifError::Block(bad)) => bad.bytes_completed,
        Err(DifError::Size(_)) => 0,
    }
}

/// The table of spec 8.3.17.4, row by row.
fn dif_status(
    data: &[u8],
    field: &[u8],
    flags: DifFlags,
    source: SourceDifFlags,
    tags: Tags,
) -> u8 {
    let app_f = field[2..4] == [0xff; 2];
    let app_and_reference_f = field[2..8] == [0xff; 6];
    let all_f = field == [0xff; 8];
    let f_detected = (source.all_f_detect() && all_f)
        || (source.app_tag_f_detect() && app_f)
        || (source.app_and_reference_tag_f_detect() && app_and_reference_f);
    let expected = new_field(data, flags, tags);
    let mut status = 0;
    if !source.guard_check_disable() && !f_detected && expected[0..2] != field[0..2] {
        status |= 0x01;
    }
    if tags.app_mask != 0xffff && !f_detected && expected[2..4] != field[2..4] {
        status |= 0x02;
    }
    if !source.reference_tag_check_disable() && !f_detected && expected[4..8] != field[4..8] {
        status |= 0x04;
    }
    if source.all_f_detect() && source.all_f_detect_error() && all_f {
        status |= 0x08;
    }
    status
}

/// Guard, application tag and reference tag, most significant byte first (spec appendix B).
fn new_field(data: &[u8], flags: DifFlags, tags: Tags) -> [u8; 8] {
    let guard = guard(data, flags).to_be_bytes();
    let app = (tags.app & !tags.app_mask).to_be_bytes();
    let reference = tags.reference.to_be_bytes();
    [
        guard[0],
        guard[1],
        app[0],
        app[1],
        reference[0],
        reference[1],
        reference[2],
        reference[3],
    ]
}

/// Divides by 0x18BB7, most significant bit first (spec appendix B).
fn guard(data: &[u8], flags: DifFlags) -> u16 {
    let mut register: u16 = if flags.invert_crc_seed() { 0xffff } else { 0 };
    for byte in data {
        for step in 0..8 {
            let feedback = (register >> 15 == 1) ^ (byte >> (7 - step) & 1 == 1);
            register <<= 1;
            if feedback {
                register ^= 0x8bb7;
            }
        }
    }
    if flags.invert_crc_result() {
        !register
    } else {
        register
    }
}

fn next_source(mut tags: Tags, source: SourceDifFlags) -> Tags {
    if !source.reference_tag_fixed() {
        tags.reference = tags.reference.wrapping_add(1);
    }
    if source.app_tag_incrementing() {
        tags.app = tags.app.wrapping_add(1);
    }
    tags
}

fn next_destination(mut tags: Tags, destination: DestinationDifFlags) -> Tags {
    if !destination.reference_tag_fixed() {
        tags.reference = tags.reference.wrapping_add(1);
    }
    if destination.app_tag_incrementing() {
        tags.app = tags.app.wrapping_add(1);
    }
    tags
}
