//! Which processes are tiered: a process and all that descend from it, or those of a control group.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::sys::processes;

/// Groups below a group that are looked into at most.
const GROUPS: usize = 4096;

/// The processes of a session.
#[derive(Debug)]
pub enum Members {
    /// Those that descend from a process, and that itself.
    Tree(Tree),
    /// Those of a control group and of the groups below it.
    Group(PathBuf),
}

/// A process and those that descend from it.
#[derive(Debug)]
pub struct Tree {
    proc: PathBuf,
    root: u32,
    root_ended: bool,
    /// This command: it is no member of its own session.
    not: u32,
    /// Members that lived when they were last looked for: they are members, too, once their parents have ended.
    known: BTreeSet<u32>,
}

impl Members {
    /// All that descend from this process. For those whose parents end it is to be their subreaper.
    pub fn own() -> Members {
        Members::tree(PathBuf::from("/proc"), std::process::id())
    }

    /// A process and all that descend from it.
    pub fn of(pid: u32) -> Members {
        Members::tree(PathBuf::from("/proc"), pid)
    }

    fn tree(proc: PathBuf, root: u32) -> Members {
        Members::Tree(Tree {
            proc,
            root,
            root_ended: false,
            not: std::process::id(),
            known: BTreeSet::new(),
        })
    }

    /// Those of a control group: its directory, or its path below `root`, where groups are mounted.
    ///
    /// # Errors
    /// It is none, or may not be read.
    pub fn group(root: &Path, path: &Path) -> io::Result<Members> {
        let below = path.strip_prefix("/").unwrap_or(path);
        let directory = match path.join("cgroup.procs").exists() {
            true => path.to_owned(),
            false => root.join(below),
        };
        fs::read_to_string(directory.join("cgroup.procs"))?;
        Ok(Members::Group(directory))
    }

    /// Whether the session ends with the last of them: one command's own ends with its program, and a group's with the
    /// group.
    pub(super) fn end_with_the_last(&self) -> bool {
        matches!(self, Members::Tree(tree) if tree.root != tree.not)
    }

    /// Whether it is a group of version 1: its processes are found the same way.
    pub fn is_version_1(&self) -> bool {
        match self {
            Members::Tree(_) => false,
            Members::Group(directory) => !directory.join("cgroup.controllers").exists(),
        }
    }

    /// Their numbers, in order; nothing once the group is gone. `living` are members that were known and have not ended.
    ///
    /// # Errors
    /// The group cannot be read.
    pub(super) fn list(&mut self, living: &BTreeSet<u32>) -> io::Result<Option<BTreeSet<u32>>> {
        match self {
            Members::Tree(tree) => Ok(Some(tree.list(living))),
            Members::Group(directory) => group_members(directory),
        }
    }
}

