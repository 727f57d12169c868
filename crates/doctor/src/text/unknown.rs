//! Lines about a DSA that are not known.

use std::collections::HashMap;

use serde::Serialize;

use super::source_code::is_source;
use crate::catalogue::words;
use crate::finding::printable;
use crate::survey::pci::is_listed;

/// Lines about a DSA that are not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// How many there are.
    pub count: u64,
    /// The first of them, those alike once: the number of the line, and the line.
    pub lines: Vec<(u64, String)>,
}

/// Lines shown.
const MAX_SHOWN: usize = 10;
/// Kinds that are told apart.
const MAX_KINDS: usize = 1000;

#[derive(Default)]
pub(super) struct Unknowns {
    unknown: Unknown,
    kinds: HashMap<String, ()>,
}

impl Unknowns {
    pub(super) fn add(&mut self, number: u64, text: &str) {
        self.unknown.count += 1;
        if self.unknown.lines.len() == MAX_SHOWN || self.kinds.len() == MAX_KINDS {
            return;
        }
        let kind: String = text
            .chars()
            .filter(|c| c.is_alphabetic())
            .take(60)
            .collect();
        if self.kinds.insert(kind, ()).is_none() {
            self.unknown.lines.push((number, printable(text)));
        }
    }

    pub(super) fn finish(self) -> Unknown {
        self.unknown
    }
}

/// Commands of which a text may show how they were typed.
const COMMANDS: [&str; 22] = [
    "accel-config",
    "cat",
    "cd",
    "chmod",
    "dmesg",
    "dray",
    "echo",
    "find",
    "git",
    "grep",
    "insmod",
    "journalctl",
    "ls",
    "ldd",
    "lsmod",
    "lspci",
    "modinfo",
    "modprobe",
    "perf",
    "rmmod",
    "sudo",
    "uname",
];

/// Whether a plain line is a message about a DSA, and neither a command nor a listing.
pub(super) fn is_about_dsa(plain: &str) -> bool {
    let names = |word: &str, name: &str| {
        let number = word.strip_prefix(name).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    };
    let about = words(plain).any(|word| {
        ["idxd", "enqcmd", "enqcmds", "movdir64b", "libaccfg"].contains(&word)
            || word.starts_with("accfg_")
            || names(word, "dsa")
            || names(word, "iax")
    }) || plain.contains("accel-config")
        || plain.contains("/dev/dsa/")
        || is_listed(plain);
    about && !is_shown(plain)
}

