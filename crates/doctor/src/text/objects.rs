//! Which devices and work queues a line is about.

use std::collections::BTreeSet;

/// The devices and work queues that a line names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Objects {
    /// Numbers of devices: those of DSAs and IAAs are of one count.
    devices: BTreeSet<String>,
    /// `0.1` of `wq0.1`.
    queues: BTreeSet<String>,
}

impl Objects {
    /// What a plain line names.
    pub(super) fn of(plain: &str) -> Self {
        let mut objects = Self::default();
        let words = plain.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
        for word in words.map(|word| word.trim_end_matches('.')) {
            let device = word.strip_prefix("dsa").or(word.strip_prefix("iax"));
            if let Some(device) = device.filter(|device| is_number(device)) {
                objects.devices.insert(device.to_owned());
            }
            let queue = word.strip_prefix("wq").and_then(|queue| {
                let (device, number) = queue.split_once('.')?;
                (is_number(device) && is_number(number)).then_some((device, queue))
            });
            if let Some((device, queue)) = queue {
                objects.devices.insert(device.to_owned());
                objects.queues.insert(queue.to_owned());
            }
        }
        objects
    }

    /// Whether a line that names `others` may be about one of these: it names none, or one of them.
    pub(super) fn cover(&self, others: &Self) -> bool {
        match self.queues.is_empty() || others.queues.is_empty() {
            true => others.devices.is_empty() || !self.devices.is_disjoint(&others.devices),
            false => !self.queues.is_disjoint(&others.queues),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_about_the_same_if_it_names_one_of_the_same_or_none() {
        let covers = |one, other| Objects::of(one).cover(&Objects::of(other));
        for (one, other) in [
            ("dsa0 is active.", "failed"),
            ("dsa0 is active.", "failed in dsa0"),
            ("/dev/dsa/wq0.1.", "dsa0: x"),
            ("dsa0", "dsa0/wq0.1: x"),
            ("dsa0/wq0.1", "wq0.1"),
        ] {
            assert!(covers(one, other), "{one}: {other}");
        }
        for (one, other) in [
            ("dsa0", "dsa1"),
            ("dsa0", "wq1.0"),
            ("iax1", "dsa0"),
            ("dsa0/wq0.1", "dsa0/wq0.2"),
            ("failed", "dsa0"),
        ] {
            assert!(!covers(one, other), "{one}: {other}");
        }
    }
}
