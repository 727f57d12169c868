//! The files of the workspace, as rustfmt leaves them.

use std::fs;
use std::path::Path;

/// A Rust file below `crates`.
pub(crate) struct Source {
    /// From the workspace's root on.
    pub(crate) path: String,
    pub(crate) text: String,
    /// Lines before the first `#[cfg(test)]` module; 0 in a file of tests.
    pub(crate) code: usize,
}

impl Source {
    pub(crate) fn new(path: String, text: String) -> Source {
        let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
        let code = match is_test {
            true => 0,
            false => {
                let mut lines = text.lines();
                let tests = lines.position(|line| line == "#[cfg(test)]");
                tests.unwrap_or_else(|| text.lines().count())
            }
        };
        Source { path, text, code }
    }

    /// `crates/NAME`.
    pub(crate) fn room(&self) -> &str {
        let end = self.path.match_indices('/').nth(1).map(|(at, _)| at);
        &self.path[..end.expect("it is below crates/NAME")]
    }

    /// Lines that are no tests.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().take(self.code)
    }

    /// Name and lines of each function with a body of its own lines, tests included.
    pub(crate) fn functions(&self) -> Vec<(String, usize)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let mut found = Vec::new();
        for (begin, line) in lines.iter().enumerate() {
            let Some(name) = function(line) else {
                continue;
            };
            let indent = &line[..line.len() - line.trim_start().len()];
            let is_end = |line: &&str| line.strip_prefix(indent) == Some("}");
            let is_other = |line: &&str| line.starts_with(indent) && function(line).is_some();
            let mut rest = lines[begin + 1..].iter().copied();
            let end = rest.position(|line| is_end(&line) || is_other(&line));
            if let Some(length) = end.filter(|at| is_end(&lines[begin + 1 + at])) {
                found.push((name.to_owned(), length + 2));
            }
        }
        found
    }
}

/// The name of the function that begins on a line.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.trim_start().split_once("fn ")?;
    let is_modifier = |word: &str| {
        matches!(word, "pub" | "const" | "unsafe" | "async" | "extern")
            || word.starts_with("pub(")
            || word.starts_with('"')
            || word.ends_with(')')
    };
    before.split_whitespace().all(is_modifier).then_some(())?;
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (end > 0).then_some(&after[..end])
}

/// All of them, in the order of their paths.
pub(crate) fn all(root: &Path) -> Vec<Source> {
    let mut sources = Vec::new();
    walk(root, &root.join("crates"), &mut sources);
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

fn walk(root: &Path, folder: &Path, into: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("its entry").path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                walk(root, &path, into);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("text");
            let path = path.strip_prefix(root).expect("below the root");
            into.push(Source::new(path.display().to_string(), text));
        }
    }
}
