//! Operations on buffers that are given by value.

use dray_ops::{BlockSize, DIF_BYTES, DestinationDifFlags, DifFlags, SourceDifFlags};
use dray_spec::DifTags;

use super::{Buffer, Buffers, ChannelError};
use crate::Operation;

/// An operation and its buffers, for [`Channel::push`](crate::Channel::push), a batch, or a client of a
/// driver ([`task`](crate::task)). Sizes follow from the buffers; they are checked when it is pushed.
///
/// ```
/// use dray::{Channel, CpuMover, Output, Request, WaitPolicy};
///
/// let (old, new, record) = (vec![0; 4096], vec![1; 4096], vec![0; 8192]);
/// let mut channel = Channel::new(CpuMover::new(1));
/// channel.push(Request::create_delta(old, new, record)).map_err(|rejected| rejected.error)?;
/// let done = channel.wait(WaitPolicy::Pause, None)?;
/// let Ok(Output::Delta { record_bytes, overflow_at: None }) = done.result else { panic!() };
/// assert_eq!(record_bytes, 4096 / 8 * 10);
/// let apply = Request::apply_delta(done.buffers.second.unwrap(), record_bytes, vec![0; 4096]);
/// channel.push(apply).map_err(|rejected| rejected.error)?;
/// let done = channel.wait(WaitPolicy::Pause, None)?;
/// assert_eq!(done.buffers.destination, Some(vec![1; 4096]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Request<B> {
    kind: Kind,
    pub(super) buffers: Buffers<B>,
    fence: bool,
    block_on_fault: bool,
    cache_control: bool,
    pub(crate) user_data: u64,
}

#[derive(Debug)]
enum Kind {
    Noop,
    Copy,
    Dualcast,
    Compare,
    ComparePattern(u64),
    Fill(u64),
    Crc(u32),
    CopyCrc(u32),
    Crc64(u64),
    CopyCrc64(u64),
    CreateDelta,
    ApplyDelta(u32),
    DifCheck(DifFlags, Source),
    DifInsert(DifFlags, Destination),
    DifStrip(DifFlags, Source),
    DifUpdate(DifFlags, Source, Destination),
    DixGenerate(DifFlags, Destination),
    CacheFlush,
}

/// Bytes of a block, with or without its field.
type Bytes = fn(BlockSize) -> usize;
type Source = (SourceDifFlags, DifTags);
type Destination = (DestinationDifFlags, DifTags);

impl<B> Request<B> {
    /// Does nothing, which takes its time.
    pub fn noop() -> Request<B> {
        Request::new(Kind::Noop, None, None, None)
    }

    /// Copies `source` to `destination`, which is as long.
    pub fn copy(source: B, destination: B) -> Request<B> {
        Request::new(Kind::Copy, Some(source), Some(destination), None)
    }

    /// Copies `source` to two buffers, which are as long and alike in address bits 11:0
    /// ([`PageBuffer`](crate::PageBuffer)).
    pub fn dualcast(source: B, first: B, second: B) -> Request<B> {
        Request::new(Kind::Dualcast, Some(source), Some(first), Some(second))
    }

    /// Compares two buffers of the same length.
    pub fn compare(first: B, second: B) -> Request<B> {
        Request::new(Kind::Compare, Some(first), Some(second), None)
    }

    /// Compares a buffer with an 8-byte pattern.
    pub fn compare_pattern(source: B, pattern: u64) -> Request<B> {
        Request::new(Kind::ComparePattern(pattern), Some(source), None, None)
    }

    /// Fills a buffer with an 8-byte pattern.
    pub fn fill(pattern: u64, destination: B) -> Request<B> {
        Request::new(Kind::Fill(pattern), None, Some(destination), None)
    }

    /// CRC32C of a buffer.
    pub fn crc32c(source: B, seed: u32) -> Request<B> {
        Request::new(Kind::Crc(seed), Some(source), None, None)
    }

    /// Copies `source` to `destination`, which is as long, and takes its CRC32C.
    pub fn copy_crc32c(source: B, destination: B, seed: u32) -> Request<B> {
        let kind = Kind::CopyCrc(seed);
        Request::new(kind, Some(source), Some(destination), None)
    }

    /// CRC-64 of a buffer; a device of version 2 has it.
    pub fn crc64(source: B, seed: u64) -> Request<B> {
        Request::new(Kind::Crc64(seed), Some(source), None, None)
    }

