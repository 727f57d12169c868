//! Findings as SARIF 2.1.0 (OASIS), which editors and code hosts read.

use dray_run::{Class, Finding, Findings, Frame, Site};
use serde_json::{Map, Value, json};

/// One run, with a rule for each class.
pub(super) fn document(findings: &Findings) -> Value {
    let rules = Class::ALL.map(|class| {
        json!({
            "id": class.name(),
            "shortDescription": {"text": class.rule()},
            "help": {"text": class.fix()},
            "defaultConfiguration": {"level": "error"},
        })
    });
    let results: Vec<Value> = findings.said.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "dray",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": results,
        }],
    })
}

fn result(finding: &Finding) -> Value {
    let class = finding.class;
    let index = Class::ALL.iter().position(|known| *known == class);
    let mut text = finding.to_string();
    text.truncate(text.find("\n  rule: ").unwrap_or(text.len()));
    let sites = [&finding.site, &finding.other_site].into_iter().flatten();
    let stacks: Vec<Value> = sites.clone().map(stack).collect();
    let mut result = json!({
        "ruleId": class.name(),
        "ruleIndex": index,
        "level": "error",
        "message": {"text": text},
        "locations": finding.site.iter().filter_map(place).collect::<Vec<_>>(),
        "relatedLocations": related(finding),
    });
    if let Some(object) = result.as_object_mut().filter(|_| !stacks.is_empty()) {
        object.insert("stacks".to_owned(), stacks.into());
    }
    result
}

fn stack(site: &Site) -> Value {
    let frames = site.frames.iter().map(|frame| {
        json!({
            "location": location(frame),
            "module": frame.module.as_deref().unwrap_or("unknown"),
            "threadId": site.thread,
        })
    });
    json!({"frames": frames.collect::<Vec<_>>()})
}

/// The innermost function with a line; without one the innermost.
fn place(site: &Site) -> Option<Value> {
    site.frames.get(innermost(site)).map(location)
}

/// Its caller: many programs submit by one function.
fn caller(site: &Site) -> Option<Value> {
    site.frames.get(innermost(site) + 1).map(location)
}

fn innermost(site: &Site) -> usize {
    let mut frames = site.frames.iter();
    let with_line = frames.position(|frame| frame.file.is_some() && frame.line.is_some());
    with_line.unwrap_or(0)
}

/// The other party, and the callers of both.
fn related(finding: &Finding) -> Vec<Value> {
    let (own, other) = (finding.site.as_ref(), finding.other_site.as_ref());
    let related = [
        other.and_then(place),
        own.and_then(caller),
        other.and_then(caller),
    ];
    related.into_iter().flatten().collect()
}

fn location(frame: &Frame) -> Value {
    let mut location = Map::new();
    if let Some(artifact) = frame.file.as_ref().or(frame.module.as_ref()) {
        let mut physical = json!({"artifactLocation": {"uri": uri(artifact)}});
        if let (Some(line), Some(object), Some(_)) =
            (frame.line, physical.as_object_mut(), &frame.file)
        {
            object.insert("region".to_owned(), json!({"startLine": line}));
        }
        location.insert("physicalLocation".to_owned(), physical);
    }
    let name = match &frame.function {
        Some(function) => function.clone(),
        None => format!("{:#x}", frame.address),
    };
    location.insert(
        "logicalLocations".to_owned(),
        json!([{"name": name, "kind": "function"}]),
    );
    Value::Object(location)
}

/// A path as a URI reference (RFC 3986): absolute ones as files.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    if path.starts_with('/') {
        uri.push_str("file://");
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uri_references() {
        assert_eq!(uri("/a b/c%.c"), "file:///a%20b/c%25.c");
        assert_eq!(uri("src/main.c"), "src/main.c");
    }
}
