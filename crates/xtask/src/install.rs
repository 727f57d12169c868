//! libdray.a, libdray.so with versioned symbols, headers, a pkg-config file and a CMake package.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::cmake;
use crate::install_paths::InstallPaths;
use crate::link::{SYSTEM_LIBRARIES, link};

/// Version of the interface: that of the shared library's name.
pub const INTERFACE: &str = "1";

/// What a library consists of.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its files are lib`name`.a and lib`name`.so.
    pub name: &'static str,
    /// Its pkg-config file.
    pub package: &'static str,
    /// One line of it.
    pub description: &'static str,
    /// What programs include, by their names below the directory of headers.
    pub headers: &'static [&'static str],
    /// Where they go, below `include`.
    pub include: &'static str,
    /// Where compilers look for them, below `include`.
    pub searched: &'static str,
    /// What the linker exports, under which version node, oldest first: a version script.
    pub symbols: &'static str,
    /// Whether CMake finds it.
    pub cmake: bool,
}

/// The library for C and C++.
pub static DRAY: Kind = Kind {
    name: "dray",
    package: "dray",
    description: "Moves memory with a data mover, and says who executed it",
    headers: &["dray.h", "dray.hpp", "dray_types.hpp"],
    include: "",
    searched: "",
    symbols: include_str!("../../capi/abi/libdray.map"),
    cmake: true,
};

/// The job API of DML. Its headers stand apart, so that they are not found in place of Intel's.
pub static DML: Kind = Kind {
    name: "dray_dml",
    package: "dray-dml",
    description: "The C job API of the Data Mover Library",
    headers: &["dml.h", "dmldefs.h"],
    include: "dray/dml",
    searched: "dray",
    symbols: "DRAY_DML_1 { global: dml_*; local: *; };\n",
    cmake: false,
};

/// The submit and poll API of DTO.
pub static DTO: Kind = Kind {
    name: "dray_dto",
    package: "dray-dto",
    description: "The submit and poll API that is proposed for DTO",
    headers: &["dto.h"],
    include: "dray",
    searched: "dray",
    symbols: "DRAY_DTO_1 { global: dto_*; local: *; };\n",
    cmake: false,
};

/// A library that was built, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Which it is.
    pub kind: &'static Kind,
    /// The static library.
    pub archive: PathBuf,
    /// Directory of the headers.
    pub headers: PathBuf,
    /// Where it goes.
    pub paths: InstallPaths,
    /// Version for pkg-config.
    pub version: String,
    /// The C compiler that links the shared library, and its first arguments: see
    /// [`compiler`](crate::compiler).
    pub compiler: Vec<OsString>,
}