/// Whether a line shows files, values or commands.
fn is_shown(plain: &str) -> bool {
    let is_path = plain.starts_with('/') && !plain.contains(": ");
    if (is_path || plain.starts_with(['"', '{', '}', '[', ']', '#', '$', '+']))
        && !plain.starts_with("[ ")
        && !is_timed(plain)
    {
        return true;
    }
    if !is_timed(plain) && is_source(plain) {
        return true;
    }
    if plain.starts_with("crw")
        || plain.starts_with("lrw")
        || plain.starts_with("drw")
        || plain.starts_with("-rw")
    {
        return true;
    }
    // Behind a prompt, such as `[root@spr ~]#`.
    let mut words = plain.split(' ');
    let is_prompt =
        |word: &str| word.ends_with(['#', '$']) || (word.contains('@') && word.ends_with(':'));
    let first = plain.split(' ').next().unwrap_or_default();
    if words.by_ref().take(3).any(is_prompt) || COMMANDS.contains(&first) {
        return true;
    }
    // `lsmod` shows size and users, `modinfo` where the module is.
    let is_number = |word: Option<&str>| {
        word.is_some_and(|word| word.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let mut columns = plain.split(' ').skip(1);
    let is_lsmod = is_number(columns.next()) && is_number(columns.next());
    if is_lsmod || plain.starts_with("filename: ") {
        return true;
    }
    if is_sentence(plain) || is_symbol(plain) {
        return true;
    }
    // `lspci -k`, `ldd`, and the table of SPDK's setup.sh.
    let of_listing = ["kernel driver in use:", "kernel modules:", "subsystem:"];
    if of_listing.iter().any(|head| plain.starts_with(head))
        || plain.contains(" => /")
        || (plain.contains(" 8086 ") && !plain.contains(": "))
    {
        return true;
    }
    // Names alone, as `ls` lists them.
    plain
        .split(' ')
        .all(|word| !word.contains(':') && word.contains(|c: char| c.is_ascii_digit()))
}

/// Words of sentences, of which messages of programs have few.
const OF_SENTENCES: [&str; 30] = [
    "a", "and", "are", "but", "can", "did", "do", "does", "have", "how", "i", "if", "in", "is",
    "it", "my", "of", "please", "so", "that", "the", "then", "this", "to", "was", "we", "what",
    "when", "which", "you",
];

/// Whether a line is a sentence of a person, or part of one.
fn is_sentence(plain: &str) -> bool {
    if is_timed(plain) {
        return false;
    }
    let count = plain.split(' ').count();
    let ends = plain.ends_with(['.', '?']);
    if count >= 8 && ends && !plain.contains(": ") {
        return true;
    }
    let words = words(plain).filter(|word| OF_SENTENCES.contains(word));
    // A message names its program first: `accel-config: it is ...`.
    let first = plain.split(' ').next().unwrap_or_default();
    count >= 7 && words.count() >= 2 && !first.ends_with(':') && !first.starts_with("/dev/")
}

/// Whether a line is of a table of symbols, a profile or a stack: functions and modules alone.
fn is_symbol(plain: &str) -> bool {
    let modules = ["[idxd]", "[idxd_bus]", "[iaa_crypto]"];
    let is_module = |word: &str| modules.contains(&word.trim_matches(['(', ')']));
    !is_timed(plain) && !plain.contains(": ") && plain.split(' ').any(is_module)
}

fn is_timed(plain: &str) -> bool {
    plain
        .strip_prefix('[')
        .is_some_and(|rest| rest.trim_start().starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_from_other_devices_listings_and_commands() {
        for line in [
            "[ 7.9] idxd 0000:6a:01.0: something new",
            "accfg_wq_set_thing: nonsense",
            "cannot find dsa0 here",
            "enqcmd is not what it was",
            "qemu-system-x86_64: /dev/dsa/wq4.0: something new",
            "/dev/dsa/wq0.0: keine ahnung",
            "[ 4.2] idxd 0000:e7:02.0: new: desc->src1_addr 22, sg_dma_len(sg) 4;",
        ] {
            assert!(is_about_dsa(line), "{line}");
        }
        for line in [
            "mv88e6085 d0032004.mdio: dsa: setup failed",
            "key type dsa, 1024 bits",
            "\"dev\":\"dsa0\",",
            "crw------- 1 root root 237, 0 nov 20 10:00 wq0.0 dsa0",
            "[root@spr ~]# accel-config enable-device dsa0",
            "user@spr:~$ sudo modprobe idxd",
            "root@node190:~/iaa# dmesg | grep idxd",
            "sh-5.1# cat /sys/bus/dsa/devices/dsa0/pasid_enabled",
            "i tried accel-config with the file of the guide and it did not help.",
            "dsa0 dsa1 wq0.0",
            "idxd 106496 0",
            "idxd_bus 16384 2 iaa_crypto,idxd",
            "ffffffffc0a5b1c0 t idxd_pci_probe [idxd]",
            "ffffffffc0a5c0d4 idxd_desc_read+0x20 ([idxd])",
            "filename: /lib/modules/6.2.0-31-generic/kernel/drivers/dma/idxd/idxd.ko",
            "/sys/bus/dsa/devices/dsa0",
            "when i run `dmesg | grep idxd` i get:",
            "4. idxd device is in halted state due to reset_devices",
            "so how can i use the dsa0 in the qemu? it works on the host,",
            "kernel driver in use: idxd",
            "idxd 0000:6a:01.0 8086 0b25 0 idxd - -",
            "libaccel-config.so.1 => /usr/lib64/libaccel-config.so.1 (0x00007f14c4bdf000)",
            "ldd /usr/bin/accel-config",
        ] {
            assert!(!is_about_dsa(line), "{line}");
        }
    }

    #[test]
    fn lines_alike_are_shown_once_and_their_number_is_bounded() {
        let mut unknown = Unknowns::default();
        for number in 0..5000 {
            unknown.add(number, &format!("idxd {number} same"));
        }
        for number in 0..5000_u64 {
            let letters: String = number
                .to_string()
                .bytes()
                .map(|digit| char::from(digit + 49))
                .collect();
            unknown.add(number, &format!("idxd {letters}"));
        }
        let found = unknown.finish();
        assert_eq!((found.count, found.lines.len()), (10_000, MAX_SHOWN));
    }
}
