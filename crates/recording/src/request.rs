//! One request, as it is in the file.

use crate::page::REQUEST;

/// Properties of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// The request is written. It is always set.
    pub const WRITTEN: Flags = Flags(1);
    /// It is a member of a batch; [`Request::seen`] is the distance to the batch.
    pub const MEMBER: Flags = Flags(1 << 1);
    /// The size is in units of 4096 bytes, rounded up.
    pub const PAGES: Flags = Flags(1 << 2);
    /// It ended with another status than success, or was given up.
    pub const FAILED: Flags = Flags(1 << 3);
    /// Writes go to the cache.
    pub const CACHE_CONTROL: Flags = Flags(1 << 4);
    /// It waits for those before it in its batch.
    pub const FENCE: Flags = Flags(1 << 5);

    /// Both.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether all of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Where an operand begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Alignment {
    /// At a page.
    #[default]
    Page,
    /// At a cache line of 64 bytes, and at no page.
    Line,
    /// Elsewhere.
    Other,
}

impl Alignment {
    /// Of an address.
    pub const fn of(address: u64) -> Alignment {
        match address {
            a if a % 4096 == 0 => Alignment::Page,
            a if a % 64 == 0 => Alignment::Line,
            _ => Alignment::Other,
        }
    }
}

/// What is known of the memory of an operand, by its first page: which requests have named it before. The last 65536 pages
/// are remembered, in a table without chains, so that a page that was named long ago may be fresh again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Region {
    /// There is no such operand.
    #[default]
    None,
    /// No request of this process has named the page.
    Fresh,
    /// The request that named the page last was this thread's.
    Reused,
    /// The request that named the page last was another thread's.
    Shared,
}

/// The operands of a request: the source, and the destination or the second source of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Operands {
    /// Where they begin.
    pub alignment: [Alignment; 2],
    /// What their memory is.
    pub region: [Region; 2],
}

impl Operands {
    fn byte(self) -> u8 {
        let [a, b] = self.alignment.map(|alignment| alignment as u8);
        let [c, d] = self.region.map(|region| region as u8);
        a | b << 2 | c << 4 | d << 6
    }

    /// `None`: no alignment has that number.
    fn of(byte: u8) -> Option<Operands> {
        let alignment = |bits: u8| match bits & 3 {
            0 => Some(Alignment::Page),
            1 => Some(Alignment::Line),
            2 => Some(Alignment::Other),
            _ => None,
        };
        let region = |bits: u8| match bits & 3 {
            0 => Region::None,
            1 => Region::Fresh,
            2 => Region::Reused,
            _ => Region::Shared,
        };
        Some(Operands {
            alignment: [alignment(byte)?, alignment(byte >> 2)?],
            region: [region(byte >> 4), region(byte >> 6)],
        })
    }
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// Properties.
    pub flags: Flags,
    /// Operation code (spec Table 5-1): 3 is a copy, 4 a fill, 5 a comparison, 1 a batch.
    pub operation: u8,
    /// What its operands are.
    pub operands: Operands,
    /// Place in [`Header::queues`](crate::Header::queues).
    pub queue: u8,
    /// How many requests back in this thread is the one whose end was the last that the thread could have seen before this
    /// request: its record was written, or its call had returned. 0: none. Of a member, how far back its batch is.
    pub seen: u32,
    /// How many requests back in this thread is the last one with the same completion record, whose end the thread has seen
    /// for certain. 0: none.
    pub reuses: u32,
    /// Bytes, or pages with [`Flags::PAGES`]; of a batch, its members.
    pub size: u32,
    /// CPU time of the thread between the last end that it could have seen, or its last request if that came later, and
    /// this request.
    pub think: u32,
    /// Time of the same span that the thread was not running.
    pub idle: u32,
    /// From the request to its end; 0: it has not ended.
    pub took: u32,
}

/// Times in 32 bits: nanoseconds below 2^31, microseconds with the highest bit set, at most 35 minutes.
pub mod time {
    const COARSE: u32 = 1 << 31;

