//! `/proc/PID/maps`: the mappings of a process, and which of them hold private anonymous memory.

use std::fs::File;
use std::io::{self, Read};

/// One line of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// First byte.
    pub start: u64,
    /// Behind the last.
    pub end: u64,
    /// As `rw-p`.
    pub permissions: [u8; 4],
    /// Of the file; 0 if there is none.
    pub inode: u64,
    /// Of the file, or as `[heap]`.
    pub name: &'a str,
}

impl Mapping<'_> {
    /// Private, readable and writable memory without a file, other than the first stack.
    pub fn is_private_anonymous(&self) -> bool {
        let named =
            self.name.is_empty() || self.name == "[heap]" || self.name.starts_with("[anon:");
        self.permissions == *b"rw-p" && self.inode == 0 && named
    }
}

/// Memory that the kernel can migrate, with whether its pages may be shared with strangers (those of a file that is
/// mapped privately, as libraries are): all but devices and what the kernel maps itself.
pub fn migratable(text: &str) -> Vec<(u64, u64, bool)> {
    let found = text.lines().filter_map(parse).filter(|mapping| {
        let name = mapping.name;
        let device = name.starts_with("/dev/") && !name.starts_with("/dev/shm/");
        let device =
            device && !name.starts_with("/dev/zero") && !name.starts_with("/dev/hugepages/");
        !device && !name.starts_with("[v") && mapping.start < mapping.end
    });
    found
        .map(|mapping| {
            let library = mapping.inode != 0 && mapping.permissions[3] == b'p';
            (mapping.start, mapping.end, library)
        })
        .collect()
}

/// A line; `None` if it is none.
pub fn parse(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?.as_bytes().try_into().ok()?;
    let (_offset, _device) = (fields.next()?, fields.next()?);
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        permissions,
        inode: fields.next()?.parse().ok()?,
        name: fields.next().unwrap_or("").trim(),
    })
}

/// Reads the file as a whole into `text`, which keeps its memory.
///
/// # Errors
/// What reading it gives.
pub fn read(path: &str, text: &mut Vec<u8>) -> io::Result<()> {
    text.clear();
    File::open(path)?.read_to_end(text)?;
    Ok(())
}

/// Ranges of private anonymous memory in the text of the file, but for the zeroed data behind those
/// shared objects that run while pages are moved: the C library's and dray's own.
pub fn anonymous(text: &str) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut library_end = 0;
    for mapping in text.lines().filter_map(parse) {
        if mapping.is_private_anonymous() && mapping.start != library_end {
            found.push((mapping.start, mapping.end));
        }
        library_end = match runs_while_pages_move(mapping.name) {
            true => mapping.end,
            false => 0,
        };
    }
    found
}

fn runs_while_pages_move(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or("");
    let names = [
        "ld-",
        "ld.so",
        "libc.",
        "libc-",
        "libgcc_s",
        "libpthread",
        "libdl",
        "libm.",
        "libdray",
        ".dray-portal",
    ];
    path.starts_with('/') && names.iter().any(|name| file.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
00400000-00401000 r-xp 00000000 08:01 77 /bin/program
00401000-00402000 rw-p 00001000 08:01 77 /bin/program
00402000-00500000 rw-p 00000000 00:00 0 
01000000-01021000 rw-p 00000000 00:00 0                                  [heap]
7f0000000000-7f0000100000 rw-p 00000000 00:00 0 
7f0000100000-7f0000200000 rw-s 00000000 00:01 5 /dev/zero (deleted)
7f0000300000-7f0000301000 rw-p 00002000 08:01 99 /lib/libc.so.6
7f0000301000-7f0000305000 rw-p 00000000 00:00 0 
7f0000305000-7f0000306000 ---p 00000000 00:00 0 
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
not a line
";

    #[test]
    fn devices_and_the_kernels_own_mappings_are_not_migratable() {
        let text = "\
00400000-00401000 r-xp 00000000 08:01 77 /bin/program
7f0000100000-7f0000200000 rw-s 00000000 00:01 5 /dev/zero (deleted)
7f0000200000-7f0000300000 rw-s 00000000 00:01 6 /dev/shm/cache
7f0000300000-7f0000400000 rw-s 00000000 00:01 7 /dev/dri/card0
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
7ffc00030000-7ffc00034000 r--p 00000000 00:00 0                          [vvar]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";
        let found = migratable(text);
        assert_eq!(
            found,
            [
                (0x40_0000, 0x40_1000, true),
                (0x7f00_0010_0000, 0x7f00_0020_0000, false),
                (0x7f00_0020_0000, 0x7f00_0030_0000, false),
                (0x7ffc_0000_0000, 0x7ffc_0002_1000, false),
            ]
        );
    }

    #[test]
    fn anonymous_ranges_exclude_memory_of_libraries() {
        let found = anonymous(TEXT);
        assert_eq!(
            found,
            [
                (0x40_2000, 0x50_0000),
                (0x100_0000, 0x102_1000),
                (0x7f00_0000_0000, 0x7f00_0010_0000),
            ]
        );
    }
}
