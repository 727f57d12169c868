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
        .filter(|(distance, ..)| *distance <= allowed)
        .min()
        .map(|(.., candidate)| candidate)
}

/// The end of a message about an unknown name: what was meant, or else what there is.
pub fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let known: Vec<&str> = known.into_iter().collect();
            format!("known: {}", known.join(", "))
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
    fn only_what_is_near_is_suggested() {
        let known = ["fig2", "fig3", "fig6a", "spr-2s"];
        let nearest = |name| nearest(name, known);
        assert_eq!(nearest("fg3"), Some("fig3"));
        assert_eq!(nearest("fig6"), Some("fig6a"));
        assert_eq!(nearest("SPR2s"), Some("spr-2s"));
        assert_eq!(nearest("latency"), None);
        assert_eq!(nearest(&"fig3".repeat(99)), None);
    }

    #[test]
    fn swapped_letters_are_one_mistake() {
        assert_eq!(nearest("szie", ["size", "wq_size"]), Some("size"));
        assert_eq!(suggest("asinc", ["sync", "async"]), "did you mean `async`?");
        assert_eq!(suggest("other", ["sync", "async"]), "known: sync, async");
    }

    #[test]
    fn likeness_orders_words() {
        assert_eq!(likeness("move", "move"), 1000);
        assert!(likeness("mvoe", "move") > likeness("mvoe", "fill"));
    }
}
