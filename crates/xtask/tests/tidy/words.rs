//! Summaries that are no sentences.

use super::Findings;
use super::source::Source;

/// How a comment or a message must not begin.
const BEGINNINGS: &[&str] = &["What", "Whether", "Which"];
/// What must not stand in one.
const PHRASES: &[&str] = &["so many", "cannot be had", "is had", "has it not"];

/// Counts them by crate: too many for a line each.
pub(crate) fn count(sources: &[Source], findings: &mut Findings) {
    for source in sources {
        let mut before = false;
        for line in source.lines() {
            let comment = line.trim_start();
            let summary = comment
                .strip_prefix("/// ")
                .or(comment.strip_prefix("//! "));
            let first = summary
                .filter(|_| !before)
                .and_then(|text| text.split([' ', '.', ',']).next());
            before = summary.is_some();
            let begins = BEGINNINGS.iter().filter(|word| first == Some(**word));
            let has = PHRASES.iter().filter(|phrase| line.contains(**phrase));
            for words in begins.chain(has) {
                *findings
                    .entry(format!("words {} {words}", source.room()))
                    .or_default() += 1;
            }
        }
    }
}
