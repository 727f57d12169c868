//! A line for stderr that needs no heap.

use std::fmt;
use std::os::fd::BorrowedFd;

/// Text for standard error of at most 512 bytes; what does not fit is left out.
///
/// Neither writing to it nor printing it allocates: it serves in children of vfork(2), and in calls that
/// come from an allocator.
#[derive(Debug)]
pub struct Line {
    bytes: [u8; 512],
    length: usize,
}

impl Default for Line {
    fn default() -> Line {
        Line {
            bytes: [0; 512],
            length: 0,
        }
    }
}

impl Line {
    /// Appends a name as it is, but for what a terminal would take for a command.
    pub fn append(&mut self, name: &[u8]) {
        for byte in name {
            let byte = if byte.is_ascii_control() { b'?' } else { *byte };
            self.push(&[byte]);
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = self.bytes.len() - self.length;
        let kept = bytes.len().min(room);
        self.bytes[self.length..][..kept].copy_from_slice(&bytes[..kept]);
        self.length += kept;
    }

    /// Writes it to standard error.
    pub fn print(&self) {
        // SAFETY: standard error is open, or this is refused.
        let stderr = unsafe { BorrowedFd::borrow_raw(2) };
        // No other side could be informed.
        let _ = rustix::io::write(stderr, &self.bytes[..self.length]);
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    #[test]
    fn a_line_is_cut_at_512_bytes() {
        let mut line = Line::default();
        write!(line, "a {} ", 1).unwrap();
        line.append(b"\x1b[2J\xff");
        assert_eq!(&line.bytes[..line.length], b"a 1 ?[2J\xff");
        line.append(&[b'x'; 1000]);
        write!(line, "y").unwrap();
        assert_eq!((line.length, line.bytes[511]), (512, b'x'));
    }
}
