//! Data integrity fields: check, insert, strip, update, generate apart (spec 8.3.14 to 8.3.18).

use dray_ops::{BadBlock, DestinationDifFlags, DifError, DifFlags, SourceDifFlags, Tags};
use dray_ops::{DIF_BYTES, UpdateTags};
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

    /// Bytes of one block in the source and in the destination.
    fn steps(&self) -> (usize, usize) {
        let size = self.flags.block_size();
        let (data, protected) = (size.bytes(), size.protected_bytes());
        match self.opcode {
            Opcode::DifCheck => (protected, 0),
            Opcode::DifInsert => (data, protected),
            Opcode::DifStrip => (protected, data),
            Opcode::DifUpdate => (protected, protected),
            _ => (data, DIF_BYTES),
        }
    }

    /// Carries out whole blocks; both buffers have the sizes of [`steps`](Fields::steps).
    fn process(&mut self, src: &[u8], dst: &mut [u8]) -> Result<(), DifError> {
        let (flags, source, destination, tags) =
            (self.flags, self.source, self.destination, self.tags);
        match self.opcode {
            Opcode::DifCheck => {
                self.tags.source = dray_ops::dif_check(src, flags, source, tags.source)?;
            }
            Opcode::DifInsert => {
                let made = dray_ops::dif_insert(src, dst, flags, destination, tags.destination)?;
                self.tags.destination = made;
            }
            Opcode::DifStrip => {
                let checked = dray_ops::dif_strip(src, dst, flags, source, tags.source)?;
                self.tags.source = checked;
            }
            Opcode::DifUpdate => {
                self.tags = dray_ops::dif_update(src, dst, flags, source, destination, tags)?;
            }
            _ => {
                let made = dray_ops::dix_generate(src, dst, flags, destination, tags.destination)?;
                self.tags.destination = made;
            }
        }
        Ok(())
    }

    /// Skips whole blocks.
    fn advance(&mut self, blocks: usize) {
        self.tags.source = self.source.advance(self.tags.source, blocks);
        self.tags.destination = self.destination.advance(self.tags.destination, blocks);
    }

    /// `outcome` with the tags of the block to come (spec 8.3.17).
    fn end(&self, mut outcome: DescriptorResult) -> DescriptorResult {
        let record = &mut outcome.record;
        if self.checks() {
            record.set_source_tags(bits(self.tags.source));
        }
        if self.makes() {
            record.set_destination_tags(bits(self.tags.destination));
        }
        outcome
    }
}

fn tags(tags: DifTags) -> Tags {
    Tags {
        reference: tags.reference,
        app_mask: tags.app_mask,
        app: tags.app,
    }
}

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
    pub(super) fn dif(&mut self, opcode: Opcode) -> DescriptorResult {
        let mut fields = Fields::new(opcode, self.d);
        let (from, to) = fields.steps();
        let (src, dst) = (self.d.address1, self.d.address2);
        let all = self.d.size as usize / from;
        let source = Extent::of(self.memory, &[source(src)], (all * from) as u64);
        let place = Extent::of(self.memory, &[destination(dst)], (all * to) as u64);
        let readable = source.bytes as usize / from;
        let writable = (place.bytes as usize).checked_div(to).unwrap_or(all);
        let there = readable.min(writable);
        if self.moved {
            if let Err((done, bad)) = self.dif_blocks(&mut fields, there) {
                let mut outcome = DescriptorResult::status(Status::DIF_ERROR);
                outcome.record.result = bad.status;
                outcome.record.bytes_completed = (done * from) as u32;
                return fields.end(outcome);
            }
        } else {
            fields.advance(there);
        }
        // A block is read before it is written.
        let fault = match readable <= writable {
            true => source,
            false => place,
        };
        if there < all {
            let after = fault.after((there * from) as u64);
            return fields.end(self.end(&after, success()));
        }
        fields.end(DescriptorResult::status(Status::SUCCESS))
    }

    /// Carries out `count` blocks. The error has the number of good blocks before the bad one,
    /// which have been written.
    fn dif_blocks(&mut self, fields: &mut Fields, count: usize) -> Result<(), (usize, BadBlock)> {
        let (from, to) = fields.steps();
        let (src, dst) = (self.d.address1, self.d.address2);
        let at_once = CHUNK / from.max(to);
        let (mut input, mut output) = ([0; CHUNK], [0; CHUNK]);
        let mut done = 0;
        while done < count {
            let blocks = at_once.min(count - done);
            let input = &mut input[..blocks * from];
            self.memory.read(src + (done * from) as u64, input);
            let result = fields.process(input, &mut output[..blocks * to]);
            let good = match result {
                Err(DifError::Block(bad)) => bad.bytes_completed / from,
                // Sizes are whole blocks.
                Err(DifError::Size(_)) | Ok(()) => blocks,
            };
            if good * to > 0 {
                let at = dst + (done * to) as u64;
                self.memory.write(at, &output[..good * to]);
            }
            if let Err(DifError::Block(bad)) = result {
                fields.advance(good);
                return Err((done + good, bad));
            }
            done += blocks;
        }
        Ok(())
    }
}
