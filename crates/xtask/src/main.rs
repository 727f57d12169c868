//! `cargo xtask`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use serde_json::Value;
use xtask::{InstallPaths, Library, compiler, install};

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
}

fn main() -> anyhow::Result<()> {
    let Task::Install {
        prefix,
        destdir,
        libdir,
        profile,
    } = Args::parse().task;
    let destdir = destdir.or_else(|| {
        let variable = std::env::var_os("DESTDIR").filter(|value| !value.is_empty());
        variable.map(PathBuf::from)
    });
    // What is wrong with it is said before anything is built.
    let paths = InstallPaths::new(&prefix, destdir.as_deref(), &libdir)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .current_dir(&root)
        .args(["build", "--locked", "-p", "dray-capi", "--profile"])
        .args([&profile, "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo cannot be run")?;
    if !built.status.success() {
        bail!("cargo has not built the library");
    }
    let archive = static_library(&String::from_utf8_lossy(&built.stdout));
    let files = install(&Library {
        archive: archive.context("cargo does not say where the static library is")?,
        headers: root.join("crates/capi/include"),
        paths,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        compiler: compiler(&std::env::var_os("CC").unwrap_or_default()),
    })?;
    for file in files {
        println!("{}", file.display());
    }
    Ok(())
}

/// The static library of dray-capi, as cargo's messages name it.
fn static_library(messages: &str) -> Option<PathBuf> {
    let files = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "dray_c")
        .filter_map(|message| message["filenames"].as_array().cloned())
        .flatten();
    let mut paths = files.filter_map(|file| file.as_str().map(PathBuf::from));
    paths.find(|path| path.extension().is_some_and(|extension| extension == "a"))
}
