//! What a check is about.

use super::wrap;
use crate::catalogue::{catalogue, readable};
use crate::check::Check;

/// Why a link matters, how it is judged, and where that is documented.
#[must_use]
pub fn explain(check: &Check) -> String {
    let mut out = format!("{}: {}\n\n", check.id, check.title);
    for line in wrap(check.why, 92) {
        out.push_str(&format!("{line}\n"));
    }
    if !check.needs.is_empty() {
        out.push_str(&format!("\nAfter: {}\n", check.needs.join(", ")));
    }
    let messages = catalogue().confirming(check.id);
    if !messages.is_empty() {
        out.push_str("\nMessages that confirm a finding:\n");
    }
    for (by, format) in messages {
        out.push_str(&format!("  {by}: {}\n", readable(format)));
    }
    out.push_str("\nDocumented in:\n");
    for source in check.sources {
        out.push_str(&format!("  {source}\n"));
    }
    out
}
