//! What a command line of dsa_perf_micros measures, however it is written.

/// Flags with a value, of dsa_perf_micros and `dray micros`.
const WITH_VALUE: &str = "beiklnoqrstvwxyzBDFKMORSTWX";
/// Flags that say how long it runs and what is checked, not what is measured; `-j` is how it runs anyway.
const LEFT_OUT: &str = "ijTv";
/// Values that a flag has where it is not given.
const DEFAULTS: [(char, &str); 7] = [
    ('b', "1"),
    ('n', "32"),
    ('o', "3"),
    ('s', "4096"),
    ('x', "0"),
    ('D', "100"),
    ('e', "0"),
];

/// The flags of a command line that say what it measures, in order, values as one writes them shortest. `None` for the name
/// of another tool's case. Options in words say where `dray micros` runs and what it prints.
pub(super) fn measured(case: &str) -> Option<Vec<(char, String)>> {
    let mut words = case.split_whitespace().peekable();
    words.peek().filter(|word| word.starts_with('-'))?;
    let mut flags = Vec::new();
    while let Some(word) = words.next() {
        if let Some(option) = word.strip_prefix("--") {
            if !option.contains('=') {
                words.next_if(|next| !next.starts_with('-'));
            }
            continue;
        }
        for (at, letter) in word.strip_prefix('-')?.char_indices() {
            if !WITH_VALUE.contains(letter) {
                flags.push((letter, String::new()));
                continue;
            }
            // The rest of the word, or the next one.
            let rest = &word[1 + at + letter.len_utf8()..];
            let value = match rest.is_empty() {
                true => words.next()?,
                false => rest.strip_prefix('=').unwrap_or(rest),
            };
            flags.push((letter, shortest(letter, value)));
            break;
        }
    }
    flags.retain(|(letter, value)| {
        let default = DEFAULTS.iter().any(|d| d.0 == *letter && d.1 == value);
        !LEFT_OUT.contains(*letter) && !default
    });
    flags.sort();
    Some(flags)
}

/// Sizes in bytes, numbers without zeros in front, letters in one case.
fn shortest(letter: char, value: &str) -> String {
    let value = value.to_ascii_lowercase();
    let (digits, factor) = match value.strip_suffix(['k', 'm', 'g']) {
        Some(digits) if "st".contains(letter) => match value.as_bytes().last() {
            Some(b'k') => (digits, 1 << 10),
            Some(b'm') => (digits, 1 << 20),
            _ => (digits, 1 << 30),
        },
        _ => (value.as_str(), 1),
    };
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse::<u64>().ok(),
    };
    match number.and_then(|number| number.checked_mul(factor)) {
        Some(number) => number.to_string(),
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn command_lines_of_one_measurement_are_alike() {
        let log = measured("-n128 -s16k -j -c -f -i8000 -k5 -w0 -zF,F -o3");
        for case in [
            "-n 128 -s 16384 -cf -k5 -w0 -z f,f --config 1e1w-d",
            "--platform=spr-2s -w0 -k5 -cf -zF,F -s16K -n128 -o0x3 -i100 -T1 -v0",
        ] {
            assert_eq!(measured(case), log, "{case}");
        }
        for other in [
            "-n128 -s16k -c -k5 -w0 -zF,F",
            "-n64 -s16k -cf -k5 -w0 -zF,F",
            "-n128 -s16k -cf -k5 -w0 -zF,F -b2",
        ] {
            assert_ne!(measured(other), log, "{other}");
        }
        assert_eq!(measured("copy/api:rust/path:dsa"), None);
        assert_eq!(measured("-n"), None);
    }

    proptest! {
        #[test]
        fn any_name_is_read_or_none(name in any::<String>()) {
            let _ = measured(&name);
            let _ = measured(&format!("-{name}"));
        }
    }
}
