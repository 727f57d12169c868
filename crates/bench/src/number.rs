//! Numbers as Google Benchmark's console writes them.

use std::fmt::Write;

/// A number with a prefix of 1000s, six digits: 20.1402G, 52.0639u. From 0.01 to 1 it stands as
/// it is.
pub(crate) fn with_prefix(value: f64) -> String {
    const LARGE: [&str; 8] = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
    const SMALL: [&str; 8] = ["m", "u", "n", "p", "f", "a", "z", "y"];
    // A thousand times 1.1: up to there the number stands without prefix.
    const LIMIT: f64 = 1100.0;
    let size = value.abs();
    let mut scaled = value;
    let mut prefix = "";
    if size > LIMIT {
        for name in LARGE {
            scaled /= 1000.0;
            prefix = name;
            if scaled.abs() <= LIMIT {
                break;
            }
        }
    } else if size > 0.0 && size < 0.01 {
        for name in SMALL {
            scaled *= 1000.0;
            prefix = name;
            if scaled.abs() >= 1.1 {
                break;
            }
        }
    }
    format!("{}{prefix}", significant(scaled, 6))
}

/// As many significant digits as asked for, zeros at the end left out, as C's %g.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let scientific = format!("{value:.*e}", digits.saturating_sub(1));
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= digits as i32 {
        let mut text = trim(mantissa);
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a String cannot fail.
        let _ = write!(text, "e{sign}{:02}", exponent.abs());
        return text;
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trim(&format!("{value:.decimals$}"))
}

/// A time with the digits that its size deserves.
pub(crate) fn time(value: f64) -> String {
    match value {
        v if v < 1.0 => format!("{v:.3}"),
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v if v > 9_999_999_999.0 => significant(v, 1),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_prefixes_are_those_of_google_benchmark() {
        for (value, text) in [
            (833.022e-6, "833.022u"),
            (52.0639e-6, "52.0639u"),
            (20.1402e9, "20.1402G"),
            (182.71e-6, "182.71u"),
            (1.058_77e-9, "1058.77p"),
            (3.703_6e-6, "3.7036u"),
            (0.02, "0.02"),
            (0.0, "0"),
            (999.0, "999"),
            (4.5e6, "4.5M"),
        ] {
            assert_eq!(with_prefix(value), text);
        }
    }

    #[test]
    fn significant_digits_are_as_in_c() {
        for (value, text) in [
            (12.6072, "12.6072"),
            (0.0979718, "0.0979718"),
            (1.26072e-8, "1.26072e-08"),
            (5.07646e9, "5.07646e+09"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (3.0, "3"),
        ] {
            assert_eq!(significant(value, 6), text);
        }
    }

    #[test]
    fn times_keep_three_digits() {
        for (value, text) in [
            (0.257, "0.257"),
            (3.5, "3.50"),
            (14.16, "14.2"),
            (833_022.0, "833022"),
        ] {
            assert_eq!(time(value), text);
        }
    }
}
