//! When a report was written, and by which command.

use std::time::{Duration, SystemTime};

use dray_output::quoted;

use crate::said;

/// Facts for the head of a report: date, in UTC, and command line.
///
/// The date is that of SOURCE_DATE_EPOCH (reproducible-builds.org), seconds since 1970, where it is set.
pub(crate) fn facts() -> Vec<(String, String)> {
    let fixed = std::env::var("SOURCE_DATE_EPOCH").ok();
    let date = date(fixed.as_deref());
    let words = said::words().into_iter();
    let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    vec![
        ("Date".to_owned(), date),
        ("Command".to_owned(), format!("dray {}", words.join(" "))),
    ]
}

/// The last second that RFC 3339 can write, 9999-12-31T23:59:59Z.
const LAST: u64 = 253_402_300_799;

fn date(fixed: Option<&str>) -> String {
    let fixed = fixed.and_then(|text| text.parse().ok());
    let at = match fixed.filter(|seconds| *seconds <= LAST) {
        Some(seconds) => SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
        None => SystemTime::now(),
    };
    humantime::format_rfc3339_seconds(at).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_can_be_fixed() {
        assert_eq!(date(Some("0")), "1970-01-01T00:00:00Z");
        assert_eq!(date(Some("253402300799")), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn a_date_that_cannot_be_written_is_that_of_now() {
        for text in [None, Some("soon"), Some("253402300800"), Some("-1")] {
            assert!(date(text).starts_with("20"), "{text:?}");
        }
    }
}
