//! Every public type has an example in its documentation, which the documentation tests run.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => sources(&path, into),
            false => into.push(path),
        }
    }
}

/// The name of the public type that a line declares.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let kinds = ["struct ", "enum ", "trait "];
    let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    rest.split(|c: char| !c.is_alphanumeric()).next()
}

#[test]
fn every_public_type_has_an_example() {
    let mut files = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut files,
    );
    let (mut found, mut without) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        // Lines of documentation and attributes since the last other line.
        let mut example = false;
        for line in text.lines() {
            if let Some(name) = public_type(line) {
                found += 1;
                if !example {
                    without.push(format!("{}: {name}", file.display()));
                }
            }
            match line.starts_with("///") || line.starts_with("#[") {
                true => example |= line.starts_with("/// ```"),
                false => example = false,
            }
        }
    }
    assert!(found > 70, "{found} public types found");
    assert_eq!(without, Vec::<String>::new());
}
