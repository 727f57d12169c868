//! `cargo xtask crates`: the packages that cargo makes of the library and what it needs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

/// Metadata of all packages of the workspace.
///
/// # Errors
/// cargo cannot be run, or does not say.
pub fn workspace(root: &Path) -> anyhow::Result<Vec<Value>> {
    let output = cargo(root)
        .args(["metadata", "--no-deps", "--format-version", "1", "--locked"])
        .output()
        .context("cargo cannot be run")?;
    if !output.status.success() {
        bail!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo's metadata")?;
    let packages = metadata["packages"].as_array();
    Ok(packages.context("cargo names no packages")?.clone())
}

/// Those that have not `publish = false`.
pub fn published(packages: &[Value]) -> impl Iterator<Item = &Value> {
    packages
        .iter()
        .filter(|package| package["publish"].is_null())
}

/// Packages them below `target`, in `package`; with `verify` each is built from its package.
///
/// # Errors
/// cargo refuses one, or does not build it.
pub fn package(root: &Path, target: &Path, verify: bool) -> anyhow::Result<()> {
    let mut command = cargo(root);
    command.args(["package", "--locked", "--allow-dirty", "--target-dir"]);
    command.arg(target);
    if !verify {
        command.args(["--no-verify", "--offline"]);
    }
    for package in published(&workspace(root)?) {
        command
            .arg("-p")
            .arg(package["name"].as_str().context("a name")?);
    }
    match command.status().context("cargo cannot be run")?.success() {
        true => Ok(()),
        false => bail!("cargo has not packaged the crates"),
    }
}

fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}
