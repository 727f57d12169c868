//! Command lines of kernels in a text.

use std::ops::Range;

use crate::command_line::{forbids, turns_sva_off};

/// What a command line says that other advice depends on, as the catalogue writes it.
pub(super) const SCALABLE: &str = "intel_iommu=on,sm_on";

/// Where the words of a command line begin in a line, if it is one: as the kernel prints it, as
/// /proc/cmdline has it, or as the boot loader is told. `asked`: the line before asks for it.
pub(super) fn begins(text: &str, asked: bool) -> Option<usize> {
    for head in ["Kernel command line: ", "Command line: "] {
        if let Some((before, _)) = text.split_once(head) {
            // A sentence is no log.
            let is_log = before.is_empty() || before.ends_with("] ") || before.ends_with(": ");
            return is_log.then_some(before.len() + head.len());
        }
    }
    let is_one = text.starts_with("BOOT_IMAGE=")
        || text.starts_with("GRUB_CMDLINE_LINUX")
        || (asked && text.contains('='));
    is_one.then_some(0)
}

/// The words, and where they stand.
fn words(text: &str, from: usize) -> impl Iterator<Item = (Range<usize>, &str)> {
    let around = ['"', '\'', '\\', '`'];
    text[from..].split(' ').map(move |word| {
        let word = word.trim_matches(around);
        // `GRUB_CMDLINE_LINUX="intel_iommu=on ...`
        let word = match word.split_once(around) {
            Some((key, rest)) if key.starts_with("GRUB_") => rest.trim_matches(around),
            _ => word,
        };
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        (start..start + word.len(), word)
    })
}

/// What is said last to a parameter that takes words between commas.
fn last<'a>(
    all: &[(Range<usize>, &'a str)],
    key: &str,
    of: [&str; 2],
) -> Option<(Range<usize>, &'a str)> {
    let mut said = all.iter().rev().filter_map(|(place, word)| {
        let values = word.strip_prefix(key)?.split(',');
        let value = values.rev().find(|value| of.contains(value))?;
        Some((place.clone(), value))
    });
    said.next()
}

/// Words that hinder a DSA: where each stands, and the one that the catalogue has for it.
pub(super) fn hindering(text: &str, from: usize) -> Vec<(Range<usize>, &'static str)> {
    let all: Vec<_> = words(text, from).collect();
    let mut found = Vec::new();
    let values = [
        ("intel_iommu=", ["on", "off"], "off", "intel_iommu=off"),
        (
            "intel_iommu=",
            ["sm_on", "sm_off"],
            "sm_off",
            "intel_iommu=sm_off",
        ),
        ("iommu=", ["off", "pt"], "off", "iommu=off"),
    ];
    for (key, of, bad, known) in values {
        found.extend(
            last(&all, key, of)
                .filter(|(_, value)| *value == bad)
                .map(|(place, _)| (place, known)),
        );
    }
    // The kernel that saves a crash needs no DSA, and is safer without.
    let is_kdump = all
        .iter()
        .any(|(_, word)| word.starts_with("elfcorehdr=") || *word == "reset_devices");
    for (place, word) in &all {
        let clears = |name: &str| {
            let list = word.strip_prefix("clearcpuid=");
            list.is_some_and(|list| list.split(',').any(|feature| feature == name))
        };
        let known = match word {
            _ if is_kdump => continue,
            _ if forbids(word, "idxd") || forbids(word, "idxd_bus") => "module_blacklist=idxd",
            _ if turns_sva_off(word) => "idxd.sva=0",
            _ if clears("movdir64b") => "clearcpuid=movdir64b",
            _ if clears("enqcmd") => "clearcpuid=enqcmd",
            _ => continue,
        };
        found.push((place.clone(), known));
    }
    found
}

/// What of it other advice depends on.
pub(super) fn facts(text: &str, from: usize) -> Vec<&'static str> {
    let all: Vec<_> = words(text, from).collect();
    let says = |key, of, good| last(&all, key, of).is_some_and(|(_, value)| value == good);
    let has = |word: &str| all.iter().any(|(_, known)| *known == word);
    let is_scalable = says("intel_iommu=", ["on", "off"], "on")
        && says("intel_iommu=", ["sm_on", "sm_off"], "sm_on");
    let facts = [(is_scalable, SCALABLE), (has("no5lvl"), "no5lvl")];
    let facts = facts.into_iter().filter(|(holds, _)| *holds);
    facts.map(|(_, fact)| fact).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(text: &str, asked: bool) -> Vec<&'static str> {
        let from = begins(text, asked);
        let found = from.map(|from| hindering(text, from)).unwrap_or_default();
        found.into_iter().map(|(_, known)| known).collect()
    }

    #[test]
    fn words_that_hinder_are_found_in_command_lines_and_nowhere_else() {
        for (text, found) in [
            (
                "[ 0.0] Command line: BOOT_IMAGE=/vmlinuz ro intel_iommu=off",
                "intel_iommu=off",
            ),
            (
                "[ 0.0] Kernel command line: ro intel_iommu=on,sm_off",
                "intel_iommu=sm_off",
            ),
            (
                "Nov 20 10:00:01 a kernel: Command line: ro iommu=off",
                "iommu=off",
            ),
            (
                "BOOT_IMAGE=/vmlinuz module_blacklist=nouveau,idxd",
                "module_blacklist=idxd",
            ),
            (
                "BOOT_IMAGE=/vmlinuz modprobe.blacklist=idxd",
                "module_blacklist=idxd",
            ),
            (
                "BOOT_IMAGE=/vmlinuz rd.driver.blacklist=idxd",
                "module_blacklist=idxd",
            ),
            ("GRUB_CMDLINE_LINUX=\"idxd.sva=0\"", "idxd.sva=0"),
            (
                "BOOT_IMAGE=/vmlinuz clearcpuid=rdpid,enqcmd",
                "clearcpuid=enqcmd",
            ),
        ] {
            assert_eq!(known(text, false), [found], "{text}");
        }
        assert_eq!(known("ro intel_iommu=off", true), ["intel_iommu=off"]);
        for text in [
            "Add idxd to module_blacklist in the kdump kernel command line: module_blacklist=idxd",
            "What does the Kernel command line: module_blacklist=idxd do?",
            "[ 0.0] Command line: elfcorehdr=0x1 module_blacklist=idxd,idxd_bus",
            "[ 0.0] Command line: reset_devices module_blacklist=idxd",
            "[ 0.0] Command line: intel_iommu=off intel_iommu=on,sm_on iommu=pt",
            "[ 0.0] Command line: module_blacklist=idxd_vdev",
            "module_blacklist=idxd",
        ] {
            assert_eq!(known(text, false), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_advice_depends_on_is_read() {
        let line = "BOOT_IMAGE=/vmlinuz-6.2.0 ro intel_iommu=on,sm_on iommu=pt no5lvl";
        assert_eq!(facts(line, 0), [SCALABLE, "no5lvl"]);
        assert_eq!(facts("intel_iommu=on iommu=pt", 0), [""; 0]);
        let file = "GRUB_CMDLINE_LINUX_DEFAULT=\\\"intel_iommu=on,sm_on no5lvl\\\"";
        assert_eq!(facts(file, 0), [SCALABLE, "no5lvl"]);
    }
}
