//! What stands before a message: when and where it was printed.

/// What a line says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Prefix {
    /// It begins with a time: it does not continue the line before.
    pub(super) starts: bool,
    pub(super) host: Option<String>,
    /// Seconds since the kernel started.
    pub(super) seconds: Option<f64>,
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Reads what stands before a message.
pub(super) fn prefix(line: &str) -> Prefix {
    let mut prefix = Prefix::default();
    let mut rest = line;
    if let Some((host, after)) = syslog(line) {
        prefix.starts = true;
        prefix.host = Some(host.to_owned());
        rest = after;
    }
    // `<6>[ 7.9]` of /dev/kmsg's readers; `[Mon Nov 20 ...]` of dmesg -T.
    let Some(open) = rest.find('[') else {
        return prefix;
    };
    if !prefix.starts
        && !rest[..open]
            .trim_start_matches(['<', '>'])
            .chars()
            .all(is_filling)
    {
        return prefix;
    }
    let inside = rest[open + 1..]
        .split(']')
        .next()
        .unwrap_or_default()
        .trim();
    let seconds = inside.split_whitespace().next().unwrap_or_default();
    if let Ok(seconds) = seconds.parse::<f64>()
        && inside.contains('.')
        && seconds.is_finite()
    {
        prefix.starts = true;
        prefix.seconds = Some(seconds);
    }
    let weekday = ["Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "];
    if weekday.iter().any(|day| inside.starts_with(day)) {
        prefix.starts = true;
    }
    prefix
}

fn is_filling(c: char) -> bool {
    c.is_ascii_digit() || c == '<' || c == '>' || c == ' '
}

/// The host of a line of syslog or journalctl, and what follows it.
fn syslog(line: &str) -> Option<(&str, &str)> {
    let (first, rest) = line.split_once(' ')?;
    if MONTHS.contains(&first) {
        // Days below 10 stand after two spaces.
        return after_time(rest.trim_start().split_once(' ')?.1);
    }
    let bytes = first.as_bytes();
    let iso = bytes.len() >= 19 && bytes[10] == b'T' && bytes[..4].iter().all(u8::is_ascii_digit);
    iso.then(|| host(rest)).flatten()
}

fn after_time(rest: &str) -> Option<(&str, &str)> {
    let (time, rest) = rest.split_once(' ')?;
    let is_time = time.len() >= 8 && time.as_bytes()[2] == b':' && time.as_bytes()[5] == b':';
    is_time.then(|| host(rest)).flatten()
}

fn host(rest: &str) -> Option<(&str, &str)> {
    let (host, rest) = rest.split_once(' ')?;
    let name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    (!host.is_empty() && host.len() <= 255 && host.chars().all(name)).then_some((host, rest))
}

/// The release of a kernel that a line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named<'a> {
    pub(super) release: &'a str,
    pub(super) weight: Weight,
}

/// How a line names a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// A sentence or a file's name: it counts where nothing else does.
    Hint,
    /// `uname`, or the head of a trace.
    Said,
    /// The first message of a kernel.
    Start,
}

fn release(text: &str) -> Option<&str> {
    let text = text.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != '+');
    let letter = |c: char| c.is_ascii_alphanumeric() || ".-_+~".contains(c);
    let is_one = text.starts_with(|c: char| c.is_ascii_digit())
        && text.len() < 80
        && text.contains('.')
        && text.chars().all(letter);
    is_one.then_some(text)
}

