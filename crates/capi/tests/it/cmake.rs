//! A CMake project finds the library, shared and static, and its programs run.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::toolchain::{ROOT, prefix};

const PROJECT: &str = "
cmake_minimum_required(VERSION 3.16)
project(copies C CXX)
find_package(dray @VERSION@ REQUIRED)
find_package(Threads REQUIRED)
add_executable(shared main.c)
target_link_libraries(shared PRIVATE dray::dray)
add_executable(static main.c)
target_link_libraries(static PRIVATE dray::static Threads::Threads)
";

fn cmake(arguments: &[&str], directory: &Path) -> (bool, String) {
    let output = Command::new("cmake")
        .args(arguments)
        .current_dir(directory)
        .env("CMAKE_PREFIX_PATH", prefix())
        .output()
        .expect("cmake");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn a_project_finds_both_libraries_and_refuses_another_version() {
    if Command::new("cmake").arg("--version").output().is_err() {
        dray_skip::skip("there is no cmake");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let page = Path::new(ROOT).join("../../docs/commands/library.md");
    let page = fs::read_to_string(page).expect("the page");
    let (_, block) = page.split_once("\n```c\n").expect("an example");
    let (block, _) = block.split_once("\n```\n").expect("its end");
    fs::write(directory.join("main.c"), format!("{block}\n")).expect("a file");
    let project = |version: &str| {
        let text = PROJECT.replace("@VERSION@", version);
        fs::write(directory.join("CMakeLists.txt"), text).expect("a file");
        cmake(&["-S", ".", "-B", &format!("build-{version}")], directory)
    };
    let own = concat!(
        env!("CARGO_PKG_VERSION_MAJOR"),
        ".",
        env!("CARGO_PKG_VERSION_MINOR")
    );
    let (configured, said) = project(own);
    assert!(configured, "{said}");
    let build = format!("build-{own}");
    let (built, said) = cmake(&["--build", &build], directory);
    assert!(built, "{said}");
    for name in ["shared", "static"] {
        let run = Command::new(directory.join(&build).join(name)).output();
        let run = run.expect("a program");
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(
            run.status.success() && said.starts_with("status 1"),
            "{name}: {run:?}"
        );
    }
    let (configured, said) = project("9.0");
    assert!(!configured && said.contains("9.0"), "{said}");
}
