//! The catalogue against itself: each message is known as what it is.

use std::fmt::Write;

use super::kernels::KERNELS;
use super::*;
use crate::survey::kernel::Version;
use crate::text::{Explanation, Texts};

/// A line as the source's program prints it.
fn line(pattern: &Pattern) -> String {
    let entry = &CATALOGUE.parsed.entries[pattern.entry];
    let source = &CATALOGUE.parsed.sources[entry.source];
    let scope = source.scope.iter().map(|word| word.trim_end_matches('*'));
    let prefix = match scope.into_iter().next() {
        Some("idxd") => "idxd 0000:6a:01.0: ".to_owned(),
        Some(word) => format!("{}: ", word.to_uppercase()),
        None => String::new(),
    };
    prefix + &pattern.format.example()
}

fn of_kernels() -> impl Iterator<Item = (&'static Pattern, Span)> {
    let patterns = CATALOGUE.parsed.patterns.iter();
    patterns.filter_map(|pattern| Some((pattern, pattern.span?)))
}

#[test]
fn each_message_of_a_kernel_is_known_as_one_that_it_prints() {
    for (pattern, span) in of_kernels() {
        let line = collapse(&line(pattern)).to_ascii_lowercase();
        let found = CATALOGUE.look_up(&line);
        assert!(!found.is_empty(), "{line}");
        for found in found {
            let union = found.span.map(|found| found.union(span));
            assert_eq!(union, found.span, "{line}");
        }
    }
}

#[test]
fn no_message_of_the_driver_is_known_behind_another_driver_s_name() {
    for pattern in &CATALOGUE.parsed.patterns {
        let example = collapse(&pattern.format.example());
        let line = format!("nvme 0000:01:00.0: {example}").to_ascii_lowercase();
        for found in CATALOGUE.look_up(&line) {
            let by = found.source.by.as_str();
            assert!(
                by != "Linux, drivers/dma/idxd" && found.source.always,
                "{line}"
            );
        }
    }
}

#[test]
fn the_longest_format_says_which_kernels_print_it() {
    for (line, first, last) in [
        (
            "idxd 0000:6a:01.0: no in-kernel dma with pasid.",
            (5, 19),
            (6, 5),
        ),
        (
            "idxd 0000:6a:01.0: no in-kernel dma with pasid. -95",
            (6, 6),
            (7, 2),
        ),
        (
            "idxd 0000:6a:01.0: failed enabling 9 msix entries: -28",
            (5, 12),
            (7, 2),
        ),
        // A line that was cut does not say which.
        (
            "idxd 0000:6a:01.0: failed enabling 9 msix entries",
            (5, 10),
            (7, 2),
        ),
    ] {
        let found = CATALOGUE.look_up(line);
        assert_eq!(found[0].span, Some(Span { first, last }), "{line}");
    }
    // Both kinds of kernel print it.
    let found = CATALOGUE.look_up("idxd 0000:6a:01.0: wq 3 enabling failed: -6");
    assert_eq!(found[0].span, None);
}

/// All messages of a kernel, with the line that names it or without.
fn all_of(kernel: Version, head: &str) -> Explanation {
    let mut text = head.to_owned();
    let patterns = of_kernels().filter(|(_, span)| !span.excludes(kernel));
    for (pattern, _) in patterns {
        writeln!(text, "[    5.105827] {}", line(pattern)).unwrap();
    }
    let mut texts = Texts::new();
    let read = texts.read("log", std::io::Cursor::new(text.into_bytes()));
    read.unwrap();
    texts.finish()
}

#[test]
fn all_messages_of_one_kernel_are_of_one_kernel() {
    for kernel in KERNELS {
        let (major, minor) = kernel;
        let named = format!("[    0.000000] Linux version {major}.{minor}.3 (x)\n");
        for head in ["", &named] {
            let explanation = all_of(kernel, head);
            assert!(explanation.findings.len() > 20, "{kernel:?}");
            assert_eq!(explanation.conflicts, [""; 0], "{kernel:?}");
            for finding in &explanation.findings {
                assert_eq!(finding.conflicts, [""; 0], "{kernel:?}");
            }
        }
    }
}

/// Whatever a message was cut to, it is known as one of those that it may be, or not at all.
#[test]
fn what_is_left_of_several_messages_says_of_none_which_it_was() {
    let mut parsed = Parsed::default();
    let same = "the same words begin each of them: ";
    let entry = |n: u32| format!("error: e{n}\n\"{same}{n}{n}{n}\"\n");
    let text = format!("@by x\n@of y\n{}{}{}", entry(1), entry(2), entry(3));
    parsed.add(text.leak()).unwrap();
    let catalogue = Catalogue::of(parsed);
    assert!(catalogue.look_up_cut(same.trim_end(), false).is_none());
    let found = catalogue.look_up_cut(&format!("{same}22"), false);
    assert_eq!(found.map(|found| found.number), Some(1));
}
