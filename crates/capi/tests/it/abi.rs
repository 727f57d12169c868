//! What programs that were linked with the last release rely on, and libdray still has: functions as they are declared,
//! values of constants, sizes of structures, places of fields.
//!
//! `abi/libdray.so.N.txt` is of the last release that had this name. A program that is linked with `libdray.so.N` runs with
//! every later library of that name; what breaks it needs another N (`INTERFACE` in xtask). At a release:
//! `DRAY_WRITE_ABI=1 cargo test -p dray-capi --test it abi`, which refuses to leave something out.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::toolchain::ROOT;

/// A structure: its name, and type and name of its fields in order.
type Structure = (String, Vec<(String, String)>);

/// What a header declares.
#[derive(Default)]
struct Header {
    constants: Vec<String>,
    structures: Vec<Structure>,
    functions: Vec<String>,
}

/// The text without comments and lines of the preprocessor, with single spaces.
fn stripped(text: &str) -> String {
    let mut rest = text;
    let mut code = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").expect("comments end").1;
    }
    code.push_str(rest);
    let lines = code.lines().filter(|line| !line.starts_with('#'));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words
        .join(" ")
        .replace("extern \"C\" {", "")
        .replace("} }", "}")
}

fn parsed(text: &str) -> Header {
    let mut header = Header::default();
    let code = stripped(text);
    let mut rest = code.as_str();
    while let Some((declaration, after)) = rest.split_once([';', '{']) {
        let declaration = declaration.trim().trim_start_matches('}').trim();
        rest = after;
        if let Some(name) = declaration.strip_prefix("typedef enum ") {
            let (body, after) = rest.split_once(&format!("}} {name};")).expect("it ends");
            let words = body
                .split(',')
                .filter_map(|word| word.split_whitespace().next());
            header.constants.extend(words.map(str::to_owned));
            rest = after;
        } else if let Some(name) = declaration.strip_prefix("typedef struct ")
            && !name.contains(' ')
        {
            let (body, after) = rest.split_once(&format!("}} {name};")).expect("it ends");
            let fields = body.split(';').filter_map(|field| {
                let (kind, name) = field.trim().rsplit_once([' ', '*'])?;
                let star = if field.contains('*') { " *" } else { "" };
                let kind = kind.trim().trim_end_matches('*').trim();
                let (name, array) = name.split_at(name.find('[').unwrap_or(name.len()));
                Some((format!("{kind}{star}{array}"), name.to_owned()))
            });
            header.structures.push((name.to_owned(), fields.collect()));
            rest = after;
        } else if declaration.contains("dray_") && declaration.ends_with(')') {
            header.functions.push(without_names(declaration));
        }
    }
    header
}

/// A function with the types of its parameters, whose names nobody relies on.
fn without_names(declaration: &str) -> String {
    let (name, parameters) = declaration.split_once('(').expect("a function");
    let types = parameters
        .trim_end_matches(')')
        .split(", ")
        .map(|parameter| {
            let end = parameter
                .rfind([' ', '*'])
                .map_or(parameter.len(), |at| at + 1);
            parameter[..end].trim()
        });
    format!("{name}({})", types.collect::<Vec<_>>().join(", "))
}

/// The lines of a record: one for each thing that a program relies on.
fn lines(header: &Header) -> Vec<String> {
    let mut program = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#include \"dray.h\"\nint main(void) {\n",
    );
    for name in &header.constants {
        program += &format!("printf(\"constant {name} %lld\\n\", (long long)({name}));\n");
    }
    for (name, fields) in &header.structures {
        program += &format!("printf(\"structure {name} of %zu bytes\\n\", sizeof({name}));\n");
        for (kind, field) in fields {
            program += &format!(
                "printf(\"field {name}.{field}: {kind} at %zu, %zu bytes\\n\", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));\n"
            );
        }
    }
    program.push_str("return 0; }\n");
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("abi.c");
    let built = directory.path().join("abi");
    fs::write(&source, program).expect("a file");
    let mut cc = Command::new("cc");
    cc.arg("-I").arg(format!("{ROOT}/include")).arg(&source);
    assert!(cc.arg("-o").arg(&built).status().expect("cc").success());
    let output = Command::new(&built).output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let functions = header
        .functions
        .iter()
        .map(|name| format!("function {name}"));
    text.lines().map(str::to_owned).chain(functions).collect()
}

