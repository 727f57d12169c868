//! libdray.a, libdray.so with versioned symbols, headers and a pkg-config file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
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

/// Installs a library: the files that it made.
///
/// # Errors
/// A file cannot be read or written; the linker fails.
pub fn install(library: &Library) -> anyhow::Result<Vec<PathBuf>> {
    let prefix = &library.prefix;
    if !prefix.is_absolute() {
        bail!(
            "--prefix {} must be absolute: programs find the library by it",
            prefix.display()
        );
    }
    let below = |path: &Path| match &library.destdir {
        Some(destdir) => destdir.join(path.strip_prefix("/").unwrap_or(path)),
        None => path.to_path_buf(),
    };
    let include = below(&prefix.join("include"));
    let lib = below(&prefix.join(&library.libdir));
    let pkgconfig = lib.join("pkgconfig");
    for directory in [&include, &lib, &pkgconfig] {
        fs::create_dir_all(directory)
            .with_context(|| format!("{} cannot be made", directory.display()))?;
    }
    let mut files = Vec::new();
    let mut copy = |from: PathBuf, to: PathBuf| -> anyhow::Result<()> {
        fs::copy(&from, &to)
            .with_context(|| format!("{} cannot be copied to {}", from.display(), to.display()))?;
        files.push(to);
        Ok(())
    };
    for header in HEADERS {
        copy(library.headers.join(header), include.join(header))?;
    }
    copy(library.archive.clone(), lib.join("libdray.a"))?;
    let soname = format!("libdray.so.{INTERFACE}");
    let shared = lib.join(format!("{soname}.{}", library.version));
    link(&library.archive, &shared, &soname)?;
    let named = |path: &Path| path.file_name().map(PathBuf::from).unwrap_or_default();
    files.push(shared.clone());
    for (name, target) in [
        (soname.clone(), named(&shared)),
        ("libdray.so".to_owned(), PathBuf::from(&soname)),
    ] {
        let path = lib.join(name);
        if path.symlink_metadata().is_ok() {
            fs::remove_file(&path)
                .with_context(|| format!("{} cannot be replaced", path.display()))?;
        }
        symlink(target, &path).with_context(|| format!("{} cannot be made", path.display()))?;
        files.push(path);
    }
    let pc = pkgconfig.join("dray.pc");
    fs::write(&pc, pkg_config(library))
        .with_context(|| format!("{} cannot be written", pc.display()))?;
    files.push(pc);
    Ok(files)
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
