//! The agent's rights: it gives all of them up before the program begins.
//!
//! It has the program's memory, and so whoever takes the program over has the agent. What the program drops later, the agent
//! must not have kept. It is no user of this machine either: another process of the same user could trace it, and the memory
//! with it.

use std::fs;

const SETGID: u32 = 6;
const SETUID: u32 = 7;
/// Up to this many numbers a namespace has users of its own in all of them but those that systemd hands out.
const SMALL: u32 = 1 << 17;

/// Gives up users, groups and capabilities; whether nothing is left that could be given up.
pub fn give_up() -> bool {
    // SAFETY: it asks alone.
    let dumpable = unsafe { libc::prctl(libc::PR_GET_DUMPABLE) };
    let held = capabilities();
    if held >> SETUID & 1 == 1
        && let Some(user) = unused("/proc/self/uid_map")
    {
        if held >> SETGID & 1 == 1
            && let Some(group) = unused("/proc/self/gid_map")
        {
            let none = std::ptr::null::<u32>();
            // By system calls: the C library would have all threads of the program do so.
            // SAFETY: it changes this process alone.
            unsafe { libc::syscall(libc::SYS_setgroups, 0, none) };
            // SAFETY: as above.
            unsafe { libc::syscall(libc::SYS_setresgid, group, group, group) };
        }
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) };
    }
    // SAFETY: as above.
    unsafe {
        libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL,
            0,
            0,
            0,
        )
    };
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // _LINUX_CAPABILITY_VERSION_3, this process; effective, permitted, inheritable, twice.
    let (header, none) = ([0x2008_0522u32, 0], [0u32; 6]);
    // SAFETY: both are as large as the version says.
    unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    // A change of user makes the memory, which is the program's, one that dumps no core.
    if dumpable == 1 {
        // SAFETY: as it was before.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) };
    }
    capabilities() == 0
}

/// Permitted capabilities of this process.
fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    let value = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    // What cannot be read is not known to be nothing.
    value.unwrap_or(u64::MAX)
}

/// A user or group that nobody is, by the map of this namespace.
fn unused(map: &str) -> Option<u32> {
    choose(&fs::read_to_string(map).ok()?, std::process::id())
}

/// In the upper half of a large range of numbers, or below those that small ones end with. `None` if there is no other number
/// than the process's own.
fn choose(map: &str, salt: u32) -> Option<u32> {
    let ranges = map.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().map(str::parse::<u32>);
        let (first, _outside, count) = (fields.next()?, fields.next()?, fields.next()?);
        Some((first.ok()?, count.ok()?))
    });
    let (first, count) = ranges.max_by_key(|(_, count)| *count)?;
    match count {
        0 | 1 => None,
        2..=4095 => Some(first + count - 1),
        4096..SMALL => Some(first + count - 4096 + salt % 2048),
        _ => Some(first + count / 2 + salt % (count / 4)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_a_user_that_nobody_is() {
        let whole = "         0          0 4294967295\n";
        assert_eq!(choose(whole, 5), Some(2_147_483_647 + 5));
        assert_eq!(choose("0 100000 65536\n", 3), Some(61_443));
        assert_eq!(choose("0 1000 1\n1 100000 65536\n", 0), Some(61_441));
        assert_eq!(choose("0 1000 1\n", 3), None);
        assert_eq!(choose("", 3), None);
    }
}
