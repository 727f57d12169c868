//! Files of a crate that name each other in a circle, by `crate::` and `super::`.

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use super::source::Source;

/// The module of a file below `src`: `["a", "b"]` of `a/b.rs` and of `a/b/mod.rs`.
fn module(path: &str) -> Option<Vec<&str>> {
    let (_, file) = path.split_once("/src/")?;
    let names: Vec<&str> = file.strip_suffix(".rs")?.split('/').collect();
    match names.as_slice() {
        ["lib" | "main"] => Some(Vec::new()),
        [of @ .., "mod"] => Some(of.to_vec()),
        _ => Some(names),
    }
}

/// The paths that a line names: `crate::a::b::C`, `super::D`.
fn named<'a>(line: &'a str, own: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in line.match_indices(start) {
            if line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let path = line[at..].split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            let mut steps = path.into_iter().next().unwrap_or("").split("::").peekable();
            let mut to = own.to_vec();
            if steps.next_if_eq(&"crate").is_some() {
                to.clear();
            }
            while steps.next_if_eq(&"super").is_some() {
                to.pop();
            }
            to.extend(steps);
            found.push(to);
        }
    }
    found
}

pub(crate) fn find(sources: &[Source], findings: &mut Findings) {
    let mut rooms: BTreeMap<&str, Vec<(Vec<&str>, &Source)>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.code > 0) {
        if let Some(module) = module(&source.path) {
            rooms
                .entry(source.room())
                .or_default()
                .push((module, source));
        }
    }
    for (room, files) in rooms {
        // The file that has what a path names: that of its longest beginning. A parent that hands names of its children on
        // makes no circle of them.
        let file = |path: &[&str]| {
            let has = |module: &Vec<&str>| path.starts_with(module);
            let within = (0..files.len()).filter(|n| has(&files[*n].0));
            within.max_by_key(|n| files[*n].0.len())
        };
        let arrows: Vec<BTreeSet<usize>> = files
            .iter()
            .map(|(own, source)| {
                let lines = source
                    .lines()
                    .filter(|line| !line.trim_start().starts_with("//"));
                let paths = lines.flat_map(|line| named(line, own));
                let to = paths.filter_map(|path| file(&path));
                to.filter(|to| !own.starts_with(&files[*to].0)).collect()
            })
            .collect();
        for circle in circles(&arrows) {
            let name = |n: &usize| files[*n].1.path.rsplit("/src/").next().expect("its name");
            let first: Vec<&str> = circle.iter().take(2).map(name).collect();
            findings.insert(format!("circle {room} {}", first.join(" ")), circle.len());
        }
    }
}

/// The strongly connected components of more than one node: those that reach each other.
fn circles(arrows: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let reach: Vec<BTreeSet<usize>> = (0..arrows.len())
        .map(|from| {
            let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
            while let Some(node) = left.pop() {
                left.extend(arrows[node].iter().filter(|to| seen.insert(**to)));
            }
            seen
        })
        .collect();
    let mut placed = BTreeSet::new();
    let mut found = Vec::new();
    for from in 0..arrows.len() {
        let circle: Vec<usize> = reach[from]
            .iter()
            .copied()
            .filter(|to| reach[*to].contains(&from))
            .collect();
        if circle.len() > 1 && placed.insert(circle[0]) {
            found.push(circle);
        }
    }
    found
}
