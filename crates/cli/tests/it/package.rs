//! The Debian package, installed into an empty root by dpkg: what it depends on is enough for a first descriptor.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use xtask::dist::{self, Dist, LIBDIR};
use xtask::{DRAY, InstallPaths, Library, compiler, install};

use crate::library_c::toolchain::{ROOT, archive};

/// Of `cargo build`'s own files, not optimised for others: as `cargo xtask dist` makes it otherwise.
fn package(out: &Path) -> PathBuf {
    let stage = out.join("stage");
    let paths = InstallPaths::new(Path::new("/usr"), Some(&stage), Path::new(LIBDIR));
    install(&Library {
        kind: &DRAY,
        archive: archive(),
        headers: Path::new(ROOT).join("include"),
        paths: paths.expect("paths"),
        version: env!("CARGO_PKG_VERSION").into(),
        compiler: compiler("".as_ref()),
    })
    .expect("the library");
    let dist = Dist {
        root: Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")),
        out,
        dray: Path::new(env!("CARGO_BIN_EXE_dray")),
        version: env!("CARGO_PKG_VERSION"),
        epoch: 0,
    };
    let usr = stage.join("usr");
    dist::stage(&dist, &usr, &out.join("debug")).expect("a tree");
    dist::debian(&dist, &usr).expect("a package")
}

/// A root with the files of the packages that `$DEB` depends on, as they are installed here, and dpkg's record of them.
const MAKE_ROOT: &str = r#"
set -eu
mkdir -p "$ROOT/usr/lib" "$ROOT/usr/lib64" "$ROOT/usr/bin" "$ROOT/usr/sbin" "$ROOT/proc" "$ROOT/dev" "$ROOT/sys" "$ROOT/tmp"
for directory in lib lib64 bin sbin; do ln -s "usr/$directory" "$ROOT/$directory"; done
names() { tr , '\n' | sed 's/|.*//; s/(.*//; s/:any//; s/ //g' | grep . || true; }
wanted=$(dpkg-deb -f "$DEB" Depends | names)
known=
while [ -n "$wanted" ]; do
    known=$(printf '%s\n' $known $wanted | sort -u)
    more=$(dpkg-query -W -f '${Pre-Depends}, ${Depends}\n' $wanted | names | sort -u)
    wanted=$(printf '%s\n' $more | grep -vxF "$known" || true)
done
dpkg-query -L $known | sort -u | sed 's,^/,,; /^\.$/d' |
    tar -C / --no-recursion -cf - -T - | tar -C "$ROOT" --keep-directory-symlink -xf -
mkdir -p "$ROOT/var/lib/dpkg/info" "$ROOT/var/lib/dpkg/updates" "$ROOT/var/lib/dpkg/triggers"
dpkg-query -s $known > "$ROOT/var/lib/dpkg/status"
"#;

const RUN: &str = r#"
mount -t proc proc "$ROOT/proc" && mount --rbind /dev "$ROOT/dev" && mount --rbind /sys "$ROOT/sys" &&
exec chroot "$ROOT" /usr/bin/dray run --profile 1e1w-d --require work -- /copy 0"#;

/// A shell's script with the package and the root in its environment.
fn sh(script: &str, deb: &Path, root: &Path) -> Output {
    let mut sh = Command::new("sh");
    sh.args(["-c", script]).env("DEB", deb).env("ROOT", root);
    sh.output().expect("a shell")
}

fn succeeds(script: &str, deb: &Path, root: &Path) -> String {
    let output = sh(script, deb, root);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_package_in_an_empty_root_brings_a_program_to_its_first_descriptor() {
    if !rustix::process::geteuid().is_root() {
        dray_skip::skip("dpkg installs by root");
        return;
    }
    let tools = "command -v dpkg-deb dpkg-shlibdeps dpkg-query unshare";
    if !sh(tools, Path::new(""), Path::new("")).status.success() {
        dray_skip::skip("dpkg-dev is not installed");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let deb = package(directory.path());
    let root = directory.path().join("root");
    succeeds(MAKE_ROOT, &deb, &root);
    succeeds(
        "dpkg --root=\"$ROOT\" --log=/dev/null -i \"$DEB\"",
        &deb,
        &root,
    );
    assert_eq!(succeeds("dpkg --root=\"$ROOT\" -V dray", &deb, &root), "");
    // Headers, library and pkg-config file are what a program is built with.
    let cc = r#"
        export PKG_CONFIG_SYSROOT_DIR="$ROOT" PKG_CONFIG_LIBDIR="$(echo "$ROOT"/usr/lib/*/pkgconfig)"
        cc -o "$ROOT/copy" "$SOURCE" $(pkg-config --cflags --libs dray)"#;
    let cc = cc.replace("$SOURCE", &format!("{ROOT}/examples/copy.c"));
    succeeds(&cc, &deb, &root);
    let mut run = Command::new("timeout");
    run.args([
        "10",
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        RUN,
    ]);
    let output = run.env("ROOT", &root).output().expect("timeout(1)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        output
            .stdout
            .starts_with(b"copy 42: status 1, executor 0\n"),
        "{output:?}"
    );
    assert!(said.is_empty(), "{said}");
    fs::remove_file(root.join("copy")).expect("a file");
    succeeds("dpkg --root=\"$ROOT\" --log=/dev/null -r dray", &deb, &root);
    let left = succeeds("find \"$ROOT/usr\" -name '*dray*'", &deb, &root);
    assert_eq!(left, "", "files of the package are left");
}