/// The kernel that a line names. `in_log`: it begins with a time; `asked`: the line before asks.
pub(super) fn kernel(line: &str, in_log: bool, asked: bool) -> Option<Named<'_>> {
    let named = |weight| move |release| Named { release, weight };
    if let Some((_, rest)) = line.split_once("Linux version ") {
        return release(rest.split(' ').next()?).map(named(Weight::Start));
    }
    let mut words = line.split(' ');
    let first = words.next()?;
    if line.contains(" SMP") && line.contains(" #") {
        // `uname -a`, with the name of the host or without, and `uname -rv`.
        let rest = line.strip_prefix("Linux ");
        let mut words = rest.unwrap_or(line).split(' ').take(2);
        let found = match rest {
            Some(_) => words.find_map(release),
            None => release(first),
        };
        if found.is_some() {
            return found.map(named(Weight::Said));
        }
    }
    if asked && words.next().is_none() {
        return release(first).map(named(Weight::Said));
    }
    for mark in ["ainted ", "Tainted: "] {
        if line.contains("Comm: ")
            && let Some((_, rest)) = line.split_once(mark)
        {
            let said = rest.split(' ').find_map(release);
            return said.map(named(Weight::Said));
        }
    }
    if let Some((_, rest)) = line.split_once("BOOT_IMAGE=") {
        let (_, rest) = rest.split(' ').next()?.split_once("vmlinuz-")?;
        return release(rest).map(named(Weight::Hint));
    }
    if in_log {
        return None;
    }
    for mark in ["ernel version: ", "ernel: ", "ernel "] {
        if let Some((_, rest)) = line.split_once(mark) {
            let said = release(rest.split(' ').next()?);
            let said = said.filter(|text| mark != "ernel " || text.matches('.').count() > 1);
            return said.map(named(Weight::Hint));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_hosts_are_read_as_the_daemons_write_them() {
        let at = |line: &str| {
            let prefix = prefix(line);
            (prefix.starts, prefix.host, prefix.seconds)
        };
        let host = |name: &str| Some(name.to_owned());
        assert_eq!(at("[    7.927634] idxd"), (true, None, Some(7.927634)));
        assert_eq!(
            at("[    7.927634][  T123] idxd"),
            (true, None, Some(7.927634))
        );
        assert_eq!(at("<6>[    7.9] idxd"), (true, None, Some(7.9)));
        assert_eq!(at("[Mon Nov 20 10:00:01 2023] idxd"), (true, None, None));
        assert_eq!(
            at("Nov  2 10:00:01 spr-1 kernel: idxd"),
            (true, host("spr-1"), None)
        );
        assert_eq!(
            at("Nov 20 10:00:01 spr-1 kernel: [ 12.5] idxd"),
            (true, host("spr-1"), Some(12.5))
        );
        assert_eq!(
            at("2023-11-20T10:00:01.123456+01:00 b kernel: x"),
            (true, host("b"), None)
        );
        for line in [
            "feature.",
            "idxd 0000:6a:01.0: [1.0] x",
            "Now we see",
            "May I ask",
            "",
            "[",
        ] {
            assert_eq!(at(line), (false, None, None), "{line}");
        }
    }

    #[test]
    fn kernels_are_named_by_their_first_message_uname_traces_and_sentences() {
        for (line, release, weight) in [
            (
                "[ 0.0] Linux version 6.8.0-31-generic (buildd",
                "6.8.0-31-generic",
                Weight::Start,
            ),
            (
                "Linux spr 5.14.0-362.el9.x86_64 #1 SMP PREEMPT",
                "5.14.0-362.el9.x86_64",
                Weight::Said,
            ),
            (
                "Linux 5.19.0-32-generic #33~22.04.1-Ubuntu SMP",
                "5.19.0-32-generic",
                Weight::Said,
            ),
            (
                "5.11.0-31-generic #33-Ubuntu SMP Wed Aug 11",
                "5.11.0-31-generic",
                Weight::Said,
            ),
            (
                "CPU: 3 PID: 1 Comm: x Not tainted 6.12.1 #2",
                "6.12.1",
                Weight::Said,
            ),
            (
                "BOOT_IMAGE=/boot/vmlinuz-6.8.0-45-generic ro",
                "6.8.0-45-generic",
                Weight::Hint,
            ),
            ("Kernel: 6.2.0-34-generic", "6.2.0-34-generic", Weight::Hint),
            ("- Kernel version: 6.8", "6.8", Weight::Hint),
            (
                "(Xeon, Kernel 6.2.0-34-generic) und",
                "6.2.0-34-generic",
                Weight::Hint,
            ),
        ] {
            assert_eq!(
                kernel(line, false, false),
                Some(Named { release, weight }),
                "{line}"
            );
        }
        let asked = kernel("5.15.0-91-generic", false, true);
        assert_eq!(asked.map(|named| named.weight), Some(Weight::Said));
        for line in [
            "Linux version of the tool",
            "5.15.0-91-generic",
            "a kernel 6.8 or later",
            "BOOT_IMAGE=/vmlinuz-linux",
        ] {
            assert_eq!(kernel(line, false, false), None, "{line}");
        }
        assert_eq!(
            kernel("Nov 20 10:00:01 a kernel: 1.0.2 x", true, false),
            None
        );
    }
}
