//! What programs rely on in a shared library: functions and their version nodes, values of constants, sizes and alignment
//! of types, places of fields. `docs/abi.md` is the policy.
//!
//! A record, `abi/libNAME.so.N.txt` of a crate, has two parts: what the last release had, of which nothing may change while
//! the library has this name, and what was added since.

mod header;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, bail, ensure};

use crate::install::{INTERFACE, Kind};
use header::Header;

/// Compares a library that is installed below `prefix`, with its libraries in `lib`, with the record in `directory`.
///
/// The variable `DRAY_WRITE_ABI` has the record written: `since` after an addition, `release` at a release.
///
/// # Errors
/// What the last release had is missing or changed; an addition that is not recorded, or not in the newest version node; a
/// name or a version that does not follow the policy. The error says what to do. Also without a C compiler or readelf.
pub fn check(kind: &Kind, prefix: &Path, directory: &Path) -> anyhow::Result<()> {
    check_names(kind, prefix)?;
    let now = interface(kind, prefix)?;
    let path = directory.join(format!("lib{}.so.{INTERFACE}.txt", kind.name));
    let mut record = Record::read(&path)?;
    let broken = broken(&record.released, &now);
    ensure!(
        broken.is_empty(),
        "programs that are linked with lib{}.so.{INTERFACE} rely on these, which are not as they were; keep them, or raise \
         INTERFACE in crates/xtask/src/install.rs:\n{}",
        kind.name,
        broken.join("\n")
    );
    match std::env::var("DRAY_WRITE_ABI").as_deref() {
        Ok("release") => record = Record::of_release(now.clone()),
        Ok("since") => record.since = added(&record.released, &now),
        Ok(other) => bail!("DRAY_WRITE_ABI={other}: it is since or release"),
        Err(_) => {}
    }
    check_nodes(kind.symbols, &record)?;
    if std::env::var_os("DRAY_WRITE_ABI").is_some() {
        fs::write(&path, record.text(kind)).with_context(|| path.display().to_string())?;
    }
    ensure!(
        record.version == env!("CARGO_PKG_VERSION"),
        "{} is of the release {}: DRAY_WRITE_ABI=release records this one",
        path.display(),
        record.version
    );
    let since = added(&record.released, &now);
    let differs = |a: &[String], b: &[String]| -> Vec<String> {
        a.iter().filter(|line| !b.contains(line)).cloned().collect()
    };
    let (new, gone) = (
        differs(&since, &record.since),
        differs(&record.since, &since),
    );
    ensure!(
        new.is_empty() && gone.is_empty(),
        "what was added since the release {} is recorded by DRAY_WRITE_ABI=since.\nnew:\n{}\ngone:\n{}",
        record.version,
        new.join("\n"),
        gone.join("\n")
    );
    Ok(())
}

/// What a file says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Record {
    version: String,
    released: Vec<String>,
    since: Vec<String>,
}

const RELEASED: &str = "# Released with ";
const SINCE: &str = "# Added since, and not released:";

impl Record {
    fn read(path: &Path) -> anyhow::Result<Record> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let lines = |text: &str| text.lines().map(str::to_owned).collect();
        let parts = text
            .split_once(RELEASED)
            .and_then(|(_, rest)| rest.split_once(":\n"))
            .and_then(|(version, rest)| Some((version, rest.split_once(&format!("{SINCE}\n"))?)));
        let (version, (released, since)) =
            parts.with_context(|| format!("{} has no two parts", path.display()))?;
        Ok(Record {
            version: version.to_owned(),
            released: lines(released),
            since: lines(since),
        })
    }

    fn of_release(now: Vec<String>) -> Record {
        Record {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            released: now,
            since: Vec::new(),
        }
    }

    fn text(&self, kind: &Kind) -> String {
        let head = format!(
            "# What programs rely on in lib{}.so.{INTERFACE}: see docs/abi.md.",
            kind.name
        );
        let released = format!("{RELEASED}{}:", self.version);
        let lines = [head, released].into_iter().chain(self.released.clone());
        let lines = lines.chain([SINCE.to_owned()]).chain(self.since.clone());
        lines.map(|line| line + "\n").collect()
    }
}