/// Installs a library: the files that it made. All are made first, each in a directory beside its place, and
/// renamed then: files of an earlier installation stay as they are until all new ones are there, and programs
/// that use them go on. Headers, static library and pkg-config file have the mode 0644, the shared library
/// 0755.
///
/// # Errors
/// Something that is no regular file, nor a link of the library's own, where a file is to be; a file cannot
/// be read or written; the linker fails. An earlier installation is unchanged then, unless a file could be
/// made and not be renamed: the error names those that were.
pub fn install(library: &Library) -> anyhow::Result<Vec<PathBuf>> {
    let InstallPaths { root, libdir, .. } = &library.paths;
    let kind = library.kind;
    let (include, lib) = (root.join("include").join(kind.include), root.join(libdir));
    let pkgconfig = lib.join("pkgconfig");
    let cmake = lib.join("cmake/dray");
    let cmake_files: &[(&str, &str)] = if kind.cmake { &cmake::FILES } else { &[] };
    let (archive, plain) = (
        format!("lib{}.a", kind.name),
        format!("lib{}.so", kind.name),
    );
    let soname = format!("{plain}.{INTERFACE}");
    let shared = format!("{soname}.{}", library.version);
    let links = [(plain.as_str(), &soname), (soname.as_str(), &shared)];
    let package = format!("{}.pc", kind.package);

    for file in kind.headers.iter().map(|header| include.join(header)) {
        check_replaceable(&file)?;
    }
    for file in [&archive, &shared].map(|file| lib.join(file)) {
        check_replaceable(&file)?;
    }
    check_replaceable(&pkgconfig.join(&package))?;
    for (name, _) in cmake_files {
        check_replaceable(&cmake.join(name))?;
    }
    for (link, _) in links {
        check_link(&lib.join(link), &plain)?;
    }

    let mut needed = vec![include.as_path(), &lib, &pkgconfig];
    needed.extend(kind.cmake.then_some(cmake.as_path()));
    let directories = Directories::make(&needed)?;
    let mut staged = Staged::default();
    let stage = staged.directory(&include)?;
    for header in kind.headers {
        copy(&library.headers.join(header), &stage.join(header))?;
    }
    let stage = staged.directory(&lib)?;
    copy(&library.archive, &stage.join(&archive))?;
    let made = stage.join(&shared);
    link(library, &made, &soname, &stage)?;
    fs::set_permissions(&made, Permissions::from_mode(0o755))
        .with_context(|| format!("the mode of {} cannot be set", made.display()))?;
    for (name, target) in links {
        let link = stage.join(name);
        symlink(target, &link).with_context(|| format!("{} cannot be made", link.display()))?;
    }
    let stage = staged.directory(&pkgconfig)?;
    create(&stage.join(&package), pkg_config(library).as_bytes())?;
    if kind.cmake {
        let stage = staged.directory(&cmake)?;
        for (name, text) in cmake_files {
            create(&stage.join(name), cmake::text(text, library).as_bytes())?;
        }
    }

    let headers = kind
        .headers
        .iter()
        .map(|header| (include.as_path(), *header));
    // A link comes after what it leads to.
    let others = [
        (lib.as_path(), archive.as_str()),
        (&lib, &shared),
        (&lib, &soname),
        (&lib, &plain),
        (&pkgconfig, &package),
    ];
    let others = others
        .into_iter()
        .chain(cmake_files.iter().map(|(name, _)| (cmake.as_path(), *name)));
    let files = staged.put_in_place(headers.chain(others))?;
    directories.keep();
    Ok(files)
}

/// Only what an installation has made may be replaced.
fn check_replaceable(path: &Path) -> anyhow::Result<()> {
    match kind(path)? {
        Some(kind) if !kind.is_file() => bail!(
            "{} is no regular file, and is not replaced: remove it first",
            path.display()
        ),
        _ => Ok(()),
    }
}

/// A link is the library's own if it leads to a version of the library beside it.
fn check_link(path: &Path, plain: &str) -> anyhow::Result<()> {
    if !kind(path)?.is_some_and(|kind| kind.is_symlink()) {
        return check_replaceable(path);
    }
    let target = path
        .read_link()
        .with_context(|| format!("{} cannot be read", path.display()))?;
    let name = target.to_string_lossy();
    let own = name
        .strip_prefix(plain)
        .is_some_and(|rest| rest.starts_with('.'));
    match own && !name.contains('/') {
        true => Ok(()),
        false => bail!(
            "{} leads to {}, which is not of this library, and is not replaced: remove it first",
            path.display(),
            target.display()
        ),
    }
}

