//! The known name that a misspelt one was meant to be.

/// The nearest of `known` to `name`, if one is near enough to have been meant.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer names are not typing mistakes, and the distance is quadratic.
    const LONGEST: usize = 64;
    let length = name.chars().take(LONGEST + 1).count();
    if length > LONGEST {
        return None;
    }
    let allowed = (length / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The end of a message about an unknown name: what was meant, or else what there is.
pub(crate) fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "known: {}",
            known.into_iter().collect::<Vec<_>>().join(", ")
        ),
    }
}

/// Insertions, deletions, substitutions and swaps of neighbours between two names (the optimal
/// string alignment distance), blind to case.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.to_lowercase().chars().collect();
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut before = vec![0; right.len() + 1];
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for i in 0..left.len() {
        let mut row = vec![i + 1];
        for j in 0..right.len() {
            let substituted = above[j] + usize::from(left[i] != right[j]);
            let mut least = substituted.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && left[i] == right[j - 1] && left[i - 1] == right[j] {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let cases = [
            ("", "", 0),
            ("", "abc", 3),
            ("size", "siez", 1),
            ("kitten", "sitting", 3),
        ];
        for (left, right, expected) in cases {
            assert_eq!(distance(left, right), expected, "{left} {right}");
            assert_eq!(distance(right, left), expected, "{right} {left}");
        }
        assert_eq!(distance("SIZE", "size"), 0);
    }

    #[test]
    fn only_what_is_near_is_suggested() {
        let known = ["size", "batch", "wq_size", "engines"];
        assert_eq!(nearest("sise", known), Some("size"));
        assert_eq!(nearest("wqsize", known), Some("wq_size"));
        assert_eq!(nearest("engine", known), Some("engines"));
        assert_eq!(nearest("mode", known), None);
        assert_eq!(nearest(&"size".repeat(1000), known), None);
        assert_eq!(
            suggest("mode", known),
            "known: size, batch, wq_size, engines"
        );
    }
}
