//! `cargo xtask dist`: a tarball and a Debian package, from the same tree, and their checksums.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::install::INTERFACE;

/// What a package is made of.
#[derive(Debug)]
pub struct Dist<'a> {
    /// The checkout.
    pub root: &'a Path,
    /// Where packages go; what is there of an earlier run is replaced.
    pub out: &'a Path,
    /// The program.
    pub dray: &'a Path,
    /// Version of both packages.
    pub version: &'a str,
    /// Seconds since 1970 that every file is dated.
    pub epoch: u64,
}

/// Shells whose completions are shipped, with where they look for them below /usr.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/dray"),
    ("zsh", "share/zsh/vendor-completions/_dray"),
    ("fish", "share/fish/vendor_completions.d/dray.fish"),
];

/// Examples that a package has.
const EXAMPLES: [&str; 7] = [
    "flows.toml",
    "jobs.toml",
    "my-accel-config.json",
    "program.c",
    "script.py",
    "two-gpus.toml",
    "two-gpus-flows.toml",
];

/// Directory of libraries in a Debian system.
pub const LIBDIR: &str = "lib/x86_64-linux-gnu";

/// Puts everything but the library below `usr`, which the library is in already. What debuggers read of program and libraries
/// goes below `debug` instead.
///
/// # Errors
/// A file that cannot be written; a command that fails; a program or library without a build-id.
pub fn stage(dist: &Dist<'_>, usr: &Path, debug: &Path) -> anyhow::Result<()> {
    let program = usr.join("bin/dray");
    put(
        &program,
        &fs::read(dist.dray).context("the program")?,
        0o755,
    )?;
    keep_debug(&program, debug)?;
    run("strip", [program.as_os_str()])?;
    for library in files(&usr.join(LIBDIR))? {
        if library.is_symlink() || !library.is_file() {
            continue;
        }
        match library
            .extension()
            .is_some_and(|extension| extension == "a")
        {
            true => run(
                "strip",
                ["--strip-debug".as_ref(), "-D".as_ref(), library.as_os_str()],
            )?,
            // A shared library is no program, and Debian's have no symbols but those that are exported.
            false => {
                keep_debug(&library, debug)?;
                run("strip", ["--strip-unneeded".as_ref(), library.as_os_str()])?;
                fs::set_permissions(&library, fs::Permissions::from_mode(0o644))
                    .context("the library's mode")?;
            }
        }
    }
    let man = usr.join("share/man/man1");
    run(dist.dray, ["man".as_ref(), man.as_os_str()])?;
    for page in files(&man)? {
        run("gzip", ["-9n".as_ref(), page.as_os_str()])?;
    }
    for (shell, path) in COMPLETIONS {
        let script = said(dist.dray, ["completions", shell])?;
        put(&usr.join(path), script.as_bytes(), 0o644)?;
    }
    let doc = usr.join("share/doc/dray");
    for name in EXAMPLES {
        let text = fs::read(dist.root.join("examples").join(name)).context(name)?;
        put(&doc.join("examples").join(name), &text, 0o644)?;
    }
    for schema in files(&dist.root.join("docs/schemas"))? {
        let name = schema.file_name().context("a schema's name")?;
        let text = fs::read(&schema).with_context(|| schema.display().to_string())?;
        put(&doc.join("schemas").join(name), &text, 0o644)?;
    }
    put(
        &doc.join("copyright"),
        copyright(dist.root)?.as_bytes(),
        0o644,
    )?;
    let changes = fs::read(dist.root.join("CHANGELOG.md")).context("CHANGELOG.md")?;
    put(&doc.join("CHANGELOG.md"), &changes, 0o644)?;
    put(&doc.join("changelog"), changelog(dist)?.as_bytes(), 0o644)?;
    for name in ["CHANGELOG.md", "changelog"] {
        run("gzip", ["-9n".as_ref(), doc.join(name).as_os_str()])?;
    }
    let overrides = usr.join("share/lintian/overrides/dray");
    put(&overrides, OVERRIDES.as_bytes(), 0o644)
}

/// Copies what debuggers read of a file, before it is stripped, to where they look below `usr` by its build-id.
///
/// # Errors
/// readelf or objcopy fails; the file has no build-id.
pub fn keep_debug(file: &Path, usr: &Path) -> anyhow::Result<()> {
    let notes = said("readelf", ["-n".as_ref(), file.as_os_str()])?;
    let id = notes
        .lines()
        .find_map(|l| l.trim().strip_prefix("Build ID: "));
    let (first, rest) = id
        .and_then(|id| id.split_at_checked(2))
        .with_context(|| format!("{} has no build-id", file.display()))?;
    let directory = usr.join("lib/debug/.build-id").join(first);
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    let kept = directory.join(format!("{rest}.debug"));
    run(
        "objcopy",
        [
            "--only-keep-debug".as_ref(),
            "--compress-debug-sections=zlib".as_ref(),
            file.as_os_str(),
            kept.as_os_str(),
        ],
    )?;
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o644)).context("the file's mode")
}

