//! `cargo xtask`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use serde_json::Value;
use xtask::dist::{self, Dist};
use xtask::{
    DML, DRAY, DTO, InstallPaths, Library, compiler, crates, guide, install, recording, testing,
};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of this workspace")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build libdray and install it: libraries, headers, pkg-config file. The variable CC names the C
    /// compiler that links the shared library, with arguments if need be.
    ///
    /// Example: cargo xtask install --prefix /usr/local
    Install {
        /// Where it will be used from.
        #[arg(long, value_name = "DIR", default_value = "/usr/local")]
        prefix: PathBuf,
        /// Where it is put instead, for packages: the prefix below this directory [default: the variable
        /// DESTDIR].
        #[arg(long, value_name = "DIR")]
        destdir: Option<PathBuf>,
        /// Directory of the libraries below the prefix.
        #[arg(long, value_name = "DIR", default_value = "lib")]
        libdir: PathBuf,
        /// Cargo's profile.
        #[arg(long, value_name = "NAME", default_value = "release")]
        profile: String,
    },
    /// Make a tarball and a Debian package of command, library, headers, man pages and completions, both of their debug
    /// information apart, a tarball of the command alone that needs no library, and checksums.
    /// Needs dpkg-dev, tar, gzip and binutils.
    Dist {
        /// Where they go.
        #[arg(long, value_name = "DIR", default_value = "target/dist")]
        out: PathBuf,
        /// Cargo's profile: `dist` takes minutes, and runs fastest.
        #[arg(long, value_name = "NAME", default_value = "dist")]
        profile: String,
    },
    /// Make the crates of the library and what it needs in target/package, and build each from its package.
    Crates,
    /// Build the guide in docs/ as pages in target/guide, and follow their links. Needs mdbook.
    Guide,
    /// Draw the recording in README.md anew: docs/run.svg.
    Recording,
    /// Build and run all tests but those of the stock kernel in QEMU, two programs at a time.
    Test,
}

fn main() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().context("the checkout")?;
    match Args::parse().task {
        Task::Install {
            prefix,
            destdir,
            libdir,
            profile,
        } => {
            let destdir = destdir.or_else(|| {
                let variable = std::env::var_os("DESTDIR").filter(|value| !value.is_empty());
                variable.map(PathBuf::from)
            });
            // What is wrong with it is said before anything is built.
            let paths = InstallPaths::new(&prefix, destdir.as_deref(), &libdir)?;
            for file in install_library(&root, paths, &profile)? {
                println!("{}", file.display());
            }
        }
        Task::Dist { out, profile } => {
            for file in packages(&root, &out, &profile)? {
                println!("{}", file.display());
            }
        }
        Task::Crates => crates::package(&root, &target(&root), true)?,
        Task::Guide => guide::build(&root, &std::path::absolute(target(&root))?.join("guide"))?,
        Task::Test => testing::run(&root)?,
        Task::Recording => {
            build(&root, "dray-cli", "release")?;
            let programs = target(&root).join("release");
            let svg = recording::svg(&recording::record(&programs)?)?;
            std::fs::write(root.join("docs/run.svg"), svg).context("docs/run.svg")?;
        }
    }
    Ok(())
}

