//! The known name that a misspelt one was meant to be.

/// The nearest of `known`, if one is near enough to have been meant.
pub(crate) fn nearest<S: AsRef<str>>(name: &str, known: &[S]) -> Option<String> {
    // A longer name is no typing mistake, and the distance is quadratic.
    let name: String = name.chars().take(64).collect();
    let distance = |candidate: &&S| strsim::damerau_levenshtein(&name, candidate.as_ref());
    // Of two that are equally near, a name that was cut short is the likelier mistake.
    let longer = |candidate: &&S| !candidate.as_ref().starts_with(&name);
    let near = known.iter().min_by_key(|c| (distance(c), longer(c)))?;
    let allowed = (near.as_ref().len() / 3).max(1);
    (distance(&near) <= allowed).then(|| near.as_ref().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_is_suggested() {
        let known = ["fig2", "fig3", "fig6a", "spr-2s"];
        assert_eq!(nearest("fg3", &known).as_deref(), Some("fig3"));
        assert_eq!(nearest("fig6", &known).as_deref(), Some("fig6a"));
        assert_eq!(nearest("spr2s", &known).as_deref(), Some("spr-2s"));
        assert_eq!(nearest("latency", &known), None);
        assert_eq!(nearest::<&str>("fig3", &[]), None);
    }
}