/// The project has no mail host.
const MAINTAINER: &str = "The dray authors <dray@localhost.localdomain>";

/// Why the package is one, and not three.
const OVERRIDES: &str = "\
# Command, library and headers are one package: nobody can have a command and a library of two versions.
dray: package-name-doesnt-match-sonames libdray-dml1 libdray-dto1 libdray1
dray: non-dev-pkg-with-shlib-symlink
dray: no-symbols-control-file
# The package is not part of Debian: there is no bug in its tracker that it closes.
dray: initial-upload-closes-no-bugs
# The project has no mail host.
dray: bogus-mail-host
dray: bogus-mail-host-in-debian-changelog
";

/// Puts a program that needs no library below `usr`, with its licence.
///
/// # Errors
/// A file that cannot be written; a command that fails; a program that does need one.
pub fn stage_static(dist: &Dist<'_>, program: &Path, usr: &Path) -> anyhow::Result<()> {
    let headers = said("readelf", ["-l".as_ref(), program.as_os_str()])?;
    if headers.contains("INTERP") {
        bail!("{} asks for a dynamic linker", program.display());
    }
    let own = usr.join("bin/dray");
    put(
        &own,
        &fs::read(program).context("the static program")?,
        0o755,
    )?;
    run("strip", [own.as_os_str()])?;
    let doc = usr.join("share/doc/dray");
    put(
        &doc.join("copyright"),
        copyright(dist.root)?.as_bytes(),
        0o644,
    )
}

/// The tarball of a tree, to be unpacked below a prefix: the same bytes for the same tree.
///
/// # Errors
/// tar or gzip fails.
pub fn tarball(dist: &Dist<'_>, usr: &Path, system: &str) -> anyhow::Result<PathBuf> {
    let name = format!("dray-{}-x86_64-{system}", dist.version);
    let path = dist.out.join(format!("{name}.tar"));
    let from = usr.parent().context("a directory above")?;
    run(
        "tar",
        [
            "--sort=name".as_ref(),
            "--owner=0".as_ref(),
            "--group=0".as_ref(),
            "--numeric-owner".as_ref(),
            OsStr::new(&format!("--mtime=@{}", dist.epoch)),
            OsStr::new(&format!("--transform=s,^usr,{name},")),
            "--exclude=usr/share/lintian".as_ref(),
            "-C".as_ref(),
            from.as_os_str(),
            "-cf".as_ref(),
            path.as_os_str(),
            "usr".as_ref(),
        ],
    )?;
    run("gzip", ["-9nf".as_ref(), path.as_os_str()])?;
    Ok(path.with_extension("tar.gz"))
}

/// The Debian package of the tree whose `usr` it is: the same bytes for the same tree.
///
/// # Errors
/// dpkg-shlibdeps or dpkg-deb is not there, or fails.
pub fn debian(dist: &Dist<'_>, usr: &Path) -> anyhow::Result<PathBuf> {
    let tree = usr.parent().context("a directory above")?;
    let control = tree.join("DEBIAN");
    let depends = shared_libraries(dist, usr)?;
    let kilobytes: u64 = sizes(usr)?.div_ceil(1024);
    let text = format!(
        "Package: dray\nVersion: {}\nArchitecture: amd64\nMaintainer: {MAINTAINER}\n\
         Section: utils\nPriority: optional\nInstalled-Size: {kilobytes}\nDepends: {depends}\n\
         Recommends: fuse3\nDescription: {DESCRIPTION}",
        dist.version
    );
    put(&control.join("control"), text.as_bytes(), 0o644)?;
    put(
        &control.join("triggers"),
        b"activate-noawait ldconfig\n",
        0o644,
    )?;
    put(
        &control.join("shlibs"),
        format!(
            "libdray {INTERFACE} dray\nlibdray_dml {INTERFACE} dray\nlibdray_dto {INTERFACE} dray\n"
        )
        .as_bytes(),
        0o644,
    )?;
    build(dist, tree, "dray")
}

/// The Debian package of the tree that [`stage`] has put apart: `dray-dbgsym`, as Debian names them.
///
/// # Errors
/// dpkg-deb is not there, or fails.
pub fn debian_debug(dist: &Dist<'_>, usr: &Path) -> anyhow::Result<PathBuf> {
    let tree = usr.parent().context("a directory above")?;
    let kilobytes: u64 = sizes(usr)?.div_ceil(1024);
    let version = dist.version;
    let text = format!(
        "Package: dray-dbgsym\nVersion: {version}\nArchitecture: amd64\nMaintainer: {MAINTAINER}\n\
         Section: debug\nPriority: optional\nInstalled-Size: {kilobytes}\nDepends: dray (= {version})\n\
         Description: debug symbols for dray\n"
    );
    put(&tree.join("DEBIAN/control"), text.as_bytes(), 0o644)?;
    put(
        &usr.join("share/doc/dray-dbgsym/copyright"),
        copyright(dist.root)?.as_bytes(),
        0o644,
    )?;
    build(dist, tree, "dray-dbgsym")
}

