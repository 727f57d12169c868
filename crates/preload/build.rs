//! Has cargo build `dray-portal`, `dray-tier-preload` and `dray-offload` as shared objects, in a
//! directory of their own.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// Name of the profile in the workspace: optimised whatever the rest is.
const PROFILE: &str = "preload";

/// A package that becomes a shared object.
struct Library {
    package: &'static str,
    /// Its name in the file system, without `lib` and `.so`.
    name: &'static str,
    /// Where it is in the workspace.
    manifest: &'static str,
    linked_with: &'static [&'static str],
}

const LIBRARIES: [Library; 3] = [
    Library {
        package: "dray-portal",
        name: "dray_portal",
        manifest: "crates/portal/Cargo.toml",
        // It can be executed, too: see start.rs there.
        linked_with: &["-Clink-arg=-Wl,-e,dray_portal_start"],
    },
    Library {
        package: "dray-tier-preload",
        name: "dray_tier_preload",
        manifest: "crates/tier-preload/Cargo.toml",
        linked_with: &[],
    },
    Library {
        package: "dray-offload",
        name: "dray_offload",
        manifest: "crates/offload/Cargo.toml",
        // Its own copies are never offloaded: see entry.rs there.
        linked_with: &[
            "-Clink-arg=-Wl,--wrap=memcpy",
            "-Clink-arg=-Wl,--wrap=memmove",
            "-Clink-arg=-Wl,--wrap=memset",
            "-Clink-arg=-Wl,--wrap=memcmp",
        ],
    },
];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(dray_preload)");
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| variable(name).to_str() == Some(value);
    let here = is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && is("CARGO_CFG_TARGET_ENV", "gnu");
    if !here {
        return;
    }
    let workspace = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../..");
    let out = PathBuf::from(variable("OUT_DIR"));
    let target = variable("TARGET");
    let directory = shared_directory(&out);
    let built = directory.join(&target).join(PROFILE);
    for library in &LIBRARIES {
        build(library, &workspace, &directory, &target);
        let file = format!("lib{}.so", library.name);
        if let Err(error) = std::fs::copy(built.join(&file), out.join(&file)) {
            fail(&format!("{file} was not built: {error}"));
        }
        let listed = built.join(format!("lib{}.d", library.name));
        watch(library, &workspace, &listed);
    }
    println!("cargo::rustc-cfg=dray_preload");
}

/// One directory for all profiles of the outer build, whose shared objects are the same: cargo's directory of targets is
/// the one above that has its cache tag.
fn shared_directory(out: &Path) -> PathBuf {
    let targets = out
        .ancestors()
        .find(|above| above.join("CACHEDIR.TAG").is_file());
    targets.unwrap_or(out).join("preload-libraries")
}

fn build(library: &Library, workspace: &Path, directory: &Path, target: &OsString) {
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .args([
            "rustc",
            "--quiet",
            "--locked",
            "--package",
            library.package,
            "--lib",
        ])
        .args(["--crate-type", "cdylib", "--features", "preload"])
        .args(["--profile", PROFILE, "--target"])
        .arg(target)
        .arg("--target-dir")
        .arg(directory)
        .arg("--manifest-path")
        .arg(workspace.join("Cargo.toml"))
        .arg("--")
        .args(library.linked_with)
        // Only the registers of SSE are saved on the way into it.
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-cpu=x86-64")
        // Not the linter that may stand in front of the outer build's compiler.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_BUILD_TARGET")
        .env_remove("CARGO_TARGET_DIR")
        .current_dir(workspace);
    match cargo.status() {
        Ok(status) if status.success() => (),
        Ok(status) => fail(&format!(
            "cargo rustc --package {}: {status}",
            library.package
        )),
        Err(error) => fail(&format!("cargo cannot be started: {error}")),
    }
}

/// Builds again when a file has changed of which the shared object is made.
fn watch(library: &Library, workspace: &Path, listed: &Path) {
    for file in ["Cargo.toml", "Cargo.lock", library.manifest] {
        println!("cargo::rerun-if-changed={}", workspace.join(file).display());
    }
    // One rule of make; a space in a name is written with a backslash.
    let rule = std::fs::read_to_string(listed).unwrap_or_else(|error| {
        fail(&format!("{}: {error}", listed.display()));
    });
    let files = rule.split_once(": ").map_or("", |(_, files)| files);
    for file in files.trim().replace("\\ ", "\0").split_ascii_whitespace() {
        println!("cargo::rerun-if-changed={}", file.replace('\0', " "));
    }
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_default()
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    exit(1);
}
