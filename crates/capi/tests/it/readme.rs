//! The library's examples on the page of the library: compiled as they stand there, and run.

use std::path::Path;

use crate::toolchain::{C, CPP, ROOT, compile};

/// The one block of this language on the page.
fn example(language: &str) -> String {
    let text = std::fs::read_to_string(Path::new(ROOT).join("../../docs/commands/library.md"))
        .expect("the page");
    let fence = format!("\n```{language}\n");
    let blocks: Vec<&str> = text.split(&fence).skip(1).collect();
    assert_eq!(blocks.len(), 1, "the page has one example in {language}");
    let (block, _) = blocks[0].split_once("\n```\n").expect("a fence ends it");
    format!("{block}\n")
}

/// Compiles the page's example on either library, and runs it.
fn runs(compiler: &[&str], language: &str, file: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join(file);
    std::fs::write(&source, example(language)).expect("a file");
    for shared in [true, false] {
        let out = compile(compiler, &source, shared).run(&[]);
        let executors = ["0", "2"].map(|executor| format!("status 1 by executor {executor}\n"));
        assert!(executors.contains(&out), "{out}");
    }
}

#[test]
fn the_c_example_of_readme_runs() {
    runs(&["cc", "-std=c11", "-pedantic"], "c", "readme.c");
    runs(C, "c", "readme.c");
}

#[test]
fn the_cpp_example_of_readme_runs() {
    runs(&["c++", "-std=c++17", "-pedantic"], "cpp", "readme.cpp");
    runs(CPP, "cpp", "readme.cpp");
}

/// The block that `cargo test --doc` compiles and runs is there (see `readme` in `src/lib.rs`).
#[test]
fn the_rust_example_of_readme_exists() {
    let block = example("rust");
    assert!(block.contains("fn main()"), "{block}");
    assert!(block.contains("assert_eq!("), "{block}");
}
