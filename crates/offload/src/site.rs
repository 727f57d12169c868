//! Where the code that calls is: the file of its mapping, and the offset there.

use crate::survey::PATH_BYTES;

/// The file that an address of code is in, by its end, and the offset there.
pub(crate) fn place(site: usize, path: &mut [u8; PATH_BYTES]) -> u64 {
    // By system calls alone: a signal handler may be here.
    // SAFETY: the name is a string.
    let file = unsafe {
        libc::syscall(
            libc::SYS_openat,
            libc::AT_FDCWD,
            c"/proc/self/maps".as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        )
    };
    if file < 0 {
        return site as u64;
    }
    let mut line = [0_u8; 512];
    let mut used = 0;
    let mut block = [0_u8; 1024];
    let found = 'search: loop {
        // SAFETY: a place for so many bytes.
        let count = unsafe { libc::syscall(libc::SYS_read, file, block.as_mut_ptr(), block.len()) };
        if count <= 0 {
            break None;
        }
        for &byte in &block[..count as usize] {
            if byte != b'\n' {
                if used < line.len() {
                    line[used] = byte;
                    used += 1;
                }
                continue;
            }
            if let Some(offset) = offset_in(&line[..used], site) {
                break 'search Some(offset);
            }
            used = 0;
        }
    };
    // SAFETY: opened above.
    unsafe { libc::syscall(libc::SYS_close, file) };
    let Some(offset) = found else {
        return site as u64;
    };
    let name = line[..used]
        .iter()
        .position(|byte| matches!(byte, b'/' | b'['));
    if let Some(start) = name {
        let name = &line[start..used];
        let name = &name[name.len().saturating_sub(PATH_BYTES)..];
        for (place, byte) in path.iter_mut().zip(name) {
            *place = *byte;
        }
    }
    offset
}

/// The offset in a mapping's file, if the address is in the mapping of this line (proc(5)).
fn offset_in(line: &[u8], address: usize) -> Option<u64> {
    let hex = |bytes: &[u8]| {
        bytes.iter().try_fold(0_u64, |sum, byte| {
            Some(sum << 4 | u64::from((*byte as char).to_digit(16)?))
        })
    };
    let mut words = line.split(|byte| *byte == b' ');
    let mut range = words.next()?.split(|byte| *byte == b'-');
    let (start, end) = (hex(range.next()?)?, hex(range.next()?)?);
    let offset = hex(words.nth(1)?)?;
    let address = address as u64;
    (start..end)
        .contains(&address)
        .then(|| address - start + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_computed_from_lines_of_proc_maps() {
        let line = b"7f00a000-7f00c000 r-xp 00001000 08:01 42    /usr/lib/x.so";
        assert_eq!(offset_in(line, 0x7f00_a010), Some(0x1010));
        assert_eq!(offset_in(line, 0x7f00_c000), None);
        assert_eq!(offset_in(b"", 1), None);
        assert_eq!(offset_in(b"nonsense here too", 1), None);
    }

    #[test]
    fn code_of_this_program_is_in_its_file() {
        let mut path = [0; PATH_BYTES];
        place(place as *const () as usize, &mut path);
        let name = String::from_utf8_lossy(&path);
        assert!(name.contains("dray_offload"), "{name}");
    }
}