/// The packages of this commit.
fn packages(root: &Path, out: &Path, profile: &str) -> anyhow::Result<Vec<PathBuf>> {
    let out = std::path::absolute(out).context("--out")?;
    std::fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    build(root, "dray-cli", profile)?;
    let stage = tempfile::tempdir_in(&out).context("a directory beside the packages")?;
    let usr = stage.path().join("usr");
    let paths = InstallPaths::new(
        Path::new("/usr"),
        Some(stage.path()),
        Path::new(dist::LIBDIR),
    )?;
    install_library(root, paths, profile)?;
    let dray = target(root).join(profile).join("dray");
    let dist = Dist {
        root,
        out: &out,
        dray: &dray,
        version: env!("CARGO_PKG_VERSION"),
        epoch: commit_time(root)?,
    };
    let debug = tempfile::tempdir_in(&out).context("a directory beside the packages")?;
    let debug = debug.path().join("usr");
    dist::stage(&dist, &usr, &debug)?;
    let alone = tempfile::tempdir_in(&out).context("a directory beside the packages")?;
    let alone = alone.path().join("usr");
    dist::stage_static(&dist, &build_static(root, profile)?, &alone)?;
    let mut packages = vec![
        dist::tarball(&dist, &usr, "linux")?,
        dist::tarball(&dist, &alone, "linux-static")?,
        dist::debian(&dist, &usr)?,
        dist::tarball(&dist, &debug, "linux-debug")?,
        dist::debian_debug(&dist, &debug)?,
    ];
    packages.push(dist::checksums(&out, &packages)?);
    Ok(packages)
}

/// Seconds since 1970 of the commit, or of SOURCE_DATE_EPOCH.
fn commit_time(root: &Path) -> anyhow::Result<u64> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return epoch.parse().context("SOURCE_DATE_EPOCH is no number");
    }
    let mut git = Command::new("git");
    let output = git.current_dir(root).args(["log", "-1", "--format=%ct"]);
    let output = output.output().context("git cannot be run")?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim()
        .parse()
        .context("no commit is found: set SOURCE_DATE_EPOCH")
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from)
}

/// Builds a package, and gives cargo's messages.
fn build(root: &Path, package: &str, profile: &str) -> anyhow::Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .current_dir(root)
        .args(["build", "--locked", "-p", package, "--profile", profile])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cargo cannot be run")?;
    if !built.status.success() {
        bail!("cargo has not built {package}");
    }
    Ok(String::from_utf8_lossy(&built.stdout).into_owned())
}

/// Builds the command with the C library in it, in a directory of its own; its path.
fn build_static(root: &Path, profile: &str) -> anyhow::Result<PathBuf> {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let directory = target(root).join("static");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // With --target, so that macros of the compiler stay as they are.
    let status = Command::new(cargo)
        .current_dir(root)
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .args([
            "build",
            "--locked",
            "-p",
            "dray-cli",
            "--profile",
            profile,
            "--target",
            TARGET,
        ])
        .arg("--target-dir")
        .arg(&directory)
        .status()
        .context("cargo cannot be run")?;
    if !status.success() {
        bail!("cargo has not built the static command");
    }
    Ok(directory.join(TARGET).join(profile).join("dray"))
}

fn install_library(
    root: &Path,
    paths: InstallPaths,
    profile: &str,
) -> anyhow::Result<Vec<PathBuf>> {
    let libraries = [
        (&DRAY, "dray-capi", "dray_c", "crates/capi/include"),
        (&DML, "dray-dml", "dray_dml", "crates/dml/include/dml"),
        (&DTO, "dray-dto", "dray_dto", "crates/dto/include"),
    ];
    // All are built before the first is installed.
    let built = libraries.map(|(kind, package, target, headers)| {
        let archive = static_library(&build(root, package, profile)?, target);
        Ok(Library {
            kind,
            archive: archive.context("cargo does not say where the static library is")?,
            headers: root.join(headers),
            paths: paths.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            compiler: compiler(&std::env::var_os("CC").unwrap_or_default()),
        })
    });
    let built = built.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let mut files = Vec::new();
    for library in &built {
        let made = install(library);
        files.extend(made.with_context(|| match files.len() {
            0 => "nothing was installed".to_owned(),
            count => format!(
                "installed before it: {count} files, from {}",
                built[0].kind.name
            ),
        })?);
    }
    Ok(files)
}

/// The static library of a target, as cargo's messages name it.
fn static_library(messages: &str, target: &str) -> Option<PathBuf> {
    let files = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == target)
        .filter_map(|message| message["filenames"].as_array().cloned())
        .flatten();
    let mut paths = files.filter_map(|file| file.as_str().map(PathBuf::from));
    paths.find(|path| path.extension().is_some_and(|extension| extension == "a"))
}
