//! Cases by filter, and what to say when there are none.

use regex_lite::Regex;

use crate::BenchError;
use crate::case::Case;

/// The cases whose names a filter matches anywhere; after a minus, those that it does not match.
///
/// # Errors
/// A filter that is no regular expression or leaves nothing, with the nearest cases.
pub fn select(cases: Vec<Case>, filter: &str) -> Result<Vec<Case>, BenchError> {
    if filter.is_empty() || filter == "all" {
        return Ok(cases);
    }
    let (pattern, wanted) = match filter.strip_prefix('-') {
        Some(rest) => (rest, false),
        None => (filter, true),
    };
    let regex = Regex::new(pattern).map_err(|source| BenchError::Filter {
        pattern: filter.to_owned(),
        source,
    })?;
    let total = cases.len();
    let names: Vec<String> = cases.iter().map(Case::to_string).collect();
    let kept: Vec<Case> = cases
        .iter()
        .zip(&names)
        .filter(|(_, name)| regex.is_match(name) == wanted)
        .map(|(case, _)| *case)
        .collect();
    if kept.is_empty() {
        return Err(BenchError::NoMatch {
            pattern: filter.to_owned(),
            cases: total,
            hint: hint(pattern, &names),
        });
    }
    Ok(kept)
}

/// Why nothing matches: the component of the filter that no case has, and what there is instead.
fn hint(pattern: &str, names: &[String]) -> String {
    let nearest = near(pattern, names);
    let nearest = match nearest.is_empty() {
        true => String::new(),
        false => format!("; near: {}", nearest.join(", ")),
    };
    for part in pattern.split('/') {
        let Some((key, value)) = part.split_once(':') else {
            continue;
        };
        let plain = !value.contains(|c: char| !c.is_alphanumeric() && c != '_');
        if !plain || key.contains(|c: char| !c.is_alphanumeric() && c != '_') {
            continue;
        }
        let values = values(key, names);
        if values.is_empty() {
            let keys = "api, path, exec, qsize, bsize, in_mem, out_mem, timer, size, threads";
            return format!("no part of a name is called {key}: they are {keys}{nearest}");
        }
        if !values.contains(&value) {
            let flag = match key {
                "qsize" => format!("; --queue_size={value} adds it"),
                "bsize" => format!("; --batch_size={value} adds it"),
                "size" => format!("; --block_size={value} adds it"),
                "threads" => format!("; --threads={value} adds it"),
                "in_mem" => format!("; --in_mem={value} chooses it"),
                "out_mem" => format!("; --out_mem={value} chooses it"),
                "api" if value == "cpp" => "; it has no integrity fields".to_owned(),
                _ => String::new(),
            };
            let values = values.join(", ");
            return format!("{part} is not there: {key} is one of {values}{flag}{nearest}");
        }
    }
    match apart(pattern, names) {
        Some((one, other @ "exec:async")) => format!(
            "{one} and {other} never meet: each thread needs an operation in flight, --threads up to --queue_size{nearest}"
        ),
        Some((one, other)) => format!("{one} and {other} never meet in a case{nearest}"),
        None => format!("--benchmark_list_tests shows all names{nearest}"),
    }
}

/// Two parts of a filter that names have, but none has both.
fn apart<'p>(pattern: &'p str, names: &[String]) -> Option<(&'p str, &'p str)> {
    let has = |name: &str, wanted: &str| name.split('/').any(|part| part == wanted);
    let parts: Vec<&str> = pattern
        .split('/')
        .filter(|part| names.iter().any(|name| has(name, part)))
        .collect();
    let pairs = parts
        .iter()
        .enumerate()
        .flat_map(|(index, one)| parts[index + 1..].iter().map(move |other| (*one, *other)));
    pairs
        .into_iter()
        .find(|(one, other)| !names.iter().any(|name| has(name, one) && has(name, other)))
}

/// Values that a part of the name has.
fn values<'n>(key: &str, names: &'n [String]) -> Vec<&'n str> {
    let mut values: Vec<&str> = Vec::new();
    for name in names {
        for part in name.split('/') {
            if let Some((k, value)) = part.split_once(':')
                && k == key
                && !values.contains(&value)
            {
                values.push(value);
            }
        }
    }
    values
}

/// The names that share most parts with a filter, at most three.
fn near<'n>(pattern: &str, names: &'n [String]) -> Vec<&'n str> {
    let wanted: Vec<&str> = pattern.split('/').filter(|part| *part != ".*").collect();
    let alike = |name: &str| -> u64 {
        let parts: Vec<&str> = name.split('/').collect();
        let best = |part: &&str| {
            parts
                .iter()
                // A part that is misspelt counts nearly as much as one that is right.
                .map(|p| dray_suggest::likeness(part, p))
                .max()
                .unwrap_or(0)
        };
        wanted.iter().map(best).sum()
    };
    // Names by the thousand: a sample is enough for what is only a hint.
    let step = names.len().div_ceil(4096).max(1);
    let mut scored: Vec<(u64, &str)> = names
        .iter()
        .step_by(step)
        .map(|name| (alike(name), name.as_str()))
        .collect();
    scored.sort_by_key(|(alike, _)| std::cmp::Reverse(*alike));
    scored.truncate(3);
    scored.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Axes;

    fn count(filter: &str) -> usize {
        select(Axes::default().cases(), filter).unwrap().len()
    }

    fn complaint(filter: &str) -> String {
        let error = select(Axes::default().cases(), filter).unwrap_err();
        format!("{error}: {}", error.hint().unwrap_or_default())
    }

    #[test]
    fn documented_filters_select_the_documented_number_of_cases() {
        assert_eq!(
            count(
                "move/api:c/path:dsa/exec:.*/qsize:16/bsize:0/in_mem:llc/out_mem:cc_llc/timer:full/size:1048576/.*"
            ),
            6
        );
        for filter in [
            "copy/api:c/path:cpu/exec:sync/.*",
            "copy/.*/path:dsa/exec:sync/.*/size:4096/.*",
            "move/.*/path:dsa/exec:sync/.*/size:4096/.*",
            "copy/api:c/path:dsa/exec:async/qsize:128/.*/size:4096/.*/threads:8",
            "move/api:c/path:dsa/exec:async/qsize:128/.*/size:4096/.*/threads:8",
        ] {
            assert!(count(filter) > 0, "{filter}");
        }
    }

    #[test]
    fn a_minus_inverts_a_filter() {
        let all = Axes::default().cases().len();
        assert_eq!(count("-^move/") + count("^move/"), all);
    }

    #[test]
    fn a_filter_that_matches_no_case_is_explained() {
        let text = complaint("dif_check/api:cpp/path:dsa/.*");
        assert!(text.contains("dif_check and api:cpp never meet"), "{text}");
        assert!(complaint("move/.*/qsize:7/.*").contains("--queue_size=7"));
        assert!(complaint("move/.*/colour:red/.*").contains("no part of a name"));
        assert!(complaint("mvoe/api:c/path:dsa").contains("near: move/api:c/path:dsa"));
        assert!(complaint("move/(").contains("regular expression"));
        let text = complaint("nop/api:c/path:dsa/.*/size:4096/.*");
        assert!(text.contains("nop and size:4096 never meet"), "{text}");
        let crowded = Axes {
            queue_sizes: vec![16],
            threads: vec![17],
            ..Axes::default()
        };
        let error = select(crowded.cases(), "move/.*/path:dsa/exec:async/.*").unwrap_err();
        let hint = error.hint().unwrap();
        assert!(hint.contains("--threads up to --queue_size"), "{hint}");
    }
}