impl Tree {
    fn list(&mut self, living: &BTreeSet<u32>) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        let mut parents: Vec<u32> = self.known.intersection(living).copied().collect();
        // Its number may be another's once it has ended.
        self.root_ended |= self.known.contains(&self.root) && !living.contains(&self.root);
        if !self.root_ended {
            parents.push(self.root);
        }
        // Without CONFIG_PROC_CHILDREN all processes are looked at.
        let own = self.proc.join("self/task");
        let listed = fs::read_dir(own).is_ok_and(|mut tasks| {
            tasks.any(|task| task.is_ok_and(|task| task.path().join("children").exists()))
        });
        if listed {
            while let Some(parent) = parents.pop() {
                if found.insert(parent) {
                    self.children(parent, &mut parents);
                }
            }
        } else {
            let all = processes::all(&self.proc);
            found.extend(processes::descendants(&all, &parents).iter().map(|p| p.pid));
            found.extend(parents);
        }
        found.remove(&self.not);
        self.known.clone_from(&found);
        found
    }

    fn children(&self, parent: u32, into: &mut Vec<u32>) {
        let tasks = self.proc.join(parent.to_string()).join("task");
        // It may have ended.
        for task in fs::read_dir(tasks).into_iter().flatten().flatten() {
            let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            into.extend(
                text.split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
    }
}

fn group_members(directory: &Path) -> io::Result<Option<BTreeSet<u32>>> {
    let mut found = BTreeSet::new();
    let mut groups = vec![directory.to_owned()];
    let mut looked = 0;
    while let Some(group) = groups.pop() {
        looked += 1;
        match fs::read_to_string(group.join("cgroup.procs")) {
            // Processes outside of this namespace of processes have the number 0.
            Ok(text) => {
                let pids = text.lines().filter_map(|line| line.parse::<u32>().ok());
                found.extend(pids.filter(|pid| *pid != 0 && *pid != std::process::id()));
            }
            Err(error) if is_gone(&error) => match group == directory {
                true => return Ok(None),
                false => continue,
            },
            // A threaded group has no processes of its own: they are those of the group around it.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) && group != directory => {}
            Err(error) => return Err(error),
        }
        let below = fs::read_dir(&group).into_iter().flatten().flatten();
        let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        groups.extend(below.map(|entry| entry.path()));
        if looked + groups.len() > GROUPS {
            return Err(io::Error::other(format!(
                "more than {GROUPS} groups below it"
            )));
        }
    }
    Ok(Some(found))
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    fn listed(members: &mut Members, living: &[u32]) -> Vec<u32> {
        let living = living.iter().copied().collect();
        let found = members.list(&living).expect("it can be read");
        found.expect("it is there").into_iter().collect()
    }

    #[test]
    fn processes_of_a_group_and_those_below_are_members_until_it_is_gone() {
        let root = tempfile::tempdir().expect("a directory");
        let own = std::process::id();
        put(root.path(), "a/cgroup.procs", &format!("12\n0\n{own}\n"));
        put(root.path(), "a/cgroup.controllers", "memory\n");
        put(root.path(), "a/b/cgroup.procs", "30\n12\n");
        put(root.path(), "a/memory.max", "max\n");
        for path in ["a", "/a"] {
            let mut members = Members::group(root.path(), Path::new(path)).expect("it is a group");
            assert_eq!(listed(&mut members, &[]), [12, 30]);
            assert!(!members.is_version_1());
        }
        let path = root.path().join("a");
        let mut members = Members::group(Path::new("/none"), &path).expect("it is a group");
        fs::remove_file(path.join("cgroup.controllers")).expect("it is there");
        assert!(members.is_version_1());
        fs::remove_dir_all(&path).expect("it is there");
        assert!(
            members
                .list(&BTreeSet::new())
                .expect("that is no error")
                .is_none()
        );
        assert!(Members::group(root.path(), Path::new("none")).is_err());
    }

    #[test]
    fn descendants_stay_members_when_their_parents_end() {
        let root = tempfile::tempdir().expect("a directory");
        put(root.path(), "self/task/1/children", "");
        put(root.path(), "10/task/10/children", "11 ");
        // A thread has children, too.
        put(root.path(), "10/task/15/children", "12 ");
        put(root.path(), "12/task/12/children", "13 14 ");
        let mut members = Members::tree(root.path().to_owned(), 10);
        assert_eq!(listed(&mut members, &[]), [10, 11, 12, 13, 14]);
        fs::remove_dir_all(root.path().join("12")).expect("it is there");
        put(root.path(), "10/task/15/children", "");
        assert_eq!(listed(&mut members, &[10, 11, 13, 14]), [10, 11, 13, 14]);
        assert_eq!(listed(&mut members, &[10, 11, 14]), [10, 11, 14]);
        // The first one ends, and another process has its number.
        assert_eq!(listed(&mut members, &[14]), [14]);
    }

    #[test]
    fn this_process_finds_its_children_and_not_itself() {
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .expect("sleep");
        let mut members = Members::own();
        let found = listed(&mut members, &[]);
        assert!(found.contains(&child.id()), "{found:?}");
        assert!(!found.contains(&std::process::id()));
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }
}
