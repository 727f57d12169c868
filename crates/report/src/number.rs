//! Numbers as text, the same on every machine.

/// From here on digits are grouped by commas.
const GROUPED_FROM: f64 = 10_000.0;

/// A number with so many digits after the point; large ones are grouped by thousands.
pub(crate) fn fixed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let text = match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.')) => rest.to_owned(),
        _ => text,
    };
    if value.abs() < GROUPED_FROM {
        return text;
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = match rest.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (rest, None),
    };
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Decimal exponent: the `e` of `d.ddd * 10^e`; 0 for 0.
///
/// Read off the decimal representation, which is exact, where a logarithm may be off by one at a
/// power of ten.
pub(crate) fn exponent(value: f64) -> i32 {
    format!("{:e}", value.abs())
        .rsplit_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0)
}

/// `mantissa * 10^exponent`, correctly rounded.
pub(crate) fn scaled(mantissa: i64, exponent: i32) -> f64 {
    format!("{mantissa}e{exponent}")
        .parse()
        .unwrap_or(f64::INFINITY)
}

/// `mantissa * 10^exponent` as an axis shows it; powers of ten outside 1e-4 to 1e7 are written so.
pub(crate) fn tick(mantissa: i64, exponent: i32, largest: f64) -> String {
    let value = scaled(mantissa, exponent);
    if mantissa == 0 {
        return "0".to_owned();
    }
    if exponent < -4 || largest >= 1e7 {
        return format!("{value:e}");
    }
    fixed(value, usize::try_from(-exponent).unwrap_or(0))
}

/// A value with four significant digits, for tooltips.
pub(crate) fn significant(value: f64) -> String {
    let exponent = exponent(value);
    if value != 0.0 && !(-4..9).contains(&exponent) {
        return format!("{value:.3e}");
    }
    fixed(value, usize::try_from(3 - exponent).unwrap_or(0).min(6))
}

/// A coordinate: at most two digits after the point, none that is a trailing zero.
pub(crate) fn coordinate(value: f64) -> String {
    let text = fixed_plain((value * 100.0).round() / 100.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "-0" | "" => "0".to_owned(),
        _ => text.to_owned(),
    }
}

fn fixed_plain(value: f64) -> String {
    format!("{value:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_fixed_and_thousands_grouped() {
        assert_eq!(fixed(2.6789, 2), "2.68");
        assert_eq!(fixed(9999.0, 0), "9999");
        assert_eq!(fixed(119_294.0, 0), "119,294");
        assert_eq!(fixed(-1_234_567.5, 1), "-1,234,567.5");
        assert_eq!(fixed(-0.001, 1), "0.0");
    }

    #[test]
    fn exponents_are_exact_at_powers_of_ten() {
        assert_eq!(exponent(1000.0), 3);
        assert_eq!(exponent(999.999), 2);
        assert_eq!(exponent(0.001), -3);
        assert_eq!(exponent(0.0), 0);
        assert_eq!(scaled(5, -1), 0.5);
        assert_eq!(scaled(2, 3), 2000.0);
    }

    #[test]
    fn ticks_show_the_digits_of_their_step() {
        assert_eq!(tick(15, -1, 5.0), "1.5");
        assert_eq!(tick(20, -1, 5.0), "2.0");
        assert_eq!(tick(2, 4, 50_000.0), "20,000");
        assert_eq!(tick(2, 7, 4e7), "2e7");
        assert_eq!(tick(3, -9, 1e-8), "3e-9");
        assert_eq!(tick(0, -9, 1e-8), "0");
    }

    #[test]
    fn tooltips_have_four_digits() {
        assert_eq!(significant(31.4), "31.40");
        assert_eq!(significant(0.5129), "0.5129");
        assert_eq!(significant(119_294.0), "119,294");
        assert_eq!(significant(1.5e-9), "1.500e-9");
        assert_eq!(significant(0.0), "0.000");
    }

    #[test]
    fn coordinates_have_at_most_two_decimals() {
        assert_eq!(coordinate(12.0), "12");
        assert_eq!(coordinate(12.5), "12.5");
        assert_eq!(coordinate(0.126), "0.13");
        assert_eq!(coordinate(-0.001), "0");
        assert_eq!(coordinate(100.0), "100");
    }
}
