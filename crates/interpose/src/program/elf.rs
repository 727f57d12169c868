//! Executables in the format of the System V ABI.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::{Obstacle, PreloadSupport, UnknownError, read_at_most};

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
const SEGMENT: usize = 56;

/// `Elf64_Phdr`, as far as it counts here.
#[derive(Debug, Clone, Copy, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Segment {
    kind: U32,
    flags: U32,
    offset: U64,
    addresses: [U64; 2],
    bytes: U64,
    rest: [U64; 2],
}

const _: () = assert!(size_of::<Segment>() == SEGMENT);
/// `PT_INTERP`, `PT_NOTE`.
const INTERPRETER: u32 = 3;
const NOTE: u32 = 4;
/// The kernel takes a longer name for an error (`PATH_MAX`).
const LINKER_NAME: usize = 4096;
/// Bytes of a segment of notes that are looked at, and the first words of a note that Go's linker
/// leaves: the length of its name, of its content, its type (`ELF_NOTE_GOBUILDID_TAG`), its name.
const NOTES: usize = 1024;
const GO_NAME: u32 = 4;
const GO_BUILD_ID: u32 = 4;
/// `EM_X86_64`, `ELFCLASS64`, `ELFDATA2LSB`.
const X86_64: u16 = 62;
const BITS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
/// More bytes of program headers the kernel does not load (`load_elf_phdrs`).
const MOST_SEGMENT_BYTES: usize = 65536;
/// Program headers that are read at once. Programs have about a dozen.
const TOGETHER: usize = 8;

/// Whether the program has a dynamic linker; `start` is its beginning.
pub(super) fn kind(file: &OwnedFd, start: &[u8]) -> Result<PreloadSupport, UnknownError> {
    let (header, _) = Header::read_from_prefix(start).map_err(|_| UnknownError::NoElf)?;
    if header.magic != *b"\x7fELF" {
        return Err(UnknownError::NoElf);
    }
    let native = (BITS_64, LITTLE_ENDIAN, X86_64);
    if (header.class, header.data, header.machine.get()) != native {
        return Ok(PreloadSupport::Hindered(Obstacle::Machine));
    }
    let (bytes, count) = (header.segment_bytes.get(), header.segment_count.get());
    let all = SEGMENT * usize::from(count);
    if usize::from(bytes) != SEGMENT || all > MOST_SEGMENT_BYTES {
        return Err(UnknownError::Headers { bytes, count });
    }
    let (mut table, mut read) = ([0; SEGMENT * TOGETHER], 0);
    let (mut linker, mut raw) = (None, false);
    while read < all {
        let part = &mut table[..(all - read).min(SEGMENT * TOGETHER)];
        let offset = header.segments.get().saturating_add(read as u64);
        if read_at_most(file, part, offset)? < part.len() {
            // The kernel's answer to a file that is too short (`elf_read`).
            return Err(Errno::IO.into());
        }
        for segment in part.chunks_exact(SEGMENT) {
            let Ok(segment) = Segment::read_from_bytes(segment) else {
                continue;
            };
            // The kernel uses the first (`load_elf_binary`).
            if segment.kind.get() == INTERPRETER && linker.is_none() {
                linker = Some(is_linker_of_glibc(file, &segment)?);
            }
            raw |= segment.kind.get() == NOTE && is_go(file, &segment);
        }
        read += part.len();
    }
    Ok(match (linker, raw) {
        (None, _) => PreloadSupport::Hindered(Obstacle::Static),
        (Some(false), _) => PreloadSupport::Hindered(Obstacle::Linker),
        (Some(true), true) => PreloadSupport::Hindered(Obstacle::RawCalls),
        (Some(true), false) => PreloadSupport::Native,
    })
}

/// Whether the segment names glibc's dynamic linker: `ld-linux-x86-64.so.2` since the ABI named it,
/// `ld-2.N.so` as it was installed before 2.34.
fn is_linker_of_glibc(file: &OwnedFd, segment: &Segment) -> Result<bool, UnknownError> {
    let mut name = [0; LINKER_NAME];
    let length = segment.bytes.get().min(LINKER_NAME as u64) as usize;
    let read = read_at_most(file, &mut name[..length], segment.offset.get())?;
    let path = name[..read].split(|byte| *byte == 0).next();
    let name = path.and_then(|path| path.rsplit(|byte| *byte == b'/').next());
    Ok(name
        .is_some_and(|name| name.starts_with(b"ld-linux-x86-64.so") || name.starts_with(b"ld-2.")))
}

