//! `cargo xtask`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use xtask::{Library, install};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of this workspace")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build libdray and install it: libraries, headers, pkg-config file.
    ///
    /// Example: cargo xtask install --prefix /usr/local
    Install {
        /// Where it will be used from.
        #[arg(long, value_name = "DIR", default_value = "/usr/local")]
        prefix: PathBuf,
        /// Where it is put instead, for packages: the prefix below this directory.
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .current_dir(&root)
        .args([
            "build",
            "--locked",
            "-p",
            "dray-capi",
            "--profile",
            &profile,
        ])
        .status()
        .context("cargo cannot be run")?;
    if !built.success() {
        bail!("cargo has not built the library");
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let directory = if profile == "dev" { "debug" } else { &profile };
    let files = install(&Library {
        archive: target.join(directory).join("libdray_c.a"),
        headers: root.join("crates/capi/include"),
        prefix,
        destdir,
        libdir,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })?;
    for file in files {
        println!("{}", file.display());
    }
    Ok(())
}