    /// A time of so many nanoseconds; what is longer than 35 minutes is 35 minutes.
    pub const fn from_ns(ns: u64) -> u32 {
        match ns {
            ns if ns < COARSE as u64 => ns as u32,
            ns if ns / 1000 < COARSE as u64 => COARSE | (ns / 1000) as u32,
            _ => u32::MAX,
        }
    }

    /// Nanoseconds of a time.
    pub const fn to_ns(time: u32) -> u64 {
        match time & COARSE {
            0 => time as u64,
            _ => (time & !COARSE) as u64 * 1000,
        }
    }
}

impl Request {
    /// Bytes; members of a batch.
    pub fn bytes(&self) -> u64 {
        match self.flags.has(Flags::PAGES) {
            true => u64::from(self.size) * 4096,
            false => self.size.into(),
        }
    }

    /// With so many bytes.
    pub fn with_bytes(self, bytes: u64) -> Request {
        match u32::try_from(bytes) {
            Ok(size) => Request { size, ..self },
            Err(_) => Request {
                size: u32::try_from(bytes.div_ceil(4096)).unwrap_or(u32::MAX),
                flags: self.flags.with(Flags::PAGES),
                ..self
            },
        }
    }

    /// Whether it is a member of a batch.
    pub fn is_member(&self) -> bool {
        self.flags.has(Flags::MEMBER)
    }

    /// As eight words, the one that is written last first.
    pub(crate) fn words(&self) -> [u32; REQUEST / 4] {
        let first = [
            self.flags.with(Flags::WRITTEN).0,
            self.operation,
            self.operands.byte(),
            self.queue,
        ];
        [
            u32::from_le_bytes(first),
            self.seen,
            self.size,
            self.think,
            self.idle,
            self.took,
            self.reuses,
            0,
        ]
    }

    /// From the file; `Ok(None)`: it is not written.
    pub(crate) fn read(bytes: &[u8; REQUEST]) -> Result<Option<Request>, &'static str> {
        let [flags, operation, operands, queue, ..] = *bytes;
        if flags & Flags::WRITTEN.0 == 0 {
            return Ok(None);
        }
        let word = |index: usize| {
            let at = 4 * index;
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if word(7) != 0 || flags >> 6 != 0 {
            return Err("reserved bits of a request are set");
        }
        if dray_spec::Opcode::try_from(operation).is_err() {
            return Err("a request has an operation code that there is not");
        }
        Ok(Some(Request {
            flags: Flags(flags),
            operation,
            operands: Operands::of(operands)
                .ok_or("a request has an alignment that there is not")?,
            queue,
            seen: word(1),
            size: word(2),
            think: word(3),
            idle: word(4),
            took: word(5),
            reuses: word(6),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_to_two_seconds_and_to_a_microsecond_beyond() {
        for ns in [0, 1, 999, (1 << 31) - 1] {
            assert_eq!(time::to_ns(time::from_ns(ns)), ns);
        }
        assert_eq!(time::to_ns(time::from_ns(1 << 31)), 2_147_483_000);
        let most = time::to_ns(time::from_ns(u64::MAX));
        assert_eq!(most, ((1 << 31) - 1) * 1000);
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let request = Request {
            flags: Flags::WRITTEN.with(Flags::FENCE),
            operation: 3,
            operands: Operands {
                alignment: [Alignment::Page, Alignment::Other],
                region: [Region::Shared, Region::Fresh],
            },
            queue: 7,
            seen: 1,
            think: 2,
            idle: 3,
            took: 4,
            reuses: 5,
            ..Request::default()
        }
        .with_bytes(5 << 30);
        assert_eq!(request.bytes(), 5 << 30);
        let bytes = |request: &Request| {
            let mut bytes = [0; REQUEST];
            for (place, word) in bytes.chunks_exact_mut(4).zip(request.words()) {
                place.copy_from_slice(&word.to_le_bytes());
            }
            bytes
        };
        assert_eq!(Request::read(&bytes(&request)), Ok(Some(request)));
        assert_eq!(Request::read(&[0; REQUEST]), Ok(None));
        let mut other = bytes(&request);
        other[1] = 0xff;
        assert!(Request::read(&other).is_err());
    }
}
