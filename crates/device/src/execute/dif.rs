//! Data integrity fields: check, insert, strip, update, generate apart (spec 8.3.14 to 8.3.18).

use dray_ops::UpdateTags;
use dray_ops::{BadBlock, DestinationDifFlags, DifError, DifFlags, SourceDifFlags, Tags};
use dray_spec::dif::block_bytes;
use dray_spec::{Descriptor, DifTags, Opcode, Status};

use super::{Run, success};
use crate::extent::{Extent, destination, source};
use crate::{DescriptorResult, Memory};

/// Bytes that are processed at a time on either side: two of the largest blocks, or more of others.
const CHUNK: usize = 2 * 4112;

/// What a descriptor says about fields, and the tags of the block to come.
struct Fields {
    opcode: Opcode,
    flags: DifFlags,
    source: SourceDifFlags,
    destination: DestinationDifFlags,
    tags: UpdateTags,
}

impl Fields {
    #[inline]
    fn new(opcode: Opcode, d: &Descriptor) -> Fields {
        Fields {
            opcode,
            flags: DifFlags::from_bits(d.dif_flags()),
            source: SourceDifFlags::from_bits(d.source_dif_flags()),
            destination: DestinationDifFlags::from_bits(d.destination_dif_flags()),
            tags: UpdateTags {
                source: tags(d.source_tags()),
                destination: tags(d.destination_tags()),
            },
        }
    }

    fn checks(&self) -> bool {
        use Opcode::{DifCheck, DifStrip, DifUpdate};
        matches!(self.opcode, DifCheck | DifStrip | DifUpdate)
    }

    fn makes(&self) -> bool {
        use Opcode::{DifInsert, DifUpdate, DixGenerate};
        matches!(self.opcode, DifInsert | DifUpdate | DixGenerate)
    }

    #[inline]
    fn steps(&self) -> (usize, usize) {
        block_bytes(self.opcode, self.flags.block_size().into_bits())
    }

    /// Carries out whole blocks, of which the first has `tags`; both buffers have the sizes of
    /// [`steps`](Fields::steps). The tags of the block to come.
    #[inline]
    fn process(
        &self,
        tags: UpdateTags,
        src: &[u8],
        dst: &mut [u8],
    ) -> Result<UpdateTags, BadBlock> {
        let (flags, source, destination) = (self.flags, self.source, self.destination);
        let checked = |source| UpdateTags { source, ..tags };
        let made = |destination| UpdateTags {
            destination,
            ..tags
        };
        let (from, to) = (tags.source, tags.destination);
        let result = match self.opcode {
            Opcode::DifCheck => dray_ops::dif_check(src, flags, source, from).map(checked),
            Opcode::DifStrip => dray_ops::dif_strip(src, dst, flags, source, from).map(checked),
            Opcode::DifUpdate => dray_ops::dif_update(src, dst, flags, source, destination, tags),
            Opcode::DifInsert => dray_ops::dif_insert(src, dst, flags, destination, to)
                .map(made)
                .map_err(DifError::from),
            _ => dray_ops::dix_generate(src, dst, flags, destination, to)
                .map(made)
                .map_err(DifError::from),
        };
        result.map_err(|error| match error {
            DifError::Block(bad) => bad,
            DifError::Size(size) => unreachable!("whole blocks: {size}"),
        })
    }

    /// Ended at a bad block.
    #[cold]
    fn bad(&self, bad: BadBlock) -> DescriptorResult {
        let mut outcome = DescriptorResult::status(Status::DIF_ERROR);
        outcome.record.result = bad.status;
        outcome.record.bytes_completed = bad.bytes_completed as u32;
        self.end(outcome, self.advance(bad.bytes_completed / self.steps().0))
    }

    /// The tags so many blocks after the first one.
    fn advance(&self, blocks: usize) -> UpdateTags {
        UpdateTags {
            source: self.source.advance(self.tags.source, blocks),
            destination: self.destination.advance(self.tags.destination, blocks),
        }
    }