fn kind(path: &Path) -> anyhow::Result<Option<fs::FileType>> {
    match path.symlink_metadata() {
        Ok(metadata) => Ok(Some(metadata.file_type())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be looked at", path.display())),
    }
}

/// Directories that were made, and are removed again unless they are kept.
struct Directories(Vec<PathBuf>);

impl Directories {
    fn make(paths: &[&Path]) -> anyhow::Result<Directories> {
        let mut made = Directories(Vec::new());
        for path in paths {
            let missing = path.ancestors().take_while(|path| !path.exists());
            let mut missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
            missing.reverse();
            for directory in missing {
                match fs::create_dir(&directory) {
                    Ok(()) => made.0.push(directory),
                    // Another process was faster.
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    Err(error) => {
                        let path = directory.display();
                        return Err(error).with_context(|| format!("{path} cannot be made"));
                    }
                }
            }
        }
        Ok(made)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        for directory in self.0.iter().rev() {
            // One that something else is in by now stays.
            let _ = fs::remove_dir(directory);
        }
    }
}

/// Directories beside the places of files, on the same file systems; only this user can access them.
#[derive(Default)]
struct Staged(Vec<(PathBuf, TempDir)>);

impl Staged {
    /// One that is removed when the installation ends, for the files of `directory`.
    fn directory(&mut self, directory: &Path) -> anyhow::Result<PathBuf> {
        let made = tempfile::Builder::new()
            .prefix(".dray-")
            .tempdir_in(directory)
            .with_context(|| format!("{} cannot be written", directory.display()))?;
        let path = made.path().to_path_buf();
        self.0.push((directory.to_path_buf(), made));
        Ok(path)
    }

    /// Renames the files of these directories and names, in this order: where they are now.
    fn put_in_place<'a>(
        &self,
        files: impl Iterator<Item = (&'a Path, &'a str)>,
    ) -> anyhow::Result<Vec<PathBuf>> {
        let mut placed: Vec<PathBuf> = Vec::new();
        for (directory, name) in files {
            let mut staged = self.0.iter().filter(|(of, _)| of == directory);
            let (_, staged) = staged.next().context("each directory has been staged")?;
            let path = directory.join(name);
            fs::rename(staged.path().join(name), &path).with_context(|| {
                let new: Vec<String> = placed.iter().map(|p| p.display().to_string()).collect();
                format!(
                    "{} cannot be replaced; replaced before it: {}",
                    path.display(),
                    match new.is_empty() {
                        true => "nothing".to_owned(),
                        false => new.join(", "),
                    }
                )
            })?;
            placed.push(path);
        }
        Ok(placed)
    }
}

/// A file that is not there yet, with these bytes and the mode 0644.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let made = new_file(path).and_then(|mut file| file.write_all(bytes));
    made.with_context(|| format!("{} cannot be written", path.display()))
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut source =
        File::open(from).with_context(|| format!("{} cannot be read", from.display()))?;
    let copied = new_file(to).and_then(|mut to| io::copy(&mut source, &mut to));
    copied.with_context(|| format!("{} cannot be copied to {}", from.display(), to.display()))?;
    Ok(())
}

fn new_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    // Whatever the umask is: others use the library.
    file.set_permissions(Permissions::from_mode(0o644))?;
    Ok(file)
}

fn pkg_config(library: &Library) -> String {
    let InstallPaths { prefix, libdir, .. } = &library.paths;
    let kind = library.kind;
    let escaped = |path: &str| path.replace(' ', "\\ ");
    let include = match kind.searched {
        "" => "${includedir}".to_owned(),
        below => format!("${{includedir}}/{below}"),
    };
    format!(
        "prefix={}\nlibdir=${{prefix}}/{}\nincludedir=${{prefix}}/include\n\nName: {}\n\
         Description: {}\nVersion: {}\n\
         Cflags: -I{include}\nLibs: -L${{libdir}} -l{}\nLibs.private: {}\n",
        escaped(prefix.trim_end_matches('/')),
        escaped(libdir),
        kind.package,
        kind.description,
        library.version,
        kind.name,
        SYSTEM_LIBRARIES.join(" "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_cannot_be_written_names_its_target() {
        let directory = tempfile::tempdir().expect("a directory");
        let from = directory.path().join("from");
        fs::write(&from, "bytes").expect("a file");
        let to = directory.path().join("missing/to");
        let error = format!("{:#}", copy(&from, &to).expect_err("no directory"));
        assert!(error.contains(&to.display().to_string()), "{error}");
        // What cannot be read is not blamed on the target.
        let error = format!("{:#}", copy(&to, &from).expect_err("no source"));
        assert!(
            error.contains(&format!("{} cannot be read", to.display())),
            "{error}"
        );
        assert!(!error.contains(&from.display().to_string()), "{error}");
    }
}
