//! Mails whose lines are coded as quoted-printable (RFC 2045, section 6.7).

/// Longest line that is put together from several.
const MAX_BYTES: usize = 1 << 16;

/// Decodes the lines of a text from the one on that shows the coding.
#[derive(Default)]
pub(super) struct Quoted {
    is_coded: bool,
    /// A line that goes on in the next.
    held: Vec<u8>,
}

impl Quoted {
    /// The line, decoded; none if it goes on in the next.
    pub(super) fn line<'a>(&mut self, line: &'a [u8]) -> Option<std::borrow::Cow<'a, [u8]>> {
        if self.is_coded && ends(line) {
            let mut held = self.finish();
            if held.is_empty() {
                return Some(line.into());
            }
            held.push(b'\n');
            held.extend(line);
            return Some(held.into());
        }
        self.is_coded |= shows(line);
        if !self.is_coded {
            return Some(line.into());
        }
        let whole = line.trim_ascii_end();
        let soft = whole.strip_suffix(b"=");
        self.held.extend(decode(soft.unwrap_or(whole)));
        if soft.is_some() && self.held.len() < MAX_BYTES {
            return None;
        }
        Some(std::mem::take(&mut self.held).into())
    }

    /// What is held at the end of a text, which is no longer coded.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        self.is_coded = false;
        std::mem::take(&mut self.held)
    }
}

/// Whether a line is coded for certain: spaces, signs and quotation marks that no log has so.
fn shows(line: &[u8]) -> bool {
    let marks: [&[u8]; 3] = [b"=C2=A0", b"=E2=80=", b"quoted-printable"];
    let has = |mark: &[u8]| line.windows(mark.len()).any(|part| part == mark);
    // A log has numbers behind a sign: `mask=3DFF`.
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte);
    let mut places = (0..line.len()).filter(|&place| line[place..].starts_with(b"=3D"));
    places.any(|place| !line.get(place + 3).is_some_and(is_digit)) || marks.into_iter().any(has)
}

/// Whether a line begins a mail, or a part of one, that is not coded.
fn ends(line: &[u8]) -> bool {
    let line = line.trim_ascii_end().to_ascii_lowercase();
    let coding = line.strip_prefix(b"content-transfer-encoding:");
    line.starts_with(b"from ")
        || coding.is_some_and(|coding| [&b"7bit"[..], b"8bit"].contains(&coding.trim_ascii_start()))
}

fn decode(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        let coded = after.get(..2).filter(|_| byte == b'=');
        let coded = coded.and_then(|digits| std::str::from_utf8(digits).ok());
        match coded.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                out.push(value);
                rest = &after[2..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let mut quoted = Quoted::default();
        let mut all: Vec<Vec<u8>> = Vec::new();
        for line in text.lines() {
            all.extend(
                quoted
                    .line(line.as_bytes())
                    .map(std::borrow::Cow::into_owned),
            );
        }
        all.push(quoted.finish());
        let all = all.into_iter().filter(|line| !line.is_empty());
        all.map(|line| String::from_utf8_lossy(&line).into_owned())
            .collect()
    }

    #[test]
    fn coded_lines_are_decoded_and_put_together() {
        assert_eq!(
            lines("=C2=A0[ 7.9] idxd: turn on u=\nser SVA, a=3Db\nend="),
            ["\u{a0}[ 7.9] idxd: turn on user SVA, a=b", "end"]
        );
        // A command line is no mail.
        let plain = "ro console=20 mem=4096M crashkernel=AB quiet=";
        assert_eq!(lines(plain), [plain]);
        assert_eq!(lines("=3D=4 =zz =").len(), 1);
        let dump = "mask=3DFF a=41 b=3D0";
        assert_eq!(lines(dump), [dump]);
    }

    #[test]
    fn a_mail_that_is_not_coded_is_read_as_it_is() {
        for ends in [
            "Content-Transfer-Encoding: 7bit",
            "content-transfer-encoding: 8bit ",
            "From somebody@example.org Mon Nov 20 10:00:01 2023",
        ] {
            let text = format!("a=3Db\nheld=\n{ends}\nconsole=20 x=");
            let last = format!("held\n{ends}");
            assert_eq!(lines(&text), ["a=b", &last, "console=20 x="]);
        }
    }

    #[test]
    fn a_line_that_goes_on_without_end_is_bounded() {
        let mut quoted = Quoted::default();
        quoted.line(b"=3D=");
        let long = [b"x".repeat(1000), b"=".to_vec()].concat();
        let whole = (0..1000).filter_map(|_| quoted.line(&long)).count();
        assert!(whole > 10, "{whole}");
    }
}