    /// `outcome` with the tags of the block to come (spec 8.3.17).
    #[inline]
    fn end(&self, mut outcome: DescriptorResult, tags: UpdateTags) -> DescriptorResult {
        let record = &mut outcome.record;
        if self.checks() {
            record.set_source_tags(bits(tags.source));
        }
        if self.makes() {
            record.set_destination_tags(bits(tags.destination));
        }
        outcome
    }
}

#[inline]
fn tags(tags: DifTags) -> Tags {
    Tags {
        reference: tags.reference,
        app_mask: tags.app_mask,
        app: tags.app,
    }
}

#[inline]
fn bits(tags: Tags) -> DifTags {
    DifTags {
        reference: tags.reference,
        app_mask: tags.app_mask,
        app: tags.app,
    }
}

/// Bytes that the operation writes.
pub(super) fn destination_bytes(opcode: Opcode, d: &Descriptor) -> u64 {
    let (from, to) = Fields::new(opcode, d).steps();
    (d.size as usize / from * to) as u64
}

impl<M: Memory> Run<'_, M> {
    /// Any of the five operations, block after block, up to a bad one or one that is not there.
    #[inline]
    pub(super) fn dif(&mut self, opcode: Opcode) -> DescriptorResult {
        let fields = Fields::new(opcode, self.d);
        let (from, to) = fields.steps();
        let (src, dst) = (self.d.address1, self.d.address2);
        let all = self.d.size as usize / from;
        let source = Extent::of(self.memory, &[source(src)], (all * from) as u64);
        let place = Extent::of(self.memory, &[destination(dst)], (all * to) as u64);
        let readable = source.bytes as usize / from;
        let writable = (place.bytes as usize).checked_div(to).unwrap_or(all);
        let there = readable.min(writable);
        let tags = match self.moved {
            true => self.dif_blocks(&fields, there),
            false => Ok(fields.advance(there)),
        };
        let tags = match tags {
            Ok(tags) => tags,
            Err(bad) => return fields.bad(bad),
        };
        if there == all {
            return fields.end(DescriptorResult::status(Status::SUCCESS), tags);
        }
        // A block is read before it is written.
        let fault = match readable <= writable {
            true => source,
            false => place,
        };
        let after = fault.after((there * from) as u64);
        fields.end(self.end(&after, success()), tags)
    }

    /// As [`Fields::process`], of the first `count` blocks.
    #[inline]
    fn dif_blocks(&mut self, fields: &Fields, count: usize) -> Result<UpdateTags, BadBlock> {
        let (from, to) = fields.steps();
        let input = (self.d.address1, (count * from) as u64);
        let output = (self.d.address2, (count * to) as u64);
        match self.memory.in_place_into([input], output) {
            Some(([input], output)) => fields.process(fields.tags, input, output),
            None => self.dif_by_chunks(fields, count),
        }
    }

    #[inline(never)]
    fn dif_by_chunks(&mut self, fields: &Fields, count: usize) -> Result<UpdateTags, BadBlock> {
        let (from, to) = fields.steps();
        let (src, dst) = (self.d.address1, self.d.address2);
        let at_once = CHUNK / from.max(to);
        let (mut input, mut output) = ([0; CHUNK], [0; CHUNK]);
        let (mut done, mut tags) = (0, fields.tags);
        while done < count {
            let blocks = at_once.min(count - done);
            let input = &mut input[..blocks * from];
            self.memory.read(src + (done * from) as u64, input);
            let result = fields.process(tags, input, &mut output[..blocks * to]);
            // Good blocks before a bad one are written.
            let good = match result {
                Err(bad) => bad.bytes_completed / from,
                Ok(_) => blocks,
            };
            if good * to > 0 {
                let at = dst + (done * to) as u64;
                self.memory.write(at, &output[..good * to]);
            }
            tags = result.map_err(|bad| BadBlock {
                bytes_completed: done * from + bad.bytes_completed,
                ..bad
            })?;
            done += blocks;
        }
        Ok(tags)
    }
}