    /// Copies `source` to `destination`, and takes its CRC-64; a device of version 2 has it.
    pub fn copy_crc64(source: B, destination: B, seed: u64) -> Request<B> {
        let kind = Kind::CopyCrc64(seed);
        Request::new(kind, Some(source), Some(destination), None)
    }

    /// Records in `record`, 80 bytes or more, where two buffers of the same length differ: multiples
    /// of 8, at most 512 KiB, aligned to 8 bytes (spec 8.3.8).
    pub fn create_delta(first: B, second: B, record: B) -> Request<B> {
        Request::new(Kind::CreateDelta, Some(first), Some(second), Some(record))
    }

    /// Applies the first `record_bytes` of a delta record to `destination`.
    pub fn apply_delta(record: B, record_bytes: u32, destination: B) -> Request<B> {
        let kind = Kind::ApplyDelta(record_bytes);
        Request::new(kind, Some(record), Some(destination), None)
    }

    /// Checks the integrity fields of a buffer, whose blocks have one each.
    pub fn dif_check(source: B, flags: DifFlags, how: Source) -> Request<B> {
        Request::new(Kind::DifCheck(flags, how), Some(source), None, None)
    }

    /// Copies blocks without fields, and adds a field to each: the destination is larger.
    pub fn dif_insert(source: B, destination: B, flags: DifFlags, how: Destination) -> Request<B> {
        let kind = Kind::DifInsert(flags, how);
        Request::new(kind, Some(source), Some(destination), None)
    }

    /// Checks the fields of a buffer, and copies its blocks without them: the destination is smaller.
    pub fn dif_strip(source: B, destination: B, flags: DifFlags, how: Source) -> Request<B> {
        let kind = Kind::DifStrip(flags, how);
        Request::new(kind, Some(source), Some(destination), None)
    }

    /// Checks the fields of a buffer, and copies its blocks with new ones.
    pub fn dif_update(
        source: B,
        destination: B,
        flags: DifFlags,
        checked: Source,
        made: Destination,
    ) -> Request<B> {
        let kind = Kind::DifUpdate(flags, checked, made);
        Request::new(kind, Some(source), Some(destination), None)
    }

    /// Writes the fields of a buffer's blocks side by side to `destination`, which has 8 bytes for
    /// each; a device of version 2 has it.
    pub fn dix_generate(
        source: B,
        destination: B,
        flags: DifFlags,
        how: Destination,
    ) -> Request<B> {
        let kind = Kind::DixGenerate(flags, how);
        Request::new(kind, Some(source), Some(destination), None)
    }

    /// Evicts a buffer from the processor's caches.
    pub fn cache_flush(destination: B) -> Request<B> {
        Request::new(Kind::CacheFlush, None, Some(destination), None)
    }

    /// In a batch: starts when all before it have ended; not at all if one of them has not succeeded.
    #[must_use]
    pub fn with_fence(self) -> Request<B> {
        Request {
            fence: true,
            ..self
        }
    }

    /// The device waits for a page that is not present, if the queue allows it.
    #[must_use]
    pub fn with_block_on_fault(self) -> Request<B> {
        Request {
            block_on_fault: true,
            ..self
        }
    }

    /// Writes go to the cache instead of memory.
    #[must_use]
    pub fn with_cache_control(self) -> Request<B> {
        Request {
            cache_control: true,
            ..self
        }
    }

    /// The caller's own number, which comes back with the result.
    #[must_use]
    pub fn with_user_data(self, user_data: u64) -> Request<B> {
        Request { user_data, ..self }
    }

    /// The buffers.
    pub fn into_buffers(self) -> Buffers<B> {
        self.buffers
    }

    fn new(kind: Kind, source: Option<B>, destination: Option<B>, second: Option<B>) -> Request<B> {
        Request {
            kind,
            buffers: Buffers {
                source,
                destination,
                second,
            },
            fence: false,
            block_on_fault: false,
            cache_control: false,
            user_data: 0,
        }
    }
}

