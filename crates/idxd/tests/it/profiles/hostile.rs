//! Whatever the text: a profile or an error, never a panic, and no device that the virtual one
//! would refuse.

use super::common::TEXT;
use dray_device::Device;
use dray_idxd::Profile;
use dray_idxd::driver::Personality;
use proptest::prelude::*;

/// Uses everything that can be done with a profile.
fn exercise(text: &str) -> Result<(), TestCaseError> {
    let profile = match Profile::parse(text, "hostile") {
        Ok(profile) => profile,
        Err(error) => {
            prop_assert!(error.to_string().starts_with("hostile"));
            return Ok(());
        }
    };
    profile.title();
    profile.unmodelled();
    for finding in profile.validate(Personality::NEWEST) {
        prop_assert!(!finding.fix.is_empty());
        prop_assert!(!finding.to_string().is_empty());
    }
    let again = Profile::parse(&profile.to_json(), "hostile");
    prop_assert_eq!(again.unwrap(), profile.clone());
    if let Ok(devices) = profile.devices() {
        for device in devices {
            let built = Device::new(device);
            prop_assert!(built.is_ok(), "{:?}\n{text}", built.err());
        }
    }
    let _ = profile.with_engines(2);
    let _ = profile.with_wq_size(2);
    let _ = profile.with_max_batch(2);
    Ok(())
}

const NUMBERS: &[&str] = &[
    "-1",
    "0",
    "1",
    "255",
    "256",
    "65535",
    "65536",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1.5",
    "1e300",
    "\"\"",
    "null",
    "[]",
    "{}",
    "true",
    "\"shared\"",
    "\"0xffffffffffffffff\"",
];

/// Places in the text where a value starts, with its length.
fn values() -> Vec<(usize, usize)> {
    let starts = TEXT.match_indices("\":").map(|(at, _)| at + 2);
    let value = |at: usize| {
        let end = TEXT[at..].find([',', '\n']).unwrap_or(0);
        (at, end)
    };
    starts
        .filter(|&at| !TEXT[at..].starts_with('['))
        .map(value)
        .collect()
}

fn replaced(mut changes: Vec<((usize, usize), String)>) -> String {
    changes.sort();
    changes.dedup_by_key(|(place, _)| *place);
    let mut text = TEXT.to_owned();
    for ((at, length), with) in changes.into_iter().rev() {
        text.replace_range(at..at + length, &with);
    }
    text
}

fn integer() -> impl Strategy<Value = i64> {
    prop_oneof![
        0..=16_i64,
        0..=300_i64,
        any::<i64>(),
        Just(i64::MAX),
        Just(i64::MIN)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn values_replaced(
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(NUMBERS)), 1..6),
    ) {
        let values = values();
        let place = |index: prop::sample::Index| values[index.index(values.len())];
        let changes = changes.into_iter();
        let text = replaced(changes.map(|(at, with)| (place(at), with.to_owned())).collect());
        exercise(&text)?;
    }

    #[test]
    fn integers_replaced(
        changes in prop::collection::vec((any::<prop::sample::Index>(), integer()), 1..6),
    ) {
        let mut values = values();
        values.retain(|&(at, length)| TEXT[at..at + length].parse::<i64>().is_ok());
        let place = |index: prop::sample::Index| values[index.index(values.len())];
        let changes = changes.into_iter();
        let text = replaced(changes.map(|(at, with)| (place(at), with.to_string())).collect());
        prop_assert!(Profile::parse(&text, "hostile").is_ok());
        exercise(&text)?;
    }

    #[test]
    fn bytes_replaced(
        changes in prop::collection::vec((any::<prop::sample::Index>(), " -~"), 1..8),
    ) {
        let mut text = TEXT.to_owned();
        for (place, with) in changes {
            let at = place.index(text.len() - 1);
            text.replace_range(at..at + 1, &with);
        }
        exercise(&text)?;
    }

    #[test]
    fn lines_moved(from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(), copy: bool) {
        let mut lines: Vec<&str> = TEXT.lines().collect();
        let from = from.index(lines.len());
        let line = if copy { lines[from] } else { lines.remove(from) };
        lines.insert(to.index(lines.len()), line);
        exercise(&lines.join("\n"))?;
    }

    #[test]
    fn any_text(text in "\\PC{0,64}") {
        exercise(&text)?;
    }
}