/// What a program that relies on `old` does not find in `new`.
fn broken(old: &[String], new: &[String]) -> Vec<String> {
    let sizes = |lines: &[String]| -> BTreeMap<String, u64> {
        let words = lines.iter().map(|line| line.split(' ').collect::<Vec<_>>());
        let structures = words.filter(|words| words[0] == "structure");
        structures
            .map(|words| (words[1].to_owned(), words[3].parse().expect("a number")))
            .collect()
    };
    let new_sizes = sizes(new);
    // One that begins with its size may grow.
    let grows = |name: &str| {
        old.iter()
            .any(|line| line.starts_with(&format!("field {name}.size: size_t at 0,")))
    };
    let is_there = |line: &&String| match line.strip_prefix("structure ") {
        Some(rest) => {
            let name = rest.split(' ').next().unwrap_or_default();
            let old_size = sizes(&[(*line).clone()])[name];
            let grown = grows(name) && new_sizes.get(name).is_some_and(|size| *size >= old_size);
            grown || new.contains(line)
        }
        // Its place is kept by the size, and may be given a name.
        None if line.contains(".reserved") => true,
        None => new.contains(line),
    };
    old.iter().filter(|line| !is_there(line)).cloned().collect()
}

fn record() -> PathBuf {
    let name = format!("abi/libdray.so.{}.txt", xtask::INTERFACE);
    PathBuf::from(ROOT).join(name)
}

#[test]
fn a_program_of_the_last_release_finds_all_that_it_relies_on() {
    let header = fs::read_to_string(format!("{ROOT}/include/dray.h")).expect("the header");
    let now = lines(&parsed(&header));
    let path = record();
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let old: Vec<String> = kept.lines().skip(1).map(str::to_owned).collect();
    let broken = broken(&old, &now);
    assert!(
        broken.is_empty(),
        "programs that are linked with libdray.so.{} rely on these, which are not there as they were; \
         raise INTERFACE in crates/xtask/src/install.rs, or keep them:\n{}",
        xtask::INTERFACE,
        broken.join("\n")
    );
    let of = concat!(
        "# What programs rely on in libdray ",
        env!("CARGO_PKG_VERSION"),
        "."
    );
    if std::env::var_os("DRAY_WRITE_ABI").is_some() {
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(&path, format!("{of}\n{}\n", now.join("\n"))).expect("it can be written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        kept.lines().next(),
        Some(of),
        "a release is recorded: DRAY_WRITE_ABI=1 cargo test -p dray-capi --test it abi"
    );
}

#[test]
fn everything_that_the_header_declares_is_in_the_record() {
    let header = fs::read_to_string(format!("{ROOT}/include/dray.h")).expect("the header");
    let found = parsed(&header);
    let count = |text: &str| header.matches(text).count();
    assert_eq!(
        found.functions.len(),
        count("\nint dray_") + count("\nconst char *dray_") + count("\nuint32_t dray_")
    );
    assert_eq!(
        found.structures.len(),
        count("typedef struct dray_") - count("typedef struct dray_mover dray_mover;")
    );
    assert!(
        found
            .structures
            .iter()
            .all(|(_, fields)| !fields.is_empty())
    );
    assert_eq!(found.constants.len(), count("\n  DRAY_"));
}

#[test]
fn a_break_is_noticed() {
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let old = lines(
        "constant DRAY_A 1\nstructure dray_x of 16 bytes\nfield dray_x.size: size_t at 0, 8 bytes\n\
         field dray_x.a: uint64_t at 8, 8 bytes\nstructure dray_y of 8 bytes\nfield dray_y.b: uint64_t at 0, 8 bytes\n\
         function int dray_f(int a)",
    );
    assert!(broken(&old, &old).is_empty());
    let mut new = old.clone();
    new.push("function int dray_g(void)".to_owned());
    assert!(broken(&old, &new).is_empty());
    for (from, to, is_broken) in [
        ("DRAY_A 1", "DRAY_A 2", true),
        ("dray_x of 16", "dray_x of 24", false),
        ("dray_x of 16", "dray_x of 8", true),
        ("dray_y of 8", "dray_y of 16", true),
        ("dray_x.a: uint64_t at 8", "dray_x.a: uint64_t at 16", true),
        ("dray_y.b: uint64_t", "dray_y.b: int64_t", true),
        ("dray_f(int a)", "dray_f(long a)", true),
        ("dray_f(int a)", "dray_h(int a)", true),
    ] {
        let new: Vec<String> = old.iter().map(|line| line.replace(from, to)).collect();
        assert_eq!(!broken(&old, &new).is_empty(), is_broken, "{from} -> {to}");
    }
}
