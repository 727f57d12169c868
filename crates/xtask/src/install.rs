//! libdray.a, libdray.so with versioned symbols, headers and a pkg-config file.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Version of the interface: that of the shared library's name.
const INTERFACE: &str = "1";

/// What the linker exports, under which version. Later additions get nodes of their own.
const SYMBOLS: &str = "DRAY_1 { global: dray_*; local: *; };\n";

/// What programs include.
const HEADERS: [&str; 3] = ["dray.h", "dray.hpp", "dray_types.hpp"];

/// What a program needs beside the library, as rustc's static libraries do.
const SYSTEM_LIBRARIES: &[&str] = &[
    "-lgcc_s",
    "-lutil",
    "-lrt",
    "-lpthread",
    "-lm",
    "-ldl",
    "-lc",
];

/// A library that was built, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// The static library.
    pub archive: PathBuf,
    /// Directory of the headers.
    pub headers: PathBuf,
    /// Where it will be used from.
    pub prefix: PathBuf,
    /// Where it is put instead: the prefix below this directory.
    pub destdir: Option<PathBuf>,
    /// Directory of the libraries below the prefix.
    pub libdir: PathBuf,
    /// Version for pkg-config.
    pub version: String,
}

/// Installs a library: the files that it made. Files of an earlier installation are replaced as a whole, so
/// that programs which use them go on. Nothing is changed if a file cannot be replaced.
///
/// # Errors
/// A path that pkg-config cannot name; something that is no regular file where a file is to be; a file
/// cannot be read or written; the linker fails.
pub fn install(library: &Library) -> anyhow::Result<Vec<PathBuf>> {
    check_paths(library)?;
    let prefix = &library.prefix;
    let below = |path: &Path| match &library.destdir {
        Some(destdir) => destdir.join(path.strip_prefix("/").unwrap_or(path)),
        None => path.to_path_buf(),
    };
    let root = below(prefix);
    if root.exists() && !root.is_dir() {
        bail!("--prefix {} is no directory", prefix.display());
    }
    let include = below(&prefix.join("include"));
    let lib = below(&prefix.join(&library.libdir));
    let soname = format!("libdray.so.{INTERFACE}");
    let shared = lib.join(format!("{soname}.{}", library.version));
    let archive = lib.join("libdray.a");
    let pc = lib.join("pkgconfig/dray.pc");
    let headers = HEADERS.map(|header| (library.headers.join(header), include.join(header)));
    let links = [
        (lib.join(&soname), named(&shared)),
        (lib.join("libdray.so"), PathBuf::from(&soname)),
    ];

    let made = headers.iter().map(|(_, to)| to);
    for file in made.chain([&archive, &shared, &pc]) {
        check_replaceable(file, false)?;
    }
    for (link, _) in &links {
        check_replaceable(link, true)?;
    }
    for directory in [&include, &lib, &lib.join("pkgconfig")] {
        fs::create_dir_all(directory)
            .with_context(|| format!("{} cannot be made", directory.display()))?;
    }

    let mut files = Vec::new();
    for (from, to) in headers
        .into_iter()
        .chain([(library.archive.clone(), archive)])
    {
        replace(&to, |new| {
            let copied = fs::copy(&from, new).map(|_| ());
            copied.with_context(|| format!("{} cannot be copied", from.display()))
        })?;
        files.push(to);
    }
    replace(&shared, |new| link(&library.archive, new, &soname))?;
    files.push(shared);
    for (path, target) in links {
        replace(&path, |new| Ok(symlink(target, new)?))?;
        files.push(path);
    }
    replace(&pc, |new| Ok(fs::write(new, pkg_config(library))?))?;
    files.push(pc);
    Ok(files)
}

fn named(path: &Path) -> PathBuf {
    path.file_name().map(PathBuf::from).unwrap_or_default()
}

/// Paths that programs find the library by.
fn check_paths(library: &Library) -> anyhow::Result<()> {
    let Library { prefix, libdir, .. } = library;
    if !prefix.is_absolute() {
        bail!(
            "--prefix {} must be absolute: programs find the library by it",
            prefix.display()
        );
    }
    let plain = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
    if !libdir.components().all(plain) {
        bail!(
            "--libdir {} must be below the prefix, such as lib/x86_64-linux-gnu",
            libdir.display()
        );
    }
    for (option, path) in [("--prefix", prefix), ("--libdir", libdir)] {
        let text = path.to_string_lossy();
        let bad = text
            .chars()
            .find(|c| c.is_whitespace() || "$#\\\"'".contains(*c));
        if let Some(bad) = bad {
            bail!("{option} {text} has {bad:?}, which pkg-config and shells do not take as it is");
        }
    }
    Ok(())
}

/// Only what an installation has made may be replaced.
fn check_replaceable(path: &Path, by_link: bool) -> anyhow::Result<()> {
    let kind = match path.symlink_metadata() {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be looked at", path.display()));
        }
    };
    match kind.is_file() || by_link && kind.is_symlink() {
        true => Ok(()),
        false => bail!(
            "{} is no regular file, and is not replaced: remove it first",
            path.display()
        ),
    }
}

/// Makes a file beside its place, and moves it there.
fn replace(path: &Path, make: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut name = named(path).into_os_string();
    name.push(format!(".new{}", std::process::id()));
    let new = path.with_file_name(name);
    let made = make(&new).and_then(|()| Ok(fs::rename(&new, path)?));
    if made.is_err() {
        // Of a part that was made; the error says what happened.
        let _ = fs::remove_file(&new);
    }
    made.with_context(|| format!("{} cannot be made", path.display()))
}

/// Makes a shared library of a static one.
fn link(archive: &Path, shared: &Path, soname: &str) -> anyhow::Result<()> {
    let script = shared.with_extension("map");
    fs::write(&script, SYMBOLS)
        .with_context(|| format!("{} cannot be written", script.display()))?;
    let linked = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-shared", "-o"])
        .arg(shared)
        .arg(format!("-Wl,-soname,{soname}"))
        .arg(format!("-Wl,--version-script={}", script.display()))
        .args(["-Wl,--whole-archive"])
        .arg(archive)
        .args(["-Wl,--no-whole-archive", "-Wl,--gc-sections", "-Wl,-z,defs"])
        .args(SYSTEM_LIBRARIES)
        .output();
    fs::remove_file(&script).with_context(|| format!("{} stays behind", script.display()))?;
    let linked = linked.context("the C compiler cannot be run: CC names another")?;
    if !linked.status.success() {
        bail!(
            "the linker: {}",
            String::from_utf8_lossy(&linked.stderr).trim()
        );
    }
    Ok(())
}

fn pkg_config(library: &Library) -> String {
    let Library {
        prefix,
        libdir,
        version,
        ..
    } = library;
    format!(
        "prefix={}\nlibdir=${{prefix}}/{}\nincludedir=${{prefix}}/include\n\nName: dray\n\
         Description: Moves memory with a data mover, and says who executed it\nVersion: {version}\n\
         Cflags: -I${{includedir}}\nLibs: -L${{libdir}} -ldray\nLibs.private: {}\n",
        prefix.display(),
        libdir.display(),
        SYSTEM_LIBRARIES.join(" "),
    )
}
