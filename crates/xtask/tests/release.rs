//! One version for all that is handed on, and crates that cargo takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use xtask::crates::{package, published, workspace};
use xtask::dist::{self, Dist};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    let name = &package["name"];
    package[field]
        .as_str()
        .unwrap_or_else(|| panic!("{name} has no {field}"))
}

/// dray.pc, the CMake package, the tarball, the deb and the shared library's file have the version of xtask, which is that
/// of the workspace.
#[test]
fn every_crate_has_the_version_of_the_changelog() {
    let packages = workspace(&root()).unwrap();
    for package in &packages {
        assert_eq!(text(package, "version"), VERSION, "{}", package["name"]);
    }
    let changes = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let heading = changes
        .lines()
        .find(|line| line.starts_with("## "))
        .unwrap();
    let released = heading == "## Unreleased" || heading == format!("## {VERSION}");
    assert!(released, "the first heading of CHANGELOG.md is {heading}");
    let own = format!("\n## {VERSION}\n");
    assert!(changes.contains(&own), "CHANGELOG.md has no {own}");
    for package in published(&packages) {
        let dependencies = package["dependencies"].as_array().unwrap();
        for dependency in dependencies
            .iter()
            .filter(|d| !d["path"].is_null() && d["kind"].is_null())
        {
            let required = dependency["req"].as_str();
            assert_eq!(
                required,
                Some(format!("^{VERSION}").as_str()),
                "{dependency:#}"
            );
        }
    }
}

#[test]
fn crates_of_the_library_can_be_packaged() {
    let packages = workspace(&root()).unwrap();
    let names: Vec<&str> = published(&packages)
        .map(|package| text(package, "name"))
        .collect();
    assert!(names.contains(&"dray"), "{names:?}");
    for package in published(&packages) {
        let directory = Path::new(text(package, "manifest_path")).parent().unwrap();
        for field in ["description", "license", "rust_version", "readme"] {
            assert!(!text(package, field).is_empty());
        }
        for field in ["keywords", "categories"] {
            let words = package[field].as_array().unwrap().len();
            assert!((1..=5).contains(&words), "{} {field}", package["name"]);
        }
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let there = fs::read(root().join(licence)).unwrap();
            assert_eq!(
                fs::read(directory.join(licence)).unwrap(),
                there,
                "{}",
                package["name"]
            );
        }
    }
    let target = tempfile::tempdir().unwrap();
    package(&root(), target.path(), false).unwrap();
    for name in names {
        let file = target
            .path()
            .join(format!("package/{name}-{VERSION}.crate"));
        assert!(file.is_file(), "{}", file.display());
    }
}

#[test]
fn the_tarball_of_the_command_alone_has_a_program_that_needs_no_library() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("program.c"), "int main(void) { return 7; }\n").unwrap();
    for (name, option) in [("dynamic", "-O1"), ("static", "-static")] {
        let mut cc = Command::new("cc");
        cc.arg(option).arg("-o").arg(at(name)).arg(at("program.c"));
        assert!(cc.status().unwrap().success());
    }
    let (root, out) = (root(), directory.path());
    let dist = Dist {
        root: &root,
        out,
        dray: out,
        version: VERSION,
        epoch: 0,
    };
    let refused = dist::stage_static(&dist, &at("dynamic"), &at("usr")).unwrap_err();
    assert!(refused.to_string().contains("dynamic linker"), "{refused}");
    dist::stage_static(&dist, &at("static"), &at("usr")).unwrap();
    let tarball = dist::tarball(&dist, &at("usr"), "linux-static").unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(tarball).current_dir(out);
    assert!(tar.status().unwrap().success());
    let unpacked = at(&format!("dray-{VERSION}-x86_64-linux-static"));
    assert!(unpacked.join("share/doc/dray/copyright").is_file());
    let code = Command::new(unpacked.join("bin/dray"))
        .status()
        .unwrap()
        .code();
    assert_eq!(code, Some(7));
}

#[test]
fn debug_information_is_a_package_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("program.c"), "int main(void) { return 7; }\n").unwrap();
    for (name, option) in [
        ("with", "-Wl,--build-id"),
        ("without", "-Wl,--build-id=none"),
    ] {
        let mut cc = Command::new("cc");
        cc.args(["-g", option])
            .arg("-o")
            .arg(at(name))
            .arg(at("program.c"));
        assert!(cc.status().unwrap().success());
    }
    let usr = at("tree/usr");
    let refused = dist::keep_debug(&at("without"), &usr).unwrap_err();
    assert!(
        refused.to_string().ends_with("without has no build-id"),
        "{refused}"
    );
    dist::keep_debug(&at("with"), &usr).unwrap();
    let (root, out) = (root(), directory.path());
    let dist = Dist {
        root: &root,
        out,
        dray: out,
        version: VERSION,
        epoch: 0,
    };
    let package = dist::debian_debug(&dist, &usr).unwrap();
    let unpacked = at("unpacked");
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.arg("-x").arg(package).arg(&unpacked);
    assert!(dpkg.status().unwrap().success());
    assert!(
        Command::new("strip")
            .arg(at("with"))
            .status()
            .unwrap()
            .success()
    );
    // A debugger finds the line of a stripped program by its build-id.
    let said = |program: &str, arguments: &[&std::ffi::OsStr]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let stripped = said("readelf", &["-SW".as_ref(), at("with").as_os_str()]);
    assert!(!stripped.contains(".debug_line"), "{stripped}");
    let ids = unpacked.join("usr/lib/debug/.build-id");
    let kept = fs::read_dir(&ids).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read_dir(&kept).unwrap().next().unwrap().unwrap().path();
    let lines = said(
        "addr2line",
        &["-e".as_ref(), kept.as_os_str(), main_of(&kept).as_ref()],
    );
    assert!(lines.trim_end().ends_with("program.c:1"), "{lines}");
}

/// The address of `main` in a file with symbols.
fn main_of(file: &Path) -> String {
    let symbols = Command::new("nm").arg(file).output().expect("binutils");
    let text = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let line = text.lines().find(|line| line.ends_with(" T main"));
    let address = line.and_then(|line| line.split(' ').next());
    address.expect("main has an address").to_owned()
}
