//! What kind of file a command is.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// Where execvp(3) looks without `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// Interpreters of interpreters: the kernel follows as many (`bprm_execve`).
const DEPTH: usize = 5;
/// The kernel reads as much of a script's first line (`BINPRM_BUF_SIZE`).
const FIRST_LINE: usize = 256;

/// `Elf64_Ehdr` of the System V ABI.
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

/// A file and what executes it.
#[derive(Debug)]
pub(super) struct Found {
    /// The program; the interpreter, of a script.
    pub(super) path: PathBuf,
}

/// Whether a program loads the preload library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The dynamic linker is there to do it.
    Native,
    /// It does not.
    Hindered(Obstacle),
}

/// Why a program does not load the preload library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum Obstacle {
    /// No `PT_INTERP`.
    #[error("is statically linked")]
    Static,
    /// The dynamic linker obeys no environment then (ld.so(8), secure-execution mode).
    #[error("has privileges of its own")]
    Privileged,
    /// Another processor's.
    #[error("is no program for x86-64")]
    Machine,
}

/// Why nothing can be said about a file.
#[derive(Debug, Error)]
pub(super) enum UnknownError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// It is neither ELF nor a script: exec(2) decides.
    #[error("it is neither ELF nor a script")]
    NoElf,
    /// The table of program headers has entries of another size than the ABI's.
    #[error("its program headers have {bytes} bytes each, and are {count}")]
    Headers {
        /// Bytes of an entry.
        bytes: u16,
        /// Entries.
        count: u16,
    },
}

/// The file that a command names, as execvp(3) looks for it.
pub(super) fn find(command: &OsStr) -> Option<Found> {
    if command.as_bytes().contains(&b'/') {
        return is_executable(Path::new(command)).then(|| Found {
            path: command.into(),
        });
    }
    let directories = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(DEFAULT_PATH));
    std::env::split_paths(&directories)
        .map(|directory| directory.join(command))
        .find(|path| is_executable(path))
        .map(|path| Found { path })
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

impl Found {
    /// Whether it loads the preload library, or the interpreter does that executes it.
    ///
    /// # Errors
    /// It cannot be read, or is what the kernel would not execute.
    pub(super) fn kind(&self) -> Result<Kind, UnknownError> {
        let mut path = self.path.clone();
        for _ in 0..DEPTH {
            let file = File::open(&path)?;
            let mut start = [0; FIRST_LINE];
            let length = read_at_most(&file, &mut start, 0)?;
            let start = &start[..length];
            if let Some(line) = start.strip_prefix(b"#!") {
                path = interpreter(line).ok_or(UnknownError::NoElf)?;
                continue;
            }
            if is_privileged(&path, &file) {
                return Ok(Kind::Hindered(Obstacle::Privileged));
            }
            return elf(&file, start);
        }
        Err(UnknownError::NoElf)
    }
}

/// The first word after `#!`.
fn interpreter(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t' | 0));
    let word = words.find(|word| !word.is_empty())?;
    Some(OsStr::from_bytes(word).into())
}

/// Setuid, setgid, or with capabilities of the file.
fn is_privileged(path: &Path, file: &File) -> bool {
    const SETUID_OR_SETGID: u32 = 0o6000;
    let mode = file.metadata().map_or(0, |file| file.permissions().mode());
    let none: &mut [u8] = &mut [];
    mode & SETUID_OR_SETGID != 0
        || rustix::fs::getxattr(path, c"security.capability", none).is_ok_and(|bytes| bytes > 0)
}

fn elf(file: &File, start: &[u8]) -> Result<Kind, UnknownError> {
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
    let mut table = vec![0; all];
    let length = read_at_most(file, &mut table, header.segments.get())?;
    if length < all {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    let dynamic = table.chunks_exact(SEGMENT).any(|segment| {
        U32::read_from_prefix(segment).is_ok_and(|(kind, _)| kind.get() == INTERPRETER)
    });
    Ok(match dynamic {
        true => Kind::Native,
        false => Kind::Hindered(Obstacle::Static),
    })
}

fn read_at_most(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        // No file is as long as an offset that does not fit.
        let Some(at) = offset.checked_add(filled as u64) else {
            break;
        };
        match file.read_at(&mut bytes[filled..], at)? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn kind(bytes: &[u8]) -> Result<Kind, UnknownError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let path = file.path().to_owned();
        Found { path }.kind()
    }

    /// An executable with segments of these types.
    fn program(segments: &[u32]) -> Vec<u8> {
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
        assert_eq!(kind(&program(&[1, 3, 2])).unwrap(), Kind::Native);
        assert_eq!(kind(&program(&[1, 2])).unwrap(), hindered);
        assert_eq!(kind(&program(&[])).unwrap(), hindered);
        let mut other = program(&[1]);
        other[18] = 183;
        let machine = Kind::Hindered(Obstacle::Machine);
        assert_eq!(kind(&other).unwrap(), machine);
    }

    #[test]
    fn this_test_is_as_it_was_linked() {
        let path = std::env::current_exe().unwrap();
        let expected = match cfg!(target_feature = "crt-static") {
            true => Kind::Hindered(Obstacle::Static),
            false => Kind::Native,
        };
        assert_eq!(Found { path }.kind().unwrap(), expected);
    }

    #[test]
    fn scripts_are_what_executes_them() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&program(&[1])).unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let script = format!("#! {path} -x\nwords");
        let hindered = Kind::Hindered(Obstacle::Static);
        assert_eq!(kind(script.as_bytes()).unwrap(), hindered);
        assert!(kind(b"#!\n").is_err());
        assert!(kind(b"#!/not/there\n").is_err());
    }

    #[test]
    fn a_script_that_executes_itself_has_an_end() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_owned();
        writeln!(file, "#!{}", path.display()).unwrap();
        assert!(matches!(Found { path }.kind(), Err(UnknownError::NoElf)));
    }

    #[test]
    fn setuid_programs_obey_no_environment() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&program(&[3])).unwrap();
        let path = file.path().to_owned();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
        let hindered = Kind::Hindered(Obstacle::Privileged);
        assert_eq!(Found { path }.kind().unwrap(), hindered);
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