/// What the library has and the last release had not.
fn added(released: &[String], now: &[String]) -> Vec<String> {
    let lines = now.iter().filter(|line| !released.contains(line));
    lines.cloned().collect()
}

/// What a program that relies on `old` does not find in `new`.
fn broken(old: &[String], new: &[String]) -> Vec<String> {
    let new_sizes: BTreeMap<&str, Size<'_>> = new.iter().filter_map(|line| size(line)).collect();
    // One that begins with its size may grow.
    let grows = |name: &str| {
        let first = format!("field {name}.size: size_t at 0,");
        old.iter().any(|line| line.starts_with(&first))
    };
    let is_there = |line: &&String| match size(line) {
        Some((name, (bytes, alignment))) if grows(name) => {
            let now = new_sizes.get(name);
            now.is_some_and(|(now, of)| *now >= bytes && *of == alignment)
        }
        // Its place is kept by the size, and may be given a name.
        _ if line.contains(".reserved") => true,
        _ => new.contains(line),
    };
    old.iter().filter(|line| !is_there(line)).cloned().collect()
}

/// Bytes of a structure, and what it is aligned to.
type Size<'a> = (u64, &'a str);

/// The structure that a line is about.
fn size(line: &str) -> Option<(&str, Size<'_>)> {
    let (name, rest) = line.strip_prefix("structure ")?.split_once(" of ")?;
    let (bytes, alignment) = rest.split_once(" bytes, aligned to ")?;
    Some((name, (bytes.parse().ok()?, alignment)))
}

/// A node that was released gets nothing more, and all that is new is in the newest: a program that needs it does not start
/// with an older library, and says so, where it would otherwise end at the first call.
fn check_nodes(script: &str, record: &Record) -> anyhow::Result<()> {
    let node = |line: &'_ str| -> Option<String> {
        let of_function = line.strip_prefix("function ")?;
        Some(of_function.rsplit_once(" in ")?.1.to_owned())
    };
    let newest = nodes(script).pop().context("a version script has a node")?;
    let is_released = |of: &str| {
        record
            .released
            .iter()
            .any(|l| node(l).as_deref() == Some(of))
    };
    for line in &record.since {
        let Some(node) = node(line) else { continue };
        ensure!(
            node == newest,
            "{line}: what is new belongs in the newest node, {newest}"
        );
        ensure!(
            !is_released(&node),
            "{line}: the node was released with {} and gets nothing more; list its functions by name in the version script, \
             and begin a new node",
            record.version
        );
    }
    Ok(())
}

