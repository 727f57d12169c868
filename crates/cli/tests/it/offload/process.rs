//! What a program does that the threads of the virtual device could hinder.

use std::fs;
use std::process::Command;

use super::{by, compiled};
use crate::common::{directory, dray};

#[test]
fn calls_of_a_constructor_of_a_loaded_library_end() {
    let dir = directory();
    let library = dir.path().join("constructor.so");
    let source = dir.path().join("constructor.c");
    let constructor = "#include <string.h>
        static char all[1 << 20];
        __attribute__((constructor)) static void fill(void) { memset(all, 1, sizeof all); }";
    fs::write(&source, constructor).expect("a file");
    let built = Command::new("cc")
        .args(["-O1", "-fno-builtin", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    assert!(built.expect("a compiler").success());
    fs::write(
        dir.path().join("load.py"),
        "import ctypes\nctypes.CDLL('./constructor.so')\n",
    )
    .expect("a file");
    // The threads of the device begin meanwhile, in whatever order.
    for _ in 0..20 {
        let way = "offload --mover virtual --deadline 20 --quiet -- python3 load.py";
        dray(dir.path(), way).assert().success();
    }
}

#[test]
fn a_program_may_leave_its_user_namespace() {
    let dir = directory();
    let program = compiled(&dir, "namespace", &[]);
    let way = format!(
        "offload --mover virtual --stats-file s.json --min-bytes 64k -- {}",
        program.display()
    );
    let found = dray(dir.path(), &way).output().expect("it runs");
    let plain = Command::new(&program).output().expect("it runs");
    assert_eq!(found.status.code(), plain.status.code());
    assert_eq!(found.stdout, plain.stdout);
    let stats = fs::read_to_string(dir.path().join("s.json")).expect("statistics");
    let stats = serde_json::from_str(&stats).expect("JSON");
    let expected = match plain.stdout.as_slice() {
        b"in another\n" => 1 << 20,
        // The kernel lets no one.
        _ => 2 << 20,
    };
    assert_eq!(
        by(&stats, "virtual"),
        expected,
        "the device ends with the call"
    );
}
