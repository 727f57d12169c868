//! Where `cargo xtask install` puts the library, and what it leaves alone.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::{Library, install};

use crate::toolchain::{ROOT, archive};

fn library(prefix: &Path) -> Library {
    Library {
        archive: archive(),
        headers: Path::new(ROOT).join("include"),
        prefix: prefix.to_path_buf(),
        destdir: None,
        libdir: "lib".into(),
        version: "0.1.0".into(),
    }
}

/// All files below a directory, by their paths in it.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_path_buf()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).expect("a directory") {
            let entry = entry.expect("an entry");
            match entry.file_type().expect("a kind").is_dir() {
                true => left.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    let below = |path: PathBuf| path.strip_prefix(directory).expect("below").to_path_buf();
    let mut found: Vec<PathBuf> = found.into_iter().map(below).collect();
    found.sort();
    found
}

const INSTALLED: [&str; 8] = [
    "include/dray.h",
    "include/dray.hpp",
    "include/dray_types.hpp",
    "lib/libdray.a",
    "lib/libdray.so",
    "lib/libdray.so.1",
    "lib/libdray.so.1.0.1.0",
    "lib/pkgconfig/dray.pc",
];

fn is_refused(library: &Library, text: &str) {
    let error = format!("{:#}", install(library).expect_err("it is refused"));
    assert!(error.contains(text), "{error}");
}

#[test]
fn a_package_is_put_below_destdir_and_used_at_its_prefix() {
    let destdir = tempfile::tempdir().expect("a directory");
    let made = install(&Library {
        destdir: Some(destdir.path().to_path_buf()),
        libdir: "lib/x86_64-linux-gnu".into(),
        ..library(Path::new("/opt/dray"))
    });
    let root = destdir.path().join("opt/dray");
    let expected = INSTALLED.map(|file| match file.strip_prefix("lib/") {
        Some(file) => Path::new("lib/x86_64-linux-gnu").join(file),
        None => PathBuf::from(file),
    });
    assert_eq!(files(&root), expected);
    let mut made = made.expect("it can be installed");
    made.sort();
    assert_eq!(made, expected.map(|file| root.join(file)));
    let pkg_config = |arguments: &[&str]| {
        let output = Command::new("pkg-config")
            .args(arguments)
            .arg("dray")
            .env(
                "PKG_CONFIG_PATH",
                root.join("lib/x86_64-linux-gnu/pkgconfig"),
            )
            .output()
            .expect("pkg-config");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_eq!(pkg_config(&["--cflags"]), "-I/opt/dray/include");
    let libs = pkg_config(&["--libs"]);
    assert_eq!(libs, "-L/opt/dray/lib/x86_64-linux-gnu -ldray");
}

#[test]
fn an_installation_is_replaced_and_programs_that_use_it_go_on() {
    let prefix = tempfile::tempdir().expect("a directory");
    install(&library(prefix.path())).expect("it can be installed");
    let shared = prefix.path().join("lib/libdray.so.1.0.1.0");
    let header = prefix.path().join("include/dray.h");
    // As a program has it that runs.
    let open = fs::File::open(&shared).expect("the library");
    let before = open.metadata().expect("a file");
    fs::write(&header, "of an earlier version").expect("a header");
    install(&library(prefix.path())).expect("it can be installed again");
    assert_eq!(files(prefix.path()), INSTALLED.map(PathBuf::from));
    let of_source = fs::read(Path::new(ROOT).join("include/dray.h")).expect("a header");
    assert!(fs::read(&header).expect("a header") == of_source);
    // Another file, not the same with other bytes.
    let after = shared.metadata().expect("a file");
    assert_ne!(after.ino(), before.ino());
    assert_eq!(open.metadata().expect("a file").size(), before.size());
}

#[test]
fn a_prefix_that_is_a_file_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "text").expect("a file");
    is_refused(&library(&file), "is no directory");
    assert_eq!(fs::read(&file).expect("a file"), b"text");
}

#[test]
fn what_is_no_regular_file_is_not_replaced() {
    let elsewhere = tempfile::tempdir().expect("a directory");
    let victim = elsewhere.path().join("victim");
    fs::write(&victim, "text").expect("a file");
    for file in INSTALLED {
        let prefix = tempfile::tempdir().expect("a directory");
        let place = prefix.path().join(file);
        fs::create_dir_all(place.parent().expect("below")).expect("a directory");
        fs::create_dir(&place).expect("a directory");
        is_refused(&library(prefix.path()), file);
        // Nothing was installed beside it.
        assert_eq!(files(prefix.path()), Vec::<PathBuf>::new(), "{file}");
        fs::remove_dir(&place).expect("it is empty");
        // A link would lead out of the prefix; the library's own links are made anew.
        symlink(&victim, &place).expect("a link");
        let is_link = ["lib/libdray.so", "lib/libdray.so.1"].contains(&file);
        match is_link {
            true => {
                install(&library(prefix.path())).expect("it can be installed");
            }
            false => is_refused(&library(prefix.path()), "no regular file"),
        }
        assert_eq!(fs::read(&victim).expect("a file"), b"text", "{file}");
    }
}

#[test]
fn paths_that_pkg_config_cannot_name_are_refused() {
    let destdir = tempfile::tempdir().expect("a directory");
    let destdir = Some(destdir.path().to_path_buf());
    for (prefix, libdir, text) in [
        ("usr/local", "lib", "must be absolute"),
        ("/opt/a b", "lib", "has ' '"),
        ("/opt/$HOME", "lib", "has '$'"),
        ("/opt", "/lib", "below the prefix"),
        ("/opt", "../lib", "below the prefix"),
    ] {
        let library = Library {
            destdir: destdir.clone(),
            libdir: libdir.into(),
            ..library(Path::new(prefix))
        };
        is_refused(&library, text);
    }
    assert_eq!(
        files(destdir.as_deref().expect("a directory")),
        Vec::<PathBuf>::new()
    );
}
