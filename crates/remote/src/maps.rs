//! What a process may do where: `/proc/PID/maps`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use dray_device::Access;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    start: u64,
    end: u64,
    readable: bool,
    writable: bool,
}

/// Areas of an address space, as they were when they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Maps {
    /// In order of addresses; neighbours with the same permissions are one.
    areas: Vec<Area>,
}

impl Maps {
    /// Reads `/proc/PID/maps`, which is empty once the address space is gone.
    pub(crate) fn read(file: &File) -> io::Result<Maps> {
        let mut text = Vec::new();
        let mut buffer = [0; 16 << 10];
        loop {
            match file.read_at(&mut buffer, text.len() as u64) {
                Ok(0) => return Ok(Maps::parse(&text)),
                Ok(n) => text.extend_from_slice(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn parse(text: &[u8]) -> Maps {
        let mut maps = Maps::default();
        for area in text.split(|byte| *byte == b'\n').filter_map(area) {
            match maps.areas.last_mut() {
                Some(last) if last.end == area.start && last.permits_as(&area) => {
                    last.end = area.end;
                }
                _ => maps.areas.push(area),
            }
        }
        maps
    }

    /// Bytes from `addr` on, at most `len`, that the permissions let through.
    pub(crate) fn permitted(&self, addr: u64, len: u64, access: Access) -> u64 {
        let end = addr.saturating_add(len);
        let first = self.areas.partition_point(|area| area.end <= addr);
        let mut reached = addr;
        for area in &self.areas[first..] {
            if reached >= end || area.start > reached || !area.permits(access) {
                break;
            }
            reached = area.end;
        }
        reached.min(end) - addr
    }
}

impl Area {
    fn permits(&self, access: Access) -> bool {
        match access {
            Access::Read => self.readable,
            Access::Write => self.writable,
        }
    }

    fn permits_as(&self, other: &Area) -> bool {
        (self.readable, self.writable) == (other.readable, other.writable)
    }
}

/// `start-end rwxp ...`, in hexadecimal digits (proc_pid_maps(5)).
fn area(line: &[u8]) -> Option<Area> {
    let line = str::from_utf8(line.get(..line.len().min(40))?).ok()?;
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let permissions = rest.as_bytes();
    Some(Area {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        readable: *permissions.first()? == b'r',
        writable: *permissions.get(1)? == b'w',
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_end_at_holes_and_at_other_permissions() {
        let text = "\
00001000-00003000 r--p 00000000 08:01 17                      /bin/with a space\n\
00003000-00004000 rw-p 00002000 08:01 17                      /bin/with a space\n\
00004000-00005000 rw-s 00000000 00:01 9 \n\
00005000-00006000 ---p 00000000 00:00 0 \n\
00008000-00009000 -w-p 00000000 00:00 0 \n\
not a line\n\
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";
        let maps = Maps::parse(text.as_bytes());
        assert_eq!(maps.areas.len(), 5);
        for (addr, len, reads, writes) in [
            (0xfff, 1, 0, 0),
            (0x1000, 0x10, 0x10, 0),
            (0x2fff, 0x9000, 0x2001, 0),
            (0x3800, 0x9000, 0x1800, 0x1800),
            (0x5000, 1, 0, 0),
            (0x8000, 0x1001, 0, 0x1000),
            (0xffff_ffff_ff60_0000, 8, 0, 0),
            (u64::MAX, u64::MAX, 0, 0),
        ] {
            let permitted = |access| maps.permitted(addr, len, access);
            assert_eq!(permitted(Access::Read), reads, "{addr:#x}");
            assert_eq!(permitted(Access::Write), writes, "{addr:#x}");
        }
    }

    #[test]
    fn the_maps_of_this_process_have_its_stack_and_code() {
        let file = File::open("/proc/self/maps").expect("proc");
        let maps = Maps::read(&file).expect("text");
        let local = [0_u8; 64];
        let addr = local.as_ptr().expose_provenance() as u64;
        assert_eq!(maps.permitted(addr, 64, Access::Write), 64);
        let code = the_maps_of_this_process_have_its_stack_and_code as fn();
        assert_eq!(maps.permitted(code as usize as u64, 1, Access::Read), 1);
        assert_eq!(maps.permitted(code as usize as u64, 1, Access::Write), 0);
    }
}
