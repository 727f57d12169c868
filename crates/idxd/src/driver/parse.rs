//! How the kernel reads what is written to an attribute (`lib/kstrtox.c`, `lib/bitmap.c`).

use super::Errno;

/// The text without one newline at its end: `kstrto*` and `sysfs_streq` take no more.
pub(super) fn line(bytes: &[u8]) -> &[u8] {
    // What is written ends at the first 0, as a C string does.
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let text = &bytes[..end];
    text.strip_suffix(b"\n").unwrap_or(text)
}

/// `kstrtoull`: an optional `+`, then digits; in base 0 a prefix says the base.
pub(super) fn unsigned(bytes: &[u8], any_base: bool) -> Result<u64, Errno> {
    let text = line(bytes);
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let (digits, base) = match text {
        [b'0', b'x' | b'X', rest @ ..] if any_base => (rest, 16),
        [b'0', rest @ ..] if any_base && !rest.is_empty() => (rest, 8),
        _ => (text, 10),
    };
    if digits.is_empty() {
        return Err(Errno::EINVAL);
    }
    let mut value: u64 = 0;
    let mut overflow = false;
    for &digit in digits {
        let digit = char::from(digit).to_digit(base).ok_or(Errno::EINVAL)?;
        let next = value.checked_mul(base.into());
        let next = next.and_then(|value| value.checked_add(digit.into()));
        overflow |= next.is_none();
        value = next.unwrap_or(0);
    }
    match overflow {
        true => Err(Errno::ERANGE),
        false => Ok(value),
    }
}

/// `kstrtol` in base 10.
pub(super) fn signed(bytes: &[u8]) -> Result<i64, Errno> {
    match line(bytes) {
        [b'-', rest @ ..] if !rest.starts_with(b"+") => {
            let value = unsigned(rest, false)?;
            0_i64.checked_sub_unsigned(value).ok_or(Errno::ERANGE)
        }
        text => i64::try_from(unsigned(text, false)?).map_err(|_| Errno::ERANGE),
    }
}

/// `kstrtobool`: the first letter decides, for `on` and `off` the second.
pub(super) fn boolean(bytes: &[u8]) -> Result<bool, Errno> {
    match line(bytes) {
        [b'y' | b'Y' | b't' | b'T' | b'1', ..] => Ok(true),
        [b'n' | b'N' | b'f' | b'F' | b'0', ..] => Ok(false),
        [b'o' | b'O', b'n' | b'N', ..] => Ok(true),
        [b'o' | b'O', b'f' | b'F', ..] => Ok(false),
        _ => Err(Errno::EINVAL),
    }
}

/// `strim`: no space at either end.
pub(super) fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    bytes[..end].trim_ascii()
}

/// `bitmap_parse` of 256 bits: words of up to 8 hexadecimal digits, the highest first, separated by
/// commas.
pub(super) fn bitmap(bytes: &[u8]) -> Result<[u64; 4], Errno> {
    let mut words = [0_u32; 8];
    let chunks = trimmed(bytes).rsplit(|&byte| byte == b',');
    for (count, chunk) in chunks.enumerate() {
        let chunk = chunk.trim_ascii();
        if chunk.len() > 8 {
            return Err(Errno::EOVERFLOW);
        }
        let mut word = 0;
        for &digit in chunk {
            word = word << 4 | char::from(digit).to_digit(16).ok_or(Errno::EINVAL)?;
        }
        match words.get_mut(count) {
            Some(place) => *place = word,
            None if word == 0 => {}
            None => return Err(Errno::EOVERFLOW),
        }
    }
    let pair = |i: usize| u64::from(words[2 * i]) | u64::from(words[2 * i + 1]) << 32;
    Ok([pair(0), pair(1), pair(2), pair(3)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_kstrtox_takes_them() {
        assert_eq!(unsigned(b"16\n", false), Ok(16));
        assert_eq!(unsigned(b"+16", false), Ok(16));
        assert_eq!(unsigned(b"0x10", true), Ok(16));
        assert_eq!(unsigned(b"010", true), Ok(8));
        assert_eq!(unsigned(b"010", false), Ok(10));
        for bad in ["", "\n", " 1", "1 ", "-1", "1\n\n", "0x10", "++1", "1a"] {
            assert_eq!(
                unsigned(bad.as_bytes(), false),
                Err(Errno::EINVAL),
                "{bad:?}"
            );
        }
        assert_eq!(unsigned(b"18446744073709551616", false), Err(Errno::ERANGE));
        assert_eq!(signed(b"-1\n"), Ok(-1));
        assert_eq!(signed(b"-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(signed(b"9223372036854775808"), Err(Errno::ERANGE));
        assert_eq!(signed(b"-+1"), Err(Errno::EINVAL));
    }

    #[test]
    fn switches_as_kstrtobool_takes_them() {
        for yes in ["1", "yes", "True", "on\n", "1garbage"] {
            assert_eq!(boolean(yes.as_bytes()), Ok(true), "{yes}");
        }
        for no in ["0", "n", "False", "oFf"] {
            assert_eq!(boolean(no.as_bytes()), Ok(false), "{no}");
        }
        for bad in ["", "2", "o", "-1", "\n"] {
            assert_eq!(boolean(bad.as_bytes()), Err(Errno::EINVAL), "{bad:?}");
        }
    }

    #[test]
    fn bitmaps() {
        assert_eq!(bitmap(b"1,003f03ff\n"), Ok([0x1_003f_03ff, 0, 0, 0]));
        let all = "00000000,".repeat(7) + "00000008";
        assert_eq!(bitmap(all.as_bytes()), Ok([8, 0, 0, 0]));
        assert_eq!(bitmap(b"80000000,0,0,0,0,0,0,0"), Ok([0, 0, 0, 1 << 63]));
        assert_eq!(bitmap(b"1,0,0,0,0,0,0,0,0"), Err(Errno::EOVERFLOW));
        assert_eq!(bitmap(b"123456789"), Err(Errno::EOVERFLOW));
        assert_eq!(bitmap(b"0x1"), Err(Errno::EINVAL));
    }
}
