//! Executables in the format of the System V ABI.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::{Kind, Obstacle, UnknownError, read_at_most};

/// `Elf64_Ehdr`.
#[derive(Debug, Clone, Copy, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    magic: [u8; 4],
    class: u8,
    data: u8,
    rest_of_identity: [u8; 10],
    kind: U16,
    machine: U16,
    version: U32,
    entry: U64,
    segments: U64,
    sections: U64,
    flags: U32,
    header_bytes: U16,
    segment_bytes: U16,
    segment_count: U16,
    of_sections: [U16; 3],
}

const HEADER: usize = 64;
const _: () = assert!(size_of::<Header>() == HEADER);
/// `Elf64_Phdr`, of which the type alone counts here.
const SEGMENT: usize = 56;
/// `PT_INTERP`.
const INTERPRETER: u32 = 3;
/// `EM_X86_64`, `ELFCLASS64`, `ELFDATA2LSB`.
const X86_64: u16 = 62;
const BITS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
/// More bytes of program headers the kernel does not load (`load_elf_phdrs`).
const MOST_SEGMENT_BYTES: usize = 65536;
/// Program headers that are read at once. Programs have about a dozen.
const TOGETHER: usize = 8;

/// Whether the program has a dynamic linker; `start` is its beginning.
pub(super) fn kind(file: &OwnedFd, start: &[u8]) -> Result<Kind, UnknownError> {
    let (header, _) = Header::read_from_prefix(start).map_err(|_| UnknownError::NoElf)?;
    if header.magic != *b"\x7fELF" {
        return Err(UnknownError::NoElf);
    }
    let native = (BITS_64, LITTLE_ENDIAN, X86_64);
    if (header.class, header.data, header.machine.get()) != native {
        return Ok(Kind::Hindered(Obstacle::Machine));
    }
    let (bytes, count) = (header.segment_bytes.get(), header.segment_count.get());
    let all = SEGMENT * usize::from(count);
    if usize::from(bytes) != SEGMENT || all > MOST_SEGMENT_BYTES {
        return Err(UnknownError::Headers { bytes, count });
    }
    let (mut table, mut read) = ([0; SEGMENT * TOGETHER], 0);
    while read < all {
        let part = &mut table[..(all - read).min(SEGMENT * TOGETHER)];
        let offset = header.segments.get().saturating_add(read as u64);
        if read_at_most(file, part, offset)? < part.len() {
            // The kernel's answer to a file that is too short (`elf_read`).
            return Err(Errno::IO.into());
        }
        let dynamic = part.chunks_exact(SEGMENT).any(|segment| {
            U32::read_from_prefix(segment).is_ok_and(|(kind, _)| kind.get() == INTERPRETER)
        });
        if dynamic {
            return Ok(Kind::Native);
        }
        read += part.len();
    }
    Ok(Kind::Hindered(Obstacle::Static))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn kind(bytes: &[u8]) -> Result<Kind, UnknownError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        super::kind(&file.into(), &bytes[..bytes.len().min(256)])
    }

    /// An executable with segments of these types.
    pub(in super::super) fn program(segments: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = 62;
        bytes[32] = HEADER as u8;
        bytes[54] = SEGMENT as u8;
        bytes[56..58].copy_from_slice(&(segments.len() as u16).to_le_bytes());
        for segment in segments {
            bytes.extend(segment.to_le_bytes());
            bytes.extend([0; SEGMENT - 4]);
        }
        bytes
    }

    #[test]
    fn static_programs_have_no_interpreter() {
        let hindered = Kind::Hindered(Obstacle::Static);
        assert_eq!(kind(&program(&[1, 3, 2])), Ok(Kind::Native));
        assert_eq!(kind(&program(&[1, 2])), Ok(hindered));
        assert_eq!(kind(&program(&[])), Ok(hindered));
        let mut other = program(&[1]);
        other[18] = 183;
        assert_eq!(kind(&other), Ok(Kind::Hindered(Obstacle::Machine)));
    }

    #[test]
    fn a_long_table_is_read_to_its_end() {
        for count in TOGETHER - 1..=2 * TOGETHER + 1 {
            let mut segments = vec![1; count];
            let hindered = Kind::Hindered(Obstacle::Static);
            assert_eq!(kind(&program(&segments)), Ok(hindered), "{count}");
            segments[count - 1] = INTERPRETER;
            assert_eq!(kind(&program(&segments)), Ok(Kind::Native), "{count}");
        }
    }

    #[test]
    fn headers_that_cannot_be_are_errors() {
        let cut = program(&[1, 3]);
        for length in 0..cut.len() {
            assert!(kind(&cut[..length]).is_err(), "{length}");
        }
        let mut size = program(&[1]);
        size[54] = 57;
        assert!(matches!(kind(&size), Err(UnknownError::Headers { .. })));
        let mut many = program(&[1]);
        many[56..58].fill(0xff);
        assert!(matches!(kind(&many), Err(UnknownError::Headers { .. })));
        let mut far = program(&[1]);
        far[32..40].fill(0xff);
        assert!(kind(&far).is_err());
    }

    proptest! {
        #[test]
        fn no_header_is_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = bytes;
            let sound = program(&[]);
            let length = bytes.len().min(20);
            bytes[..length].copy_from_slice(&sound[..length]);
            let _ = kind(&bytes);
        }
    }
}