/// A package of a tree that has its control files.
fn build(dist: &Dist<'_>, tree: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let sums = said(
        "sh",
        [
            "-c",
            "cd \"$1\" && find usr -type f | LC_ALL=C sort | xargs -d '\\n' md5sum",
            "sh",
            &tree.to_string_lossy(),
        ],
    )?;
    put(&tree.join("DEBIAN/md5sums"), sums.as_bytes(), 0o644)?;
    date(dist, tree)?;
    let path = dist.out.join(format!("{name}_{}_amd64.deb", dist.version));
    let mut command = Command::new("dpkg-deb");
    command
        .env("SOURCE_DATE_EPOCH", dist.epoch.to_string())
        .args(["--root-owner-group", "-Zxz", "--build"])
        .args([tree, path.as_path()]);
    output(&mut command)?;
    Ok(path)
}

const DESCRIPTION: &str = "workbench for hardware data movers, Intel DSA first\n \
A DSA copies, fills, compares and checksums memory while the CPU does\n \
something else. dray sets it up, finds out why it does not work, measures\n \
it, models it, and stands in for it where there is none: unmodified\n \
programs find a virtual device.\n .\n \
The package has the command, the library libdray with headers for C and\n \
C++, pkg-config and CMake files.\n";

/// `SHA256SUMS` beside the packages.
///
/// # Errors
/// sha256sum fails.
pub fn checksums(out: &Path, packages: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let mut command = Command::new("sha256sum");
    let names = packages.iter().filter_map(|path| path.file_name());
    command.current_dir(out).args(names);
    let sums = output(&mut command)?;
    let path = out.join("SHA256SUMS");
    put(&path, &sums, 0o644)?;
    Ok(path)
}

/// Packages that the program and the library need, by their symbols.
fn shared_libraries(dist: &Dist<'_>, usr: &Path) -> anyhow::Result<String> {
    let scratch = tempfile::tempdir().context("a temporary directory")?;
    put(
        &scratch.path().join("debian/control"),
        b"Source: dray\n\nPackage: dray\nArchitecture: amd64\n",
        0o644,
    )?;
    let library = format!("libdray.so.{INTERFACE}.{}", dist.version);
    let mut command = Command::new("dpkg-shlibdeps");
    command
        .current_dir(scratch.path())
        .arg("-O")
        .args([usr.join("bin/dray"), usr.join(LIBDIR).join(library)]);
    let said = String::from_utf8(output(&mut command)?).context("text")?;
    let depends = said.trim().strip_prefix("shlibs:Depends=");
    Ok(depends
        .with_context(|| format!("dpkg-shlibdeps: {said}"))?
        .to_owned())
}

/// Dates every file of the tree, so that two trees of one commit are the same.
fn date(dist: &Dist<'_>, tree: &Path) -> anyhow::Result<()> {
    let at = format!("@{}", dist.epoch);
    run(
        "find",
        [
            tree.as_os_str(),
            "-exec".as_ref(),
            "touch".as_ref(),
            "-hd".as_ref(),
            at.as_ref(),
            "{}".as_ref(),
            "+".as_ref(),
        ],
    )
}

/// In the format of Debian, whose tools read it.
fn changelog(dist: &Dist<'_>) -> anyhow::Result<String> {
    let date = said("date", ["-u", "-R", "-d", &format!("@{}", dist.epoch)])?;
    Ok(format!(
        "dray ({}) unstable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n\n -- {MAINTAINER}  {date}",
        dist.version
    ))
}

fn copyright(root: &Path) -> anyhow::Result<String> {
    let mit = fs::read_to_string(root.join("LICENSE-MIT")).context("LICENSE-MIT")?;
    Ok(format!(
        "dray is free software, at your choice under the Apache License, version 2.0, or the MIT License.\n\n\
         On Debian systems, the Apache License is in /usr/share/common-licenses/Apache-2.0.\n\n{mit}"
    ))
}

fn put(path: &Path, bytes: &[u8], mode: u32) -> anyhow::Result<()> {
    let name = || format!("{} cannot be written", path.display());
    let parent = path.parent().with_context(name)?;
    fs::create_dir_all(parent).with_context(name)?;
    fs::write(path, bytes).with_context(name)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).with_context(name)
}

fn files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn sizes(directory: &Path) -> anyhow::Result<u64> {
    let mut sum = 0;
    for path in files(directory)? {
        let metadata = path.symlink_metadata().context("a file of the tree")?;
        sum += match metadata.is_dir() {
            true => sizes(&path)?,
            false => metadata.len(),
        };
    }
    Ok(sum)
}

fn run<S: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = S>,
) -> anyhow::Result<()> {
    output(Command::new(program).args(arguments)).map(drop)
}

fn said<S: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = S>,
) -> anyhow::Result<String> {
    String::from_utf8(output(Command::new(program).args(arguments))?).context("text")
}

fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("{name} cannot be run"))?;
    if !output.status.success() {
        bail!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}