/// The nodes of a version script, oldest first.
fn nodes(script: &str) -> Vec<String> {
    let heads = script.split('{').map(|text| text.trim_end());
    let names = heads.filter_map(|text| text.split([';', '\n']).next_back());
    let names = names.map(|name| name.trim().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

/// The one rule: crate, .pc and file have the version; the name that programs ask for has [`INTERFACE`], and so has the first
/// node.
fn check_names(kind: &Kind, prefix: &Path) -> anyhow::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let soname = format!("lib{}.so.{INTERFACE}", kind.name);
    let pc = format!("lib/pkgconfig/{}.pc", kind.package);
    let pc = fs::read_to_string(prefix.join(&pc)).context(pc)?;
    ensure!(
        pc.lines().any(|line| line == format!("Version: {version}")),
        "the crates are {version}, but not {}.pc:\n{pc}",
        kind.package
    );
    let shared = prefix.join(format!("lib/{soname}.{version}"));
    let dynamic = said(Command::new("readelf").args(["-d", "-W"]).arg(&shared))?;
    ensure!(
        dynamic.contains(&format!("soname: [{soname}]")),
        "{} is not {soname}:\n{dynamic}",
        shared.display()
    );
    let first = nodes(kind.symbols).into_iter().next().unwrap_or_default();
    ensure!(
        first.ends_with(&format!("_{INTERFACE}")),
        "{soname} begins with the node {first}: begin anew with one that ends in _{INTERFACE}"
    );
    Ok(())
}

/// A line for each thing that a program relies on.
fn interface(kind: &Kind, prefix: &Path) -> anyhow::Result<Vec<String>> {
    let directory = prefix.join("include").join(kind.include);
    let names = kind.headers.iter().filter(|name| name.ends_with(".h"));
    let mut text = String::new();
    for name in names.clone() {
        text += &fs::read_to_string(directory.join(name)).with_context(|| (*name).to_owned())?;
    }
    let header = Header::parsed(&text)?;
    let mut lines = layout(&header, &directory, names.copied())?;
    let shared = prefix.join(format!("lib/lib{}.so", kind.name));
    let mut exported = exported(&shared)?;
    for (name, declaration) in &header.functions {
        let node = exported.remove(name).with_context(|| {
            format!("{name} is declared and not exported: is it in the version script?")
        })?;
        lines.push(format!("function {declaration} in {node}"));
    }
    let rest: Vec<_> = exported.into_keys().collect();
    ensure!(
        rest.is_empty(),
        "exported and in no header: {}",
        rest.join(", ")
    );
    Ok(lines)
}

/// What the C compiler makes of the constants and types.
fn layout<'a>(
    header: &Header,
    directory: &Path,
    names: impl Iterator<Item = &'a str>,
) -> anyhow::Result<Vec<String>> {
    let mut program = String::from("#include <stddef.h>\n#include <stdio.h>\n");
    for name in names {
        program += &format!("#include \"{name}\"\n");
    }
    program += "int main(void) {\n";
    for name in &header.constants {
        program += &format!("printf(\"constant {name} %lld\\n\", (long long)({name}));\n");
    }
    for name in &header.types {
        program += &format!("printf(\"type {name} of %zu bytes\\n\", sizeof({name}));\n");
    }
    for (name, fields) in &header.structures {
        program += &format!(
            "printf(\"structure {name} of %zu bytes, aligned to %zu\\n\", sizeof({name}), __alignof__({name}));\n"
        );
        for (kind, field) in fields {
            program += &format!(
                "printf(\"field {name}.{field}: {kind} at %zu, %zu bytes\\n\", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));\n"
            );
        }
    }
    program.push_str("return 0; }\n");
    let scratch = tempfile::tempdir().context("a temporary directory")?;
    let (source, built) = (scratch.path().join("abi.c"), scratch.path().join("abi"));
    fs::write(&source, program).context("the program")?;
    let mut cc = Command::new("cc");
    said(
        cc.arg("-I")
            .arg(directory)
            .arg(&source)
            .arg("-o")
            .arg(&built),
    )?;
    let text = said(&mut Command::new(built))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Exported names, and the version node of each.
fn exported(shared: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let text = said(
        Command::new("readelf")
            .args(["--dyn-syms", "-W"])
            .arg(shared),
    )?;
    let mut names = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Number, value, size, type, binding, visibility, section, name. The nodes themselves are absolute.
        let [_, _, _, _, _, "DEFAULT", section, name] = words[..] else {
            continue;
        };
        if ["UND", "ABS"].contains(&section) {
            continue;
        }
        let (plain, node) = name
            .split_once("@@")
            .with_context(|| format!("{name} has no version"))?;
        names.insert(plain.to_owned(), node.to_owned());
    }
    Ok(names)
}

fn said(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .with_context(|| format!("{name} cannot be run"))?;
    ensure!(
        status.success(),
        "{name}: {status}: {}",
        String::from_utf8_lossy(&stderr)
    );
    String::from_utf8(stdout).with_context(|| format!("{name} prints no text"))
}

#[cfg(test)]
mod tests;
