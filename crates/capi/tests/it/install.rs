//! Where `cargo xtask install` puts the library, and which files it does not touch.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::{DRAY, InstallPaths, Library, compiler, install};

use crate::toolchain::{ROOT, archive};

fn library_at(paths: InstallPaths) -> Library {
    Library {
        kind: &DRAY,
        archive: archive(),
        headers: Path::new(ROOT).join("include"),
        paths,
        version: env!("CARGO_PKG_VERSION").into(),
        compiler: compiler("".as_ref()),
    }
}

fn library(prefix: &Path) -> Library {
    library_at(InstallPaths::new(prefix, None, Path::new("lib")).expect("paths"))
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

const INSTALLED: [&str; 10] = [
    "include/dray.h",
    "include/dray.hpp",
    "include/dray_types.hpp",
    "lib/cmake/dray/dray-config-version.cmake",
    "lib/cmake/dray/dray-config.cmake",
    "lib/libdray.a",
    "lib/libdray.so",
    "lib/libdray.so.1",
    concat!("lib/libdray.so.1.", env!("CARGO_PKG_VERSION")),
    "lib/pkgconfig/dray.pc",
];

fn is_refused(library: &Library, text: &str) {
    let error = format!("{:#}", install(library).expect_err("it is refused"));
    assert!(error.contains(text), "{error}");
}

/// What pkg-config says of the library whose dray.pc is in this directory.
fn pkg_config(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("pkg-config")
        .args(arguments)
        .arg("dray")
        .env("PKG_CONFIG_PATH", directory)
        .output()
        .expect("pkg-config");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_package_is_installed_below_destdir_for_its_prefix() {
    let destdir = tempfile::tempdir().expect("a directory");
    let libdir = Path::new("lib/x86_64-linux-gnu");
    let paths = InstallPaths::new(Path::new("/opt/dray"), Some(destdir.path()), libdir);
    let made = install(&library_at(paths.expect("paths")));
    let root = destdir.path().join("opt/dray");
    let expected = INSTALLED.map(|file| match file.strip_prefix("lib/") {
        Some(file) => Path::new("lib/x86_64-linux-gnu").join(file),
        None => PathBuf::from(file),
    });
    assert_eq!(files(&root), expected);
    let mut made = made.expect("it can be installed");
    made.sort();
    assert_eq!(made, expected.map(|file| root.join(file)));
    let directory = root.join("lib/x86_64-linux-gnu/pkgconfig");
    assert_eq!(pkg_config(&directory, &["--cflags"]), "-I/opt/dray/include");
    let libs = pkg_config(&directory, &["--libs"]);
    assert_eq!(libs, "-L/opt/dray/lib/x86_64-linux-gnu -ldray");
}

#[test]
fn an_installation_is_replaced_while_a_program_uses_it() {
    let prefix = tempfile::tempdir().expect("a directory");
    install(&library(prefix.path())).expect("it can be installed");
    let shared = prefix
        .path()
        .join(concat!("lib/libdray.so.1.", env!("CARGO_PKG_VERSION")));
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

/// What an installation consists of: the path, mode, inode and bytes of each file.
fn contents(prefix: &Path) -> Vec<(PathBuf, u32, u64, Vec<u8>)> {
    let of = |file: PathBuf| {
        let path = prefix.join(&file);
        let metadata = path.symlink_metadata().expect("a file");
        let bytes = match metadata.is_symlink() {
            true => path
                .read_link()
                .expect("a link")
                .into_os_string()
                .into_encoded_bytes(),
            false => fs::read(&path).expect("a file"),
        };
        (file, metadata.mode(), metadata.ino(), bytes)
    };
    files(prefix).into_iter().map(of).collect()
}

#[test]
fn a_failing_compiler_leaves_the_earlier_installation() {
    let prefix = tempfile::tempdir().expect("a directory");
    install(&library(prefix.path())).expect("it can be installed");
    // As of an earlier version.
    for file in ["include/dray.h", "lib/libdray.a", "lib/pkgconfig/dray.pc"] {
        fs::write(prefix.path().join(file), "of an earlier version").expect("a file");
    }
    let before = contents(prefix.path());
    for (cc, text) in [
        ("false", "the linker: exit status: 1"),
        ("/nonexistent/cc -m64", "/nonexistent/cc cannot be run"),
        ("true", "the linker has made no libdray.so.1"),
        ("cc --no-such-option", "no-such-option"),
    ] {
        let wrong = Library {
            compiler: compiler(cc.as_ref()),
            ..library(prefix.path())
        };
        is_refused(&wrong, text);
        assert!(contents(prefix.path()) == before, "{cc}");
        // No directory is left where there was none.
        let parent = tempfile::tempdir().expect("a directory");
        let wrong = Library {
            compiler: compiler(cc.as_ref()),
            ..library(&parent.path().join("of/its/own"))
        };
        is_refused(&wrong, text);
        assert_eq!(fs::read_dir(parent.path()).expect("it").count(), 0, "{cc}");
    }
    let wrong = Library {
        archive: prefix.path().join("missing.a"),
        ..library(prefix.path())
    };
    is_refused(&wrong, "missing.a cannot be read");
    assert!(contents(prefix.path()) == before);
}

#[test]
fn the_compiler_may_have_arguments_and_a_name_with_spaces() {
    let directory = tempfile::tempdir().expect("a directory");
    let wrapper = directory.path().join("my cc");
    let log = directory.path().join("log");
    let script = format!(
        "#!/bin/sh\necho \"$1\" >>'{}'\nexec cc \"$@\"\n",
        log.display()
    );
    fs::write(&wrapper, script).expect("a script");
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let one = directory.path().join("cc");
    symlink(&wrapper, &one).expect("a link");
    for (cc, first) in [
        (format!("{} -m64", one.display()), "-m64\n"),
        (wrapper.display().to_string(), "-shared\n"),
    ] {
        let _ = fs::remove_file(&log);
        let prefix = tempfile::tempdir().expect("a directory");
        let made = install(&Library {
            compiler: compiler(cc.as_ref()),
            ..library(prefix.path())
        });
        made.expect("it can be installed");
        assert_eq!(files(prefix.path()), INSTALLED.map(PathBuf::from));
        assert_eq!(fs::read_to_string(&log).expect("the log"), first);
    }
}

#[test]
fn installed_files_are_readable_by_everyone() {
    let sources = tempfile::tempdir().expect("a directory");
    let prefix = tempfile::tempdir().expect("a directory");
    let headers = Path::new(ROOT).join("include");
    for header in fs::read_dir(&headers).expect("headers") {
        let header = header.expect("an entry").path();
        let private = sources.path().join(header.file_name().expect("a name"));
        fs::copy(&header, &private).expect("a copy");
        fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).expect("it is ours");
    }
    let made = install(&Library {
        headers: sources.path().to_path_buf(),
        ..library(prefix.path())
    });
    for file in made.expect("it can be installed") {
        let metadata = file.symlink_metadata().expect("a file");
        let expected = match file.ends_with(concat!("lib/libdray.so.1.", env!("CARGO_PKG_VERSION")))
        {
            true => 0o755,
            false => 0o644,
        };
        if !metadata.is_symlink() {
            assert_eq!(metadata.mode() & 0o7777, expected, "{}", file.display());
        }
    }
}

/// Whether a program compiles with the flags from pkg-config, as a shell splits them, and runs.
fn compiles_and_runs(prefix: &Path) {
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("program.c");
    let text = "#include <dray.h>\nint main(void) { return dray_strerror(0)[0] != 's'; }\n";
    fs::write(&source, text).expect("a file");
    let compiled = Command::new("sh")
        .current_dir(directory.path())
        .args([
            "-c",
            "eval cc program.c $(pkg-config --cflags --libs dray) -o program",
        ])
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .output()
        .expect("a shell");
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
    let ran = Command::new(directory.path().join("program"))
        .env("LD_LIBRARY_PATH", prefix.join("lib"))
        .status();
    assert!(ran.expect("it runs").success());
}

#[test]
fn a_prefix_with_spaces_works() {
    let directory = tempfile::tempdir().expect("a directory");
    let prefix = directory.path().join("my own libraries");
    install(&library(&prefix)).expect("it can be installed");
    assert_eq!(files(&prefix), INSTALLED.map(PathBuf::from));
    let cflags = pkg_config(&prefix.join("lib/pkgconfig"), &["--cflags"]);
    let escaped = prefix.display().to_string().replace(' ', "\\ ");
    assert_eq!(cflags, format!("-I{escaped}/include"));
    compiles_and_runs(&prefix);
}

#[test]
fn relative_prefixes_are_absolute_in_the_pkg_config_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("it is there");
    let here = std::env::current_dir().expect("a directory");
    let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
    let below = |path: &str| root.join(path);
    fs::create_dir_all(below("real/inner")).expect("a directory");
    symlink("real/inner", below("link")).expect("a link");
    for (prefix, expected) in [
        (below("a/../b"), below("b")),
        (below("./c/"), below("c")),
        (
            up.join(below("d").strip_prefix("/").expect("absolute")),
            below("d"),
        ),
        // As the kernel takes it: the parent of what the link leads to.
        (below("link/../e"), below("real/e")),
    ] {
        install(&library(&prefix)).expect("it can be installed");
        assert_eq!(files(&expected), INSTALLED.map(PathBuf::from));
        let of_file = pkg_config(&expected.join("lib/pkgconfig"), &["--variable=prefix"]);
        assert_eq!(Path::new(&of_file), expected, "{}", prefix.display());
    }
    // A package's files stay below its directory, whatever is beside it.
    let staging = below("staging");
    let paths = InstallPaths::new(
        Path::new("/../../usr/lib/../local"),
        Some(&staging),
        Path::new("lib"),
    );
    install(&library_at(paths.expect("paths"))).expect("it can be installed");
    assert_eq!(
        files(&staging),
        INSTALLED.map(|file| Path::new("usr/local").join(file))
    );
    let of_file = pkg_config(
        &staging.join("usr/local/lib/pkgconfig"),
        &["--variable=prefix"],
    );
    assert_eq!(of_file, "/usr/local");
}

#[test]
fn a_prefix_that_is_a_file_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "text").expect("a file");
    for prefix in [file.clone(), file.join("below")] {
        let refused =
            InstallPaths::new(&prefix, None, Path::new("lib")).expect_err("it is refused");
        let text = format!("{refused:#}");
        assert!(
            text.contains("is no directory") || text.contains("Not a directory"),
            "{text}"
        );
    }
    assert_eq!(fs::read(&file).expect("a file"), b"text");
}