/// Whether Go's linker has left its note there. A segment that cannot be read has none.
fn is_go(file: &OwnedFd, segment: &Segment) -> bool {
    let mut notes = [0; NOTES];
    let length = segment.bytes.get().min(NOTES as u64) as usize;
    let Ok(read) = read_at_most(file, &mut notes[..length], segment.offset.get()) else {
        return false;
    };
    let mut rest = &notes[..read];
    while let Ok(([name, content, kind], behind)) = <[U32; 3]>::read_from_prefix(rest) {
        if (name.get(), kind.get()) == (GO_NAME, GO_BUILD_ID) && behind.starts_with(b"Go\0\0") {
            return true;
        }
        // Both are padded to words (gABI, "Note Section").
        let padded = |bytes: U32| bytes.get().div_ceil(4) as usize * 4;
        let next = padded(name).saturating_add(padded(content));
        match behind.get(next..) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn kind(bytes: &[u8]) -> Result<PreloadSupport, UnknownError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        super::kind(&file.into(), &bytes[..bytes.len().min(256)])
    }

    /// An executable with segments of these types; interpreters are glibc's dynamic linker.
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
        name_linker(&mut bytes, segments, b"/lib64/ld-linux-x86-64.so.2\0");
        bytes
    }

    /// Puts the name behind the program, where its interpreters point from now on.
    fn name_linker(bytes: &mut Vec<u8>, segments: &[u32], name: &[u8]) {
        let place = (bytes.len() as u64).to_le_bytes();
        for (number, _) in segments
            .iter()
            .enumerate()
            .filter(|(_, kind)| **kind == INTERPRETER)
        {
            let segment = HEADER + number * SEGMENT;
            bytes[segment + 8..segment + 16].copy_from_slice(&place);
            bytes[segment + 32..segment + 40].copy_from_slice(&(name.len() as u64).to_le_bytes());
        }
        bytes.extend(name);
    }

    #[test]
    fn only_the_linker_of_glibc_loads_the_library() {
        let with = |name: &[u8]| {
            let mut bytes = program(&[1, INTERPRETER]);
            name_linker(&mut bytes, &[1, INTERPRETER], name);
            kind(&bytes)
        };
        let other = Ok(PreloadSupport::Hindered(Obstacle::Linker));
        for name in [
            &b"/lib64/ld-linux-x86-64.so.2\0"[..],
            b"/nix/store/0123-glibc-2.40/lib/ld-linux-x86-64.so.2\0",
            b"/lib/x86_64-linux-gnu/ld-2.31.so\0",
        ] {
            assert_eq!(with(name), Ok(PreloadSupport::Native));
        }
        for name in [
            &b"/lib/ld-musl-x86_64.so.1\0"[..],
            b"/system/bin/linker64\0",
            b"\0",
            b"",
            &[b'a'; 5000],
        ] {
            assert_eq!(with(name), other);
        }
    }

    #[test]
    fn static_programs_have_no_interpreter() {
        let hindered = PreloadSupport::Hindered(Obstacle::Static);
        assert_eq!(kind(&program(&[1, 3, 2])), Ok(PreloadSupport::Native));
        assert_eq!(kind(&program(&[1, 2])), Ok(hindered));
        assert_eq!(kind(&program(&[])), Ok(hindered));
        let mut other = program(&[1]);
        other[18] = 183;
        assert_eq!(
            kind(&other),
            Ok(PreloadSupport::Hindered(Obstacle::Machine))
        );
    }

    /// A note as `gcc` and Go's linker leave them: name, type, content.
    fn note(name: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [name.len() as u32, content.len() as u32, kind] {
            bytes.extend(word.to_le_bytes());
        }
        for part in [name, content] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn go_programs_are_recognised_by_their_note() {
        let with = |notes: &[u8]| {
            let mut bytes = program(&[INTERPRETER, NOTE]);
            let (at, length) = (bytes.len() as u64, notes.len() as u64);
            let segment = HEADER + SEGMENT;
            bytes[segment + 8..segment + 16].copy_from_slice(&at.to_le_bytes());
            bytes[segment + 32..segment + 40].copy_from_slice(&length.to_le_bytes());
            bytes.extend(notes);
            kind(&bytes)
        };
        let gnu = note(b"GNU\0", 3, &[7; 20]);
        let go = note(b"Go\0\0", GO_BUILD_ID, b"build id");
        let raw = Ok(PreloadSupport::Hindered(Obstacle::RawCalls));
        assert_eq!(with(&gnu), Ok(PreloadSupport::Native));
        assert_eq!(with(&go), raw);
        assert_eq!(with(&[gnu.clone(), go.clone()].concat()), raw);
        assert_eq!(with(&go[..10]), Ok(PreloadSupport::Native));
        // A length that leads out of the file.
        assert_eq!(with(&[0xff; 64]), Ok(PreloadSupport::Native));
    }

    #[test]
    fn a_long_program_header_table_is_read_completely() {
        for count in TOGETHER - 1..=2 * TOGETHER + 1 {
            let mut segments = vec![1; count];
            let hindered = PreloadSupport::Hindered(Obstacle::Static);
            assert_eq!(kind(&program(&segments)), Ok(hindered), "{count}");
            segments[count - 1] = INTERPRETER;
            assert_eq!(
                kind(&program(&segments)),
                Ok(PreloadSupport::Native),
                "{count}"
            );
        }
    }

    #[test]
    fn truncated_and_invalid_headers_are_errors() {
        let cut = program(&[1, 3]);
        for length in 0..HEADER + 2 * SEGMENT {
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
        fn random_headers_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = bytes;
            let sound = program(&[]);
            let length = bytes.len().min(20);
            bytes[..length].copy_from_slice(&sound[..length]);
            let _ = kind(&bytes);
        }
    }
}
