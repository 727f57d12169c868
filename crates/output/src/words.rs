//! Numbers in sentences, and words of commands.

use std::time::Duration;

/// A count and its noun: `1 figure`, `3 figures`.
pub fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

/// A time to wait for, as people say it: `40 s`, `3 min`, `2 h`; rounded up.
pub fn rough(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil().max(1.0) as u64;
    match seconds {
        0..=90 => format!("{seconds} s"),
        91..=5400 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3600)),
    }
}

/// A word of a command as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,/:+@=%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_no_s() {
        let words = [0, 1, 2].map(|count| counted(count, "point"));
        assert_eq!(words, ["0 points", "1 point", "2 points"]);
    }

    #[test]
    fn times_are_rounded_up() {
        let of = |ms| rough(Duration::from_millis(ms));
        assert_eq!(
            [of(20), of(90_000), of(90_001), of(5_400_001)],
            ["1 s", "90 s", "2 min", "2 h"]
        );
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them_otherwise() {
        let words = ["", "7:delay+fault@0-3", "a b", "it's", "$HOME"].map(quoted);
        let expected = ["''", "7:delay+fault@0-3", "'a b'", r"'it'\''s'", "'$HOME'"];
        assert_eq!(words, expected);
    }
}