#[test]
fn targets_that_are_no_regular_files_are_not_replaced() {
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
        // A link of someone else.
        symlink(&victim, &place).expect("a link");
        is_refused(&library(prefix.path()), "is not replaced");
        assert_eq!(files(prefix.path()), [PathBuf::from(file)], "{file}");
        assert_eq!(fs::read(&victim).expect("a file"), b"text", "{file}");
    }
}

#[test]
fn links_of_the_library_are_replaced() {
    let prefix = tempfile::tempdir().expect("a directory");
    let lib = prefix.path().join("lib");
    fs::create_dir(&lib).expect("a directory");
    symlink("libdray.so.1.0.0.9", lib.join("libdray.so.1")).expect("a link");
    symlink("libdray.so.1", lib.join("libdray.so")).expect("a link");
    install(&library(prefix.path())).expect("it can be installed");
    let leads_to = |link: &str| lib.join(link).read_link().expect("a link");
    assert_eq!(leads_to("libdray.so"), Path::new("libdray.so.1"));
    assert_eq!(
        leads_to("libdray.so.1"),
        Path::new(concat!("libdray.so.1.", env!("CARGO_PKG_VERSION")))
    );
    // One that leads out of the directory is not the library's.
    fs::remove_file(lib.join("libdray.so")).expect("a link");
    symlink("../libdray.so.1", lib.join("libdray.so")).expect("a link");
    is_refused(&library(prefix.path()), "is not of this library");
}

