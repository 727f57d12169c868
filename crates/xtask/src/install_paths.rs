//! Where the library is put, and where it is used from.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};

/// Where the library is put, and where it is used from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallPaths {
    /// The prefix that programs find the library by: absolute, without `..`.
    pub(crate) prefix: String,
    /// Directory of the libraries below the prefix.
    pub(crate) libdir: String,
    /// The prefix below the staging directory, or the prefix itself.
    pub(crate) root: PathBuf,
}

impl InstallPaths {
    /// The prefix may be relative to the current directory, and have `..`. With a `destdir` the files are put
    /// below that directory, under the name of the prefix. The `libdir` is below the prefix.
    ///
    /// # Errors
    /// A path that is no UTF-8 or that pkg-config cannot name; a `libdir` beside the prefix; a prefix that is
    /// no directory.
    pub fn new(
        prefix: &Path,
        destdir: Option<&Path>,
        libdir: &Path,
    ) -> anyhow::Result<InstallPaths> {
        let plain = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
        if libdir.as_os_str().is_empty() || !libdir.components().all(plain) {
            bail!(
                "--libdir {} must be below the prefix, such as lib/x86_64-linux-gnu",
                libdir.display()
            );
        }
        let absolute = absolute(prefix, destdir.is_some())?;
        let root = match destdir {
            Some(destdir) => {
                let destdir = std::path::absolute(destdir).with_context(|| {
                    format!("--destdir {} cannot be made absolute", destdir.display())
                })?;
                destdir.join(absolute.strip_prefix("/").unwrap_or(&absolute))
            }
            None => absolute.clone(),
        };
        let paths = InstallPaths {
            prefix: named("--prefix", &absolute)?,
            libdir: named("--libdir", libdir)?,
            root,
        };
        match paths.root.metadata() {
            Ok(metadata) if !metadata.is_dir() => {
                bail!("--prefix {} is no directory", paths.root.display())
            }
            Ok(_) => Ok(paths),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(paths),
            Err(error) => Err(error)
                .with_context(|| format!("--prefix {} cannot be used", paths.root.display())),
        }
    }
}

/// An absolute path without `..`. Below a staging directory nothing of it may be there yet: `..` then takes
/// back the name before it, and leads to the parent of the real directory otherwise.
fn absolute(path: &Path, is_staged: bool) -> anyhow::Result<PathBuf> {
    let whole = std::path::absolute(path)
        .with_context(|| format!("--prefix {} cannot be made absolute", path.display()))?;
    let mut made = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::ParentDir => {
                if let (false, Ok(real)) = (is_staged, made.canonicalize()) {
                    made = real;
                }
                made.pop();
            }
            part => made.push(part),
        }
    }
    Ok(made)
}

/// A path as dray.pc can have it.
fn named(option: &str, path: &Path) -> anyhow::Result<String> {
    let Some(text) = path.to_str() else {
        bail!(
            "{option} {} is no UTF-8, and dray.pc cannot name it",
            path.display()
        );
    };
    let bad = |c: char| c.is_control() || (c.is_whitespace() && c != ' ') || "$#\\\"'".contains(c);
    if let Some(bad) = text.chars().find(|c| bad(*c)) {
        bail!("{option} {text} has {bad:?}, which pkg-config and shells do not take as it is");
    }
    Ok(text.to_owned())
}
