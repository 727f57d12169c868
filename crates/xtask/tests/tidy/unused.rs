//! Public items whose name stands nowhere else but in tests.

use std::collections::HashMap;

use super::Findings;
use super::source::Source;

const KINDS: &[&str] = &[
    "fn", "struct", "enum", "trait", "const", "static", "type", "union",
];

/// The name of the public item that a line defines.
fn defined(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let mut words = rest.split([' ', '(', '<', ':', ';', '{', '=']);
    let mut word = words.next()?;
    while matches!(word, "unsafe" | "const" | "async" | "extern" | "\"C\"") {
        match words.next()? {
            next if word == "const" && !KINDS.contains(&next) && next != "unsafe" => {
                return Some(next);
            }
            next => word = next,
        }
    }
    KINDS.contains(&word).then(|| words.next())?
}

pub(crate) fn find(sources: &[Source], findings: &mut Findings) {
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for source in sources {
        for line in source.lines() {
            let line = line.trim_start();
            // To hand a name on is no use of it; nor is to speak of it.
            if line.starts_with("pub use ") || line.starts_with("//") {
                continue;
            }
            for word in line.split(|c: char| !c.is_alphanumeric() && c != '_') {
                *uses.entry(word).or_default() += 1;
            }
        }
    }
    for source in sources {
        let lines: Vec<&str> = source.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(name) = defined(line).filter(|name| !name.starts_with('$')) else {
                continue;
            };
            // What others than Rust call has a name for the linker.
            let exported = lines[at.saturating_sub(4)..at]
                .iter()
                .any(|line| line.contains("no_mangle"));
            if !exported && uses.get(name).copied().unwrap_or(0) <= 1 {
                *findings
                    .entry(format!("unused {} {name}", source.path))
                    .or_default() += 1;
            }
        }
    }
}