#[test]
fn paths_that_pkg_config_cannot_express_are_refused() {
    let bytes = OsStr::from_bytes;
    for (prefix, libdir, text) in [
        (
            bytes(b"/opt/\xff"),
            bytes(b"lib"),
            "--prefix /opt/\u{fffd} is no UTF-8",
        ),
        (
            bytes(b"/opt"),
            bytes(b"lib/\xff"),
            "--libdir lib/\u{fffd} is no UTF-8",
        ),
        (bytes(b"/opt/a\nb"), bytes(b"lib"), "has '\\n'"),
        (bytes(b"/opt/$HOME"), bytes(b"lib"), "has '$'"),
        (bytes(b"/opt"), bytes(b"/lib"), "below the prefix"),
        (bytes(b"/opt"), bytes(b"../lib"), "below the prefix"),
        (bytes(b"/opt"), bytes(b""), "below the prefix"),
        (bytes(b""), bytes(b"lib"), "cannot be made absolute"),
    ] {
        let refused = InstallPaths::new(Path::new(prefix), None, Path::new(libdir));
        let error = format!("{:#}", refused.expect_err("it is refused"));
        assert!(error.contains(text), "{error}");
    }
    // The directory of a package is not named.
    let directory = tempfile::tempdir().expect("a directory");
    let staging = directory.path().join(bytes(b"\xff"));
    let paths = InstallPaths::new(Path::new("/opt"), Some(&staging), Path::new("lib"));
    install(&library_at(paths.expect("paths"))).expect("it can be installed");
    assert_eq!(files(&staging.join("opt")), INSTALLED.map(PathBuf::from));
}