impl<B: Buffer> Request<B> {
    /// The operation on its buffers, within which all is that it accesses.
    pub(crate) fn operation(&mut self) -> Result<Operation, ChannelError> {
        let (source, source_len) = place(&mut self.buffers.source);
        let (destination, destination_len) = place(&mut self.buffers.destination);
        let (second, second_len) = place(&mut self.buffers.second);
        let same = |first: usize, second: usize| match first == second {
            true => Ok(()),
            false => Err(ChannelError::Lengths { first, second }),
        };
        // Blocks of data, as they are read, become blocks that are written.
        let blocks =
            |flags: DifFlags, read: fn(BlockSize) -> usize, written: fn(BlockSize) -> usize| {
                let block = flags.block_size();
                let expected = source_len / read(block) * written(block);
                match source_len.is_multiple_of(read(block)) {
                    true => same(expected, destination_len),
                    false => Err(ChannelError::Blocks {
                        len: source_len,
                        block: read(block),
                    }),
                }
            };
        let (data, protected) = (
            BlockSize::bytes as Bytes,
            BlockSize::protected_bytes as Bytes,
        );
        let operation = match self.kind {
            Kind::Noop => Operation::noop(),
            Kind::Copy => {
                same(source_len, destination_len)?;
                Operation::memmove(source, destination, bytes(source_len)?)
            }
            Kind::Dualcast => {
                same(source_len, destination_len)?;
                same(source_len, second_len)?;
                Operation::dualcast(source, destination, second, bytes(source_len)?)
            }
            Kind::Compare => {
                same(source_len, destination_len)?;
                Operation::compare(source, destination, bytes(source_len)?)
            }
            Kind::ComparePattern(pattern) => {
                Operation::compare_pattern(source, pattern, bytes(source_len)?)
            }
            Kind::Fill(pattern) => Operation::fill(pattern, destination, bytes(destination_len)?),
            Kind::Crc(seed) => Operation::crc(source, bytes(source_len)?, seed),
            Kind::CopyCrc(seed) => {
                same(source_len, destination_len)?;
                Operation::copy_crc(source, destination, bytes(source_len)?, seed)
            }
            Kind::Crc64(seed) => Operation::crc64(source, bytes(source_len)?, seed),
            Kind::CopyCrc64(seed) => {
                same(source_len, destination_len)?;
                Operation::copy_crc64(source, destination, bytes(source_len)?, seed)
            }
            Kind::CreateDelta => {
                same(source_len, destination_len)?;
                let (len, most) = (bytes(source_len)?, bytes(second_len)?);
                Operation::create_delta(source, destination, len, second, most)
            }
            Kind::ApplyDelta(record_bytes) => {
                if record_bytes as usize > source_len {
                    same(record_bytes as usize, source_len)?;
                }
                let len = bytes(destination_len)?;
                Operation::apply_delta(source, destination, len, record_bytes)
            }
            Kind::DifCheck(flags, how) => {
                Operation::dif_check(source, bytes(source_len)?, flags, how)
            }
            Kind::DifInsert(flags, how) => {
                blocks(flags, data, protected)?;
                Operation::dif_insert(source, destination, bytes(source_len)?, flags, how)
            }
            Kind::DifStrip(flags, how) => {
                blocks(flags, protected, data)?;
                Operation::dif_strip(source, destination, bytes(source_len)?, flags, how)
            }
            Kind::DifUpdate(flags, checked, made) => {
                blocks(flags, protected, protected)?;
                let len = bytes(source_len)?;
                Operation::dif_update(source, destination, len, flags, checked, made)
            }
            Kind::DixGenerate(flags, how) => {
                blocks(flags, data, |_| DIF_BYTES)?;
                Operation::dix_generate(source, destination, bytes(source_len)?, flags, how)
            }
            Kind::CacheFlush => Operation::cache_flush(destination, bytes(destination_len)?),
        };
        let operation = if self.fence {
            operation.with_fence()
        } else {
            operation
        };
        let operation = if self.block_on_fault {
            operation.with_block_on_fault()
        } else {
            operation
        };
        Ok(match self.cache_control {
            true => operation.with_cache_control(),
            false => operation,
        })
    }
}

fn place<B: Buffer>(buffer: &mut Option<B>) -> (u64, usize) {
    match buffer {
        Some(buffer) => {
            let len = buffer.len();
            (buffer.stable_ptr().expose_provenance() as u64, len)
        }
        None => (0, 0),
    }
}

fn bytes(len: usize) -> Result<u32, ChannelError> {
    let bytes = u32::try_from(len).ok().filter(|bytes| *bytes > 0);
    bytes.ok_or(ChannelError::Length { len })
}
