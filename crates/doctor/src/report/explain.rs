//! What a check is about.

use super::wrap;
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
    out.push_str("\nDocumented in:\n");
    for source in check.sources {
        out.push_str(&format!("  {source}\n"));
    }
    out
}
