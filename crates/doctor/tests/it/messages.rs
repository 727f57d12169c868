//! Every message of the kernel's driver and of its users is explained, and no other.

use dray_doctor::{Explanation, Severity, Texts};

/// A line of each message, by who prints it, and how many there are.
const SOURCES: [(&str, &str, usize); 17] = [
    (
        "Linux, drivers/crypto/intel/iaa",
        include_str!("../messages/iaa-crypto.txt"),
        12,
    ),
    (
        "Linux, drivers/dma/idxd",
        include_str!("../messages/idxd.txt"),
        173,
    ),
    (
        "Linux, drivers/dma/dmaengine.c",
        include_str!("../messages/dmaengine.txt"),
        20,
    ),
    (
        "Linux, drivers/dma/dmatest.c",
        include_str!("../messages/dmatest.txt"),
        32,
    ),
    (
        "Linux, drivers/iommu/intel",
        include_str!("../messages/iommu.txt"),
        329,
    ),
    (
        "accel-config",
        include_str!("../messages/accel-config.txt"),
        205,
    ),
    (
        "accel-config, tests",
        include_str!("../messages/accel-config-test.txt"),
        226,
    ),
    ("DML", include_str!("../messages/dml.txt"), 118),
    ("QPL", include_str!("../messages/qpl.txt"), 100),
    ("DTO", include_str!("../messages/dto.txt"), 26),
    ("SPDK", include_str!("../messages/spdk.txt"), 89),
    (
        "DPDK, drivers/dma/idxd",
        include_str!("../messages/dpdk-idxd.txt"),
        56,
    ),
    (
        "DPDK, lib/dmadev",
        include_str!("../messages/dpdk-dmadev.txt"),
        58,
    ),
    (
        "DPDK, dma-perf",
        include_str!("../messages/dpdk-dma-perf.txt"),
        56,
    ),
    (
        "libfabric, shm",
        include_str!("../messages/libfabric.txt"),
        25,
    ),
    (
        "dsa_perf_micros",
        include_str!("../messages/micros.txt"),
        196,
    ),
    (
        "QEMU, VPP, CNDP",
        include_str!("../messages/openers.txt"),
        7,
    ),
];

fn explain(text: &str) -> Explanation {
    let mut texts = Texts::new();
    texts.message(text);
    texts.finish()
}

#[test]
fn every_message_of_the_driver_and_its_users_is_explained() {
    let mut unexplained = Vec::new();
    for (source, lines, count) in SOURCES {
        assert_eq!(lines.lines().count(), count, "{source}");
        for line in lines.lines() {
            let explanation = explain(line);
            if explanation.unknown.count > 0 {
                unexplained.push(format!("{source}: {line}"));
            }
            for finding in &explanation.findings {
                let note = finding.severity == Severity::Note;
                assert!(note || !finding.fix.advice.is_empty(), "{line}");
                assert!(!finding.versions.is_empty(), "{line}");
            }
        }
    }
    let number = unexplained.len();
    assert!(
        unexplained.is_empty(),
        "{number}:\n{}",
        unexplained.join("\n")
    );
}

/// Who says that a queue cannot be opened is no accel-config, whatever its words, and nothing of it is usual.
#[test]
fn a_queue_that_cannot_be_opened_is_an_error_of_the_program_that_opens_it() {
    for line in include_str!("../messages/openers.txt").lines() {
        let explanation = explain(line);
        assert_eq!(explanation.usual, 0, "{line}");
        let found: Vec<_> = explanation.findings.iter().map(|f| &f.by).collect();
        assert!(!found.is_empty(), "{line}");
        assert!(
            found.iter().all(|by| !by.contains("accel-config")),
            "{line}: {found:?}"
        );
    }
    // A message that nobody knows is counted, and is not taken for one that is usual.
    let explanation = explain("DSA device: open /dev/dsa/wq4.0 x");
    assert_eq!((explanation.usual, explanation.unknown.count), (0, 1));
}

/// `Failure occurred.` is all that an example of DML says, and part of what others do.
#[test]
fn words_of_any_program_count_as_a_whole_line_or_behind_their_program() {
    for line in [
        "Failure occurred.",
        "dml_example[12]: Failure occurred.",
        "./dml: failure occurred",
    ] {
        assert_eq!(explain(line).findings.len(), 1, "{line}");
    }
    for line in [
        "backup: Failure occurred. See the log.",
        "[ 1.0] sda: Failure occurred.",
        "Failure occurred while reading",
    ] {
        assert_eq!(explain(line).findings, [], "{line}");
    }
}

/// The kernel around the driver names the device, and each such line says what to do.
#[test]
fn what_the_kernel_says_around_the_driver_is_explained_and_never_usual() {
    for line in include_str!("../messages/kernel.txt").lines() {
        let explanation = explain(line);
        assert_eq!(
            (explanation.usual, explanation.unknown.count),
            (0, 0),
            "{line}"
        );
        assert_eq!(explanation.findings.len(), 1, "{line}");
        let finding = &explanation.findings[0];
        let note = finding.severity == Severity::Note;
        assert!(note || !finding.fix.advice.is_empty(), "{line}");
    }
    let explanation = explain("idxd 0000:6a:01.0: Removing from iommu group 5");
    assert_eq!((explanation.usual, explanation.findings), (1, vec![]));
}

fn read(text: &'static str) -> Explanation {
    let mut texts = Texts::new();
    texts.read("log", text.as_bytes()).unwrap();
    texts.finish()
}

#[test]
fn lines_of_other_devices_are_left_alone() {
    // Everyday lines, then those whose words are the driver's, its users' or the remapping unit's.
    are_left_alone(include_str!("../messages/others.txt"));
    are_left_alone(include_str!("../messages/other-drivers.txt"));
}

fn are_left_alone(others: &'static str) {
    assert!(others.lines().count() >= 100);
    for line in others.lines() {
        let explanation = read(line);
        assert_eq!(explanation.findings, [], "{line}");
        assert_eq!(explanation.unknown.count + explanation.usual, 0, "{line}");
    }
    // Nor do two lines make a message of their own.
    let explanation = read(others);
    assert_eq!(explanation.findings, []);
    assert_eq!(explanation.unknown.count + explanation.usual, 0);
}

#[test]
fn a_healthy_start_is_usual() {
    let healthy = include_str!("../messages/healthy.txt");
    for line in healthy.lines() {
        let explanation = read(line);
        assert_eq!(explanation.findings, [], "{line}");
        assert_eq!(explanation.unknown.count, 0, "{line}");
    }
    let explanation = read(healthy);
    assert_eq!(explanation.findings, []);
    assert!(explanation.usual > 20, "{}", explanation.usual);
    assert_eq!(
        explanation.systems[0].kernel.as_deref(),
        Some("6.8.0-31-generic")
    );
}

/// What published reports of trouble quote, with spelling and forms of several versions.
#[test]
fn messages_of_published_reports_are_explained() {
    for line in include_str!("../messages/published.txt").lines() {
        let explanation = explain(line);
        assert_eq!(explanation.unknown.count, 0, "{line}");
        assert_ne!(explanation.findings, [], "{line}");
    }
}
