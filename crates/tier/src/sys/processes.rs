//! `/proc`: which processes descend from one, and what they execute.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A process; numbers are used again, a number and a start are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Its number.
    pub pid: u32,
    /// When it started, in ticks since the machine did.
    pub start: u64,
}

/// A line of `/proc/PID/stat`: the process and its parent. `None` if it is none, or the process has ended.
pub fn parse(line: &str) -> Option<(Identity, u32)> {
    let pid = line.split(' ').next()?.parse().ok()?;
    // The name may have parentheses and spaces of its own.
    let (_, rest) = line.rsplit_once(") ")?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some((Identity { pid, start }, parent))
}

/// All processes and their parents, in `proc`.
pub fn all(proc: &Path) -> Vec<(Identity, u32)> {
    let Ok(entries) = fs::read_dir(proc) else {
        return Vec::new();
    };
    let read = |name: &str| {
        name.parse::<u32>().ok()?;
        parse(&fs::read_to_string(proc.join(name).join("stat")).ok()?)
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| read(name.to_str()?)).collect()
}

/// Those of `all` that descend from one of `roots`, which are not among them unless they do so themselves.
pub fn descendants(all: &[(Identity, u32)], roots: &[u32]) -> Vec<Identity> {
    let mut children: HashMap<u32, Vec<Identity>> = HashMap::new();
    for (process, parent) in all {
        children.entry(*parent).or_default().push(*process);
    }
    let mut found = Vec::new();
    let mut parents = roots.to_vec();
    while let Some(parent) = parents.pop() {
        // Taken out, so that each is looked at once.
        for child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// The file that a process executes; `None` if it has ended or may not be looked at.
pub fn executable(proc: &Path, pid: u32) -> Option<PathBuf> {
    fs::read_link(proc.join(pid.to_string()).join("exe")).ok()
}

/// The name that a process gives itself, which everybody may read.
pub fn name(proc: &Path, pid: u32) -> Option<String> {
    let name = fs::read_to_string(proc.join(pid.to_string()).join("comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Filters that are in force for a process (seccomp(2)).
pub fn filters(pid: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp_filters:"));
    line.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_are_parsed_with_any_process_name() {
        let rest = "S 7 1 1 0 -1 4194560 1 0 0 0 1 0 0 0 20 0 1 0 4711 2 3";
        let read = (
            Identity {
                pid: 12,
                start: 4711,
            },
            7,
        );
        assert_eq!(parse(&format!("12 (sh) {rest}")), Some(read));
        assert_eq!(parse(&format!("12 (a) S 1 ) {rest}")), Some(read));
        let zombie = rest.replace('S', "Z");
        assert_eq!(parse(&format!("12 (sh) {zombie}")), None);
        for broken in [
            "",
            "12",
            "12 (sh",
            "12 (sh) S",
            "x (sh) S 7 1",
            "12 (sh) S 7 1 1",
        ] {
            assert_eq!(parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn descendants_are_found_through_other_processes() {
        let process = |pid, parent| (Identity { pid, start: 1 }, parent);
        // One that is its own parent ends no search, and has none.
        let all = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 9), (9, 9)]
            .map(|(pid, parent)| process(pid, parent));
        let pids = |roots: &[u32]| {
            let mut found: Vec<u32> = descendants(&all, roots).iter().map(|p| p.pid).collect();
            found.sort_unstable();
            found
        };
        assert_eq!(pids(&[2]), [3, 4]);
        assert_eq!(pids(&[1]), [2, 3, 4, 5]);
        assert_eq!(pids(&[9, 3]), [4, 6, 9]);
        assert_eq!(pids(&[77]), [0; 0]);
    }

    #[test]
    fn this_process_is_found() {
        let proc = Path::new("/proc");
        let own = std::process::id();
        let all = all(proc);
        assert!(all.iter().any(|(process, _)| process.pid == own));
        assert_eq!(executable(proc, own), std::env::current_exe().ok());
        assert!(name(proc, own).is_some());
        assert_eq!(name(proc, 1 << 30), None);
    }
}
