//! Reading a file that the user names, with a bound: a device may have no end.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The bytes of a file of at most `max_bytes`, of which no more is read.
///
/// # Errors
/// The file cannot be read, or is longer ([`FileTooLarge`](io::ErrorKind::FileTooLarge)).
pub fn read_bytes(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        let message = format!("is longer than {max_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// The text of a file of at most `max_bytes`, of which no more is read.
///
/// # Errors
/// As for [`read_bytes`]; the file is not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    String::from_utf8(read_bytes(path, max_bytes)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is not text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_up_to_the_bound_and_devices_without_end_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        std::fs::write(&path, "four").expect("a file");
        assert_eq!(read_text(&path, 4).expect("as long as allowed"), "four");
        let kind = |path: &Path, max| read_text(path, max).expect_err("refused").kind();
        assert_eq!(kind(&path, 3), io::ErrorKind::FileTooLarge);
        assert_eq!(
            kind(Path::new("/dev/zero"), 1 << 16),
            io::ErrorKind::FileTooLarge
        );
        std::fs::write(&path, [0xff]).expect("a file");
        assert_eq!(kind(&path, 3), io::ErrorKind::InvalidData);
    }
}
