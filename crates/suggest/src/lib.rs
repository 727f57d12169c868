//! The name that a misspelt one was meant to be.

/// Longer names are not typing mistakes, and the distance is quadratic.
const LONGEST: usize = 64;

/// The nearest of `known` to `name`, if one is near enough to have been meant: at most a third of
/// its letters are wrong. Case does not count; of equally near names one that `name` begins wins.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().take(LONGEST + 1).count();
    if length > LONGEST {
        return None;
    }
    let name = name.to_lowercase();
    let allowed = (length / 3).max(1);
    let scored = known.into_iter().map(|candidate| {
        let lower = candidate.to_lowercase();
        let distance = strsim::damerau_levenshtein(&name, &lower);
        (distance, !lower.starts_with(&name), candidate)
    });
    scored
        // Another letter is not a misspelt one.
        .filter(|(distance, ..)| *distance <= allowed && *distance < length.max(1))
        .min()
        .map(|(.., candidate)| candidate)
}

/// The names of `known` in which at most `wrong` letters are wrong, nearest first, at most `limit`.
pub fn near(
    name: &str,
    known: impl IntoIterator<Item = String>,
    wrong: usize,
    limit: usize,
) -> Vec<String> {
    if name.chars().take(LONGEST + 1).count() > LONGEST {
        return Vec::new();
    }
    let scored = known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, &candidate), candidate));
    let mut scored: Vec<(usize, String)> =
        scored.filter(|(distance, _)| *distance <= wrong).collect();
    scored.sort();
    scored.truncate(limit);
    scored.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Names that one message lists at most.
const LISTED: usize = 48;

/// The end of a message about an unknown name: what was meant, or else what there is, at most 48 names.
pub fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let mut known = known.into_iter();
            let listed: Vec<&str> = known.by_ref().take(LISTED).collect();
            match known.count() {
                0 => format!("known: {}", listed.join(", ")),
                more => format!("known: {} and {more} more", listed.join(", ")),
            }
        }
    }
}

/// How much alike two words are, from 0 to 1000, for lists of what is near.
pub fn likeness(a: &str, b: &str) -> u64 {
    (strsim::jaro_winkler(a, b) * 1000.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_words_are_suggested() {
        let known = ["fig2", "fig3", "fig6a", "spr-2s"];
        let nearest = |name| nearest(name, known);
        assert_eq!(nearest("fg3"), Some("fig3"));
        assert_eq!(nearest("fig6"), Some("fig6a"));
        assert_eq!(nearest("SPR2s"), Some("spr-2s"));
        assert_eq!(nearest("latency"), None);
        assert_eq!(super::nearest("c", ["a", "b"]), None);
        assert_eq!(nearest(&"fig3".repeat(99)), None);
    }

    #[test]
    fn the_most_similar_words_come_first() {
        let known = || ["1e2w-d", "1e1w-s", "4e8w-d", "1e1w-d"].map(str::to_owned);
        assert_eq!(near("1e1wd", known(), 2, 9), ["1e1w-d", "1e1w-s", "1e2w-d"]);
        assert_eq!(near("1e1wd", known(), 1, 9), ["1e1w-d"]);
        assert_eq!(near("1e1wd", known(), 2, 1), ["1e1w-d"]);
        assert!(near(&"1e".repeat(99), known(), 999, 9).is_empty());
    }

    #[test]
    fn swapped_letters_count_as_one_mistake() {
        assert_eq!(nearest("szie", ["size", "wq_size"]), Some("size"));
        assert_eq!(suggest("asinc", ["sync", "async"]), "did you mean `async`?");
        assert_eq!(suggest("other", ["sync", "async"]), "known: sync, async");
        let many = suggest("other", ["sync"; 50]);
        assert!(many.ends_with("sync, sync and 2 more"), "{many}");
    }

    #[test]
    fn likeness_is_highest_for_equal_words() {
        assert_eq!(likeness("move", "move"), 1000);
        assert!(likeness("mvoe", "move") > likeness("mvoe", "fill"));
    }
}
