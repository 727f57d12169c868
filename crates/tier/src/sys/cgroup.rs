//! The memory limit of this process's control group, version 2 or 1.

use std::fs;
use std::path::{Path, PathBuf};

/// Where control groups are mounted.
pub const ROOT: &str = "/sys/fs/cgroup";

/// The groups of a process that have a limit, itself and those around it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cgroup {
    limits: Vec<Limit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Limit {
    directory: PathBuf,
    bytes: u64,
    /// Names of the files: what is used, and of the lines of `memory.stat` that count files.
    usage: &'static str,
    files: [&'static str; 2],
}

impl Cgroup {
    /// This process's.
    pub fn own() -> Cgroup {
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Cgroup::of(Path::new(ROOT), &text)
    }

    /// From the text of `/proc/PID/cgroup`.
    fn of(root: &Path, text: &str) -> Cgroup {
        let mut limits = Vec::new();
        for line in text.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            let first = controllers.split(',').any(|name| name == "memory");
            let (root, file, usage, files) = match controllers {
                "" => (
                    root.to_owned(),
                    "memory.max",
                    "memory.current",
                    ["inactive_file", "active_file"],
                ),
                _ if first => (
                    root.join("memory"),
                    "memory.limit_in_bytes",
                    "memory.usage_in_bytes",
                    ["total_inactive_file", "total_active_file"],
                ),
                _ => continue,
            };
            // In a namespace of groups the path may be outside of what is mounted.
            let own = root.join(path.trim_start_matches('/'));
            let around = own.ancestors().take_while(|path| path.starts_with(&root));
            for directory in around {
                // Without a limit it says "max", or version 1 a number that nothing has.
                if let Some(bytes) = number(&directory.join(file)).filter(|bytes| *bytes < 1 << 60)
                {
                    limits.push(Limit {
                        directory: directory.to_owned(),
                        bytes,
                        usage,
                        files,
                    });
                }
            }
        }
        Cgroup { limits }
    }

    /// The least of the limits.
    pub fn limit(&self) -> Option<u64> {
        self.limits.iter().map(|limit| limit.bytes).min()
    }

    /// Bytes that can still be used without anything being swapped or killed: what files hold can be
    /// dropped. Without a limit there is none.
    pub fn room(&self) -> Option<u64> {
        self.limits.iter().filter_map(Limit::room).min()
    }
}

impl Limit {
    fn room(&self) -> Option<u64> {
        let used = number(&self.directory.join(self.usage))?;
        let text = fs::read_to_string(self.directory.join("memory.stat")).unwrap_or_default();
        let files = text.lines().filter_map(|line| {
            let (name, bytes) = line.split_once(' ')?;
            self.files
                .contains(&name)
                .then(|| bytes.parse::<u64>().ok())?
        });
        let files: u64 = files.sum();
        Some(self.bytes.saturating_sub(used.saturating_sub(files)))
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    #[test]
    fn the_lowest_limit_of_a_group_and_its_parents_applies() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        put(root, "a/memory.max", "1000000\n");
        put(root, "a/memory.current", "900000\n");
        put(
            root,
            "a/memory.stat",
            "anon 5\ninactive_file 300000\nactive_file 100000\n",
        );
        put(root, "a/b/memory.max", "max\n");
        put(root, "a/b/memory.current", "900000\n");
        let group = Cgroup::of(root, "0::/a/b\n");
        assert_eq!(group.limit(), Some(1_000_000));
        assert_eq!(group.room(), Some(500_000));
        put(root, "a/b/memory.max", "950000\n");
        let group = Cgroup::of(root, "0::/a/b\n");
        assert_eq!(group.limit(), Some(950_000));
        assert_eq!(group.room(), Some(50_000));
        assert_eq!(
            Cgroup::of(root, "0::/elsewhere\nnonsense\n"),
            Cgroup::default()
        );
    }

    #[test]
    fn limits_of_version_1_groups_are_read() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        put(root, "memory/memory.limit_in_bytes", "9223372036854771712");
        put(root, "memory/x/memory.limit_in_bytes", "4096000");
        put(root, "memory/x/memory.usage_in_bytes", "4000000");
        put(root, "memory/x/memory.stat", "total_active_file 1000\n");
        let group = Cgroup::of(root, "5:cpu:/y\n4:memory,hugetlb:/x\n");
        assert_eq!(group.limit(), Some(4_096_000));
        assert_eq!(group.room(), Some(97_000));
    }
}
