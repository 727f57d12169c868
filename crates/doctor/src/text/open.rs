//! Opens a text: plain or compressed by gzip, and nothing else.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

/// Why a text is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The system refuses it.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Nothing is in it.
    #[error("is empty")]
    Empty,
    /// It is something that another program unpacks.
    #[error("is compressed by {program}")]
    Compressed {
        /// The name of the method.
        program: &'static str,
        /// The command that unpacks it to its output.
        command: &'static str,
    },
    /// It is an archive of files.
    #[error("is an archive of files (tar)")]
    Archive,
    /// It is no text.
    #[error("is not text: {0}")]
    Binary(&'static str),
}

/// Enough to tell what it is.
const LOOK_BYTES: usize = 1 << 14;

/// The lines of a text, whatever it is packed in.
pub(super) fn open(input: impl Read + 'static) -> Result<Box<dyn BufRead>, TextError> {
    let mut input = BufReader::with_capacity(LOOK_BYTES, input);
    let packed = input.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    if !packed {
        look(input.fill_buf()?)?;
        return Ok(Box::new(input));
    }
    let mut unpacked = BufReader::with_capacity(LOOK_BYTES, MultiGzDecoder::new(input));
    look(unpacked.fill_buf()?)?;
    Ok(Box::new(unpacked))
}

/// First bytes of files that are no text.
const KINDS: [(&[u8], &str); 9] = [
    (b"\x7fELF", "a program or library (ELF)"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"GIF8", "a picture (GIF)"),
    (
        b"PK\x03\x04",
        "a zip archive, or a document of an office program",
    ),
    (
        b"LPKSHHRH",
        "a file of the journal: give `journalctl --file FILE` on standard input",
    ),
    (b"SQLite format 3", "a database (SQLite)"),
    (b"\x30\x37\x30\x37\x30", "an archive (cpio)"),
];

const METHODS: [(&[u8], &str, &str); 4] = [
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
];

fn look(start: &[u8]) -> Result<(), TextError> {
    if start.is_empty() {
        return Err(TextError::Empty);
    }
    if start.iter().all(|&byte| byte == 0) {
        return Err(TextError::Binary("it is all NULs"));
    }
    if let Some(&(_, program, command)) = METHODS.iter().find(|known| start.starts_with(known.0)) {
        return Err(TextError::Compressed { program, command });
    }
    if start.get(257..262) == Some(b"ustar") {
        return Err(TextError::Archive);
    }
    if let Some(&(_, kind)) = KINDS.iter().find(|known| start.starts_with(known.0)) {
        return Err(TextError::Binary(kind));
    }
    // NULs stand between the bytes of UTF-16, and in logs after a crash.
    let strange = |byte: &&u8| matches!(byte, 1..=6 | 14..=26 | 28..=31 | 127);
    let text = String::from_utf8_lossy(start);
    let broken = text
        .chars()
        .filter(|&c| c == char::REPLACEMENT_CHARACTER)
        .count();
    let strange = start.iter().filter(strange).count() + broken;
    match strange * 10 > start.len() {
        true => Err(TextError::Binary("too many of its bytes are no characters")),
        false => Ok(()),
    }
}
