use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

const LIBRARY: &str = "libdray_tier_preload.so";

/// A directory like `/proc`.
struct Proc(TempDir);

impl Proc {
    fn new() -> Proc {
        Proc(tempfile::tempdir().expect("a directory"))
    }

    fn process(&self, pid: u32, parent: u32, exe: &str, loaded: bool) {
        let directory = self.0.path().join(pid.to_string());
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).expect("a directory");
        let stat = format!("{pid} (x y) S {parent} 1 1 0 -1 4 1 0 0 0 1 0 0 0 20 0 1 0 55 2\n");
        fs::write(directory.join("stat"), stat).expect("a file");
        let library = if loaded {
            "/tmp/1/libdray_tier_preload.so (deleted)"
        } else {
            "/lib/libc.so.6"
        };
        let maps = format!(
            "7f00-7f01 r-xp 0 08:01 7 {exe}\n7f02-7f03 r-xp 0 08:01 7 {library}\n7f04-7f05 rw-p 0 00:00 0 \n"
        );
        fs::write(directory.join("maps"), maps).expect("a file");
        symlink(exe, directory.join("exe")).expect("a link");
    }

    fn end(&self, pid: u32) {
        fs::remove_dir_all(self.0.path().join(pid.to_string())).expect("it is there");
    }

    fn looker(&self) -> Looker {
        Looker::new(self.0.path().to_owned(), 10, LIBRARY)
    }
}

/// This file is a program whose dynamic linker obeys LD_PRELOAD.
fn dynamic() -> String {
    std::env::current_exe()
        .expect("it has a path")
        .display()
        .to_string()
}

#[test]
fn processes_with_the_library_are_not_reported() {
    let proc = Proc::new();
    proc.process(11, 10, &dynamic(), true);
    let mut looker = proc.looker();
    assert_eq!(looker.look(), [""; 0]);
    assert_eq!(looker.look(), [""; 0]);
}

#[test]
fn a_process_without_the_library_is_reported_once() {
    let proc = Proc::new();
    proc.process(11, 10, &dynamic(), true);
    proc.process(12, 11, &dynamic(), false);
    // None of ours.
    proc.process(13, 1, &dynamic(), false);
    let mut looker = proc.looker();
    assert_eq!(looker.look(), [""; 0]);
    let text = format!(
        "{} was started without dray's LD_PRELOAD: it is not tiered",
        dynamic()
    );
    assert_eq!(looker.look(), [text]);
    assert_eq!(looker.look(), [""; 0]);
    // Another process with the same program.
    proc.process(14, 11, &dynamic(), false);
    assert_eq!(looker.look(), [""; 0]);
    assert_eq!(looker.look(), [""; 0]);
}

#[test]
fn a_process_is_checked_again_after_exec() {
    let proc = Proc::new();
    proc.process(11, 10, &dynamic(), true);
    let mut looker = proc.looker();
    looker.look();
    looker.look();
    let dir = tempfile::tempdir().expect("a directory");
    let copy = dir.path().join("copy");
    fs::copy(dynamic(), &copy).expect("a copy");
    proc.process(11, 10, copy.to_str().expect("plain"), false);
    assert_eq!(looker.look(), [""; 0]);
    let found = looker.look();
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with(copy.to_str().expect("plain")),
        "{found:?}"
    );
}

#[test]
fn children_of_orphaned_processes_are_checked() {
    let proc = Proc::new();
    proc.process(11, 10, &dynamic(), true);
    proc.process(12, 11, &dynamic(), true);
    let mut looker = proc.looker();
    looker.look();
    proc.end(11);
    proc.process(12, 1, &dynamic(), true);
    looker.look();
    proc.process(15, 12, &dynamic(), false);
    looker.look();
    assert_eq!(looker.look().len(), 1);
}
