//! Texts of every form are read: what terminals, daemons, mails and web pages made of a log.

use std::io::{self, Cursor, Read, Write};

use dray_doctor::{Explanation, Severity, TextError, Texts, messages, messages_markdown};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

fn read(text: impl Into<Vec<u8>>) -> Explanation {
    let mut texts = Texts::new();
    texts.read("log", Cursor::new(text.into())).unwrap();
    texts.finish()
}

fn refuse(text: impl Into<Vec<u8>>) -> TextError {
    Texts::new()
        .read("log", Cursor::new(text.into()))
        .unwrap_err()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

const SVA: &str = "idxd 0000:6a:01.0: Unable to turn on user SVA feature.";
const FAULT: &str = "DMAR: [DMA Write PASID 0x2] Request device [6a:01.0] fault addr 0x7fe0c9943000 [fault reason 0x5a] SM: Non-zero reserved field set in PASID Table Entry";

/// The texts of the findings.
fn what(explanation: &Explanation) -> Vec<&str> {
    let findings = explanation.findings.iter();
    findings.map(|finding| finding.what.as_str()).collect()
}

#[test]
fn a_message_is_found_in_every_form() {
    let utf16: Vec<u8> = SVA.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut marked = vec![0xff, 0xfe];
    marked.extend(utf16);
    let forms: Vec<Vec<u8>> = vec![
        SVA.into(),
        format!("[    5.105827] {SVA}\r\n").into(),
        format!("<4>[    5.105827] {SVA}").into(),
        format!("[Mon Nov 20 10:00:01 2023] {SVA}").into(),
        format!("Nov  2 10:00:01 spr-1 kernel: [    5.1] {SVA}").into(),
        format!("2023-11-20T10:00:01.123456+01:00 spr-1 kernel: {SVA}").into(),
        format!(
            "\x1b[32m[    5.1] \x1b[0m\x1b[33midxd 0000:6a:01.0\x1b[0m{}",
            &SVA[17..]
        )
        .into(),
        format!("> > `{SVA}`").into(),
        format!("<p><pre><code>{SVA}</code></pre>").into(),
        format!("| {SVA} |").into(),
        format!("\0\0\0{SVA}\n\0\0").into(),
        format!("{{\"MESSAGE\":\"{SVA}\",\"_HOSTNAME\":\"a\",\"_BOOT_ID\":\"1\"}}").into(),
        format!("{{\n\t\"MESSAGE\" : \"{SVA}\",\n}}").into(),
        format!("MESSAGE={SVA}").into(),
        format!("loading 10%\rloading 100%\r{SVA}").into(),
        SVA.to_uppercase().into(),
        SVA.replace(' ', "  ").into(),
        gzip(SVA.as_bytes()),
        format!(
            "=C2=A0=C2=A0[=C2=A0 7.927634]=C2=A0{}=\n{}",
            &SVA[..40],
            &SVA[40..]
        )
        .into(),
        [gzip(b"[ 1.0] x\n"), gzip(SVA.as_bytes())].concat(),
        marked,
    ];
    for form in forms {
        let shown = String::from_utf8_lossy(&form).into_owned();
        let explanation = read(form);
        assert_eq!(explanation.findings.len(), 1, "{shown}: {explanation:?}");
        assert!(
            what(&explanation)[0].contains("shared virtual addressing"),
            "{shown}"
        );
        assert_eq!(explanation.worst(), Some(Severity::Error));
    }
}

/// A terminal cuts at its width, a mail between words.
#[test]
fn a_message_that_was_cut_is_found() {
    for line in [SVA, FAULT] {
        for before in [
            "",
            "[  232.023974] ",
            "Nov 20 10:00:01 a-host-of-some-length kernel: [  232.023974] ",
        ] {
            let whole = format!("{before}{line}");
            for width in [60, 72, 80, 100] {
                let cut: Vec<&[u8]> = whole.as_bytes().chunks(width).collect();
                let cut = cut.join(&b'\n');
                assert_eq!(
                    what(&read(cut)),
                    what(&read(whole.as_str())),
                    "{width}: {whole}"
                );
            }
            let mail =
                whole
                    .replacen(" SVA ", " SVA\n> ", 1)
                    .replacen(" fault addr", "\n> fault addr", 1);
            assert_eq!(
                what(&read(format!("> {mail}"))),
                what(&read(whole.as_str())),
                "{mail}"
            );
        }
    }
    let apart = "[ 1.0] idxd 0000:6a:01.0: Unable to turn on\n[ 2.0] user SVA feature.";
    assert_eq!(read(apart).findings, []);
}

#[test]
fn several_systems_in_a_text_are_told_apart() {
    let old = format!("[    0.000000] Linux version 5.10.0-9-amd64 (x)\n[    5.1] {SVA}\n");
    let new = format!("[    0.000000] Linux version 6.8.0-31-generic (x)\n[    5.1] {SVA}\n");
    let explanation = read(format!("{old}{new}"));
    assert_eq!(explanation.systems.len(), 2);
    let finding = &explanation.findings[0];
    assert_eq!((finding.count, finding.seen.len()), (2, 2));
    // 5.10 does not print it; the other does.
    assert_eq!(finding.conflicts.len(), 1, "{finding:?}");
    assert!(
        finding.conflicts[0].contains("Linux 5.10.0-9-amd64"),
        "{finding:?}"
    );
    let shown = messages(&explanation, 80);
    assert!(shown.contains("It holds 2 systems"), "{shown}");
    assert!(shown.contains("Linux 6.8.0-31-generic"), "{shown}");
    // Without a line that names a kernel: what 5.10 alone prints, and what 7.2 alone does.
    let mixed = read(
        "DMAR: [DMA Read] Request device [6a:01.0] PASID ffffffff fault addr 7f0010 [fault reason 06] PTE Read access is not set\n\
         idxd 0000:6a:01.0: FLR failed\n",
    );
    assert!(
        mixed.conflicts[0].contains("lines of two kernels"),
        "{mixed:?}"
    );
    assert!(
        mixed.conflicts[0].contains("5.10") && mixed.conflicts[0].contains("7.2"),
        "{mixed:?}"
    );
    // Two hosts in one journal.
    let hosts = format!("Nov 20 10:00:01 a kernel: {SVA}\nNov 20 10:00:01 b kernel: {SVA}\n");
    let shown = messages(&read(hosts), 80);
    assert!(
        shown.contains("line 1, a") && shown.contains("line 2, b"),
        "{shown}"
    );
}

#[test]
fn a_message_that_another_kernel_prints_in_other_words_is_judged_by_its_own() {
    let old =
        "[ 0.0] Linux version 5.10.0-9-amd64 (x)\n[ 5.1] idxd 0000:6a:01.0: WQ name not set.\n";
    let new = "[ 0.0] Linux version 7.1.13 (x)\n[ 5.1] idxd 0000:6a:01.0: wq 3 name not set.\n";
    let explanation = read(format!("{old}[ 90.0] x\n{new}"));
    assert_eq!(explanation.systems.len(), 2);
    assert_eq!(explanation.findings[0].count, 2);
    assert_eq!(explanation.findings[0].conflicts, [""; 0]);
    let swapped = read(format!(
        "{}[ 90.0] x\n{new}",
        old.replace("WQ name", "wq 1 name")
    ));
    assert_eq!(swapped.findings[0].conflicts.len(), 1);
    // A distribution ports messages to older kernels.
    for release in [
        "4.18.0-553.el8_10.x86_64",
        "5.14.0-427.el9.x86_64",
        "5.15.0-91-generic",
    ] {
        let text =
            format!("[ 0.0] Linux version {release} (x)\n[ 5.1] idxd 0000:6a:01.0: FLR failed\n");
        assert_eq!(read(text).findings[0].conflicts, [""; 0], "{release}");
    }
}

/// Lines that the sources of each of these kernels have.
#[test]
fn lines_of_one_kernel_are_not_called_lines_of_two() {
    for (release, lines) in [
        (
            "5.12.9",
            &[
                "idxd 0000:6a:01.0: Failed to enable PASID. No SVA support: -22",
                "idxd 0000:6a:01.0: WQ name not set.",
                "idxd 0000:6a:01.0: Failed enabling 9 MSIX entries: -28",
                "DMAR: IOMMU feature pasid inconsistent",
            ][..],
        ),
        (
            "5.15.148",
            &[
                "idxd 0000:6a:01.0: Failed to enable PASID. No SVA support: -22",
                "idxd 0000:6a:01.0: Unable to turn on SVA feature.",
                "idxd 0000:6a:01.0: wq 3 name not set.",
                "DMAR: IOMMU feature pasid inconsistent",
                "DMAR: VT-d detected Invalidation Time-out Error: SID 0",
            ],
        ),
        (
            "6.4.0",
            &[
                "idxd 0000:6a:01.0: IDXD debugfs failed to setup",
                "idxd 0000:6a:01.0: No in-kernel DMA with PASID.",
                "idxd 0000:6a:01.0: Unable to turn on user SVA feature.",
                "idxd 0000:6a:01.0: Failed to request irq 3.",
                "DMAR: PTE not present at level 1",
            ],
        ),
        (
            "7.1.13",
            &[
                "idxd 0000:6a:01.0: wq 3 enabling failed: -6",
                "idxd 0000:6a:01.0: No in-kernel DMA with PASID. -95",
                "idxd 0000:6a:01.0: FLR failed",
                "idxd 0000:6a:01.0: Writing wq 3 config failed: -6",
            ],
        ),
    ] {
        for head in [
            String::new(),
            format!("[ 0.0] Linux version {release} (x)\n"),
        ] {
            let lines: String = lines
                .iter()
                .map(|line| format!("[ 5.1] {line}\n"))
                .collect();
            let explanation = read(format!("{head}{lines}"));
            assert_eq!(explanation.conflicts, [""; 0], "{release}");
            assert!(explanation.findings.len() > 2, "{explanation:?}");
            for finding in &explanation.findings {
                assert_eq!(finding.conflicts, [""; 0], "{release}: {}", finding.what);
            }
        }
    }
}

#[test]
fn faults_of_other_devices_are_notes() {
    let gpu = "DMAR: [DMA Read NO_PASID] Request device [00:02.0] fault addr 0x1000 [fault reason 0x06] PTE Read access is not set\n";
    let with = format!("idxd 0000:6a:01.0: Intel(R) Accelerator Device (v100)\n{gpu}{FAULT}\n");
    let explanation = read(with);
    let severities: Vec<_> = explanation
        .findings
        .iter()
        .map(|finding| finding.severity)
        .collect();
    assert_eq!(severities, [Severity::Error, Severity::Note]);
    assert!(
        what(&explanation)[1].contains("none of the DSAs"),
        "{explanation:?}"
    );
    assert!(what(&read(gpu))[0].contains("is it a DSA?"));
}

#[test]
fn every_function_of_a_line_and_of_a_listing_is_a_dsa_of_the_text() {
    let named = "idxd 0000:11:01.0: x idxd 0000:6a:01.0: y\n";
    for dsas in [
        named,
        "6a:01.0 System peripheral [0880]: Intel Corporation Device [8086:0b25]\n",
        "6a:01.0 0880: 8086:1212\n",
    ] {
        let explanation = read(format!("{dsas}{FAULT}\n"));
        let fault = what(&explanation);
        assert!(fault[0].contains("(device 6a:01.0)"), "{dsas}: {fault:?}");
    }
}

#[test]
fn what_any_device_may_cause_is_no_error_where_no_dsa_is_named() {
    for line in [
        "[ 33.5] DMAR: VT-d detected Invalidation Queue Error: Reason f\n",
        "[ 401.2] dmatest: dma0chan0-copy0: result #1: 'test timed out' with src_off=0x40 dst_off=0x8c0 len=0x3180 (0)\n",
    ] {
        let alone = read(line);
        assert_eq!(alone.worst(), Some(Severity::Warning), "{line}");
        assert!(what(&alone)[0].contains("no line names a DSA"), "{alone:?}");
        let with = read(format!(
            "idxd 0000:6a:01.0: Intel(R) Accelerator Device (v100)\n{line}"
        ));
        assert_eq!(with.worst(), Some(Severity::Error), "{line}");
    }
}

#[test]
fn a_message_that_lost_its_end_or_the_start_of_a_text_is_found() {
    for text in [
        &format!("[    7.9] {}", &SVA[..SVA.len() - 5])[..],
        &format!("{}\n[ 8.0] eth0: up\n", &SVA[22..]),
    ] {
        let explanation = read(text);
        assert!(
            what(&explanation)[0].contains("shared virtual addressing"),
            "{text}"
        );
        assert_eq!(explanation.unknown.count, 0, "{text}");
    }
    for text in [
        "[ 1.0] idxd 0000:6a:01.0: Unable to\n",
        "[ 1.0] eth0: up\nle to turn on user SVA feature.\n",
        "[ 1.0] nvme 0000:01:00.0: Unable to turn on user SVA fea\n",
        // Any program says so, and several messages end so.
        "Operation not permitted\n",
        // A second piece of the first line is no start of the text.
        &format!("eth0: up\r{}\n", &SVA[22..]),
    ] {
        assert_eq!(read(text).findings, [], "{text}");
    }
    // However many lines stand before it.
    let unknown = "[ 1.0] idxd 0000:6a:01.0: a new thing\n".repeat(600);
    let explanation = read(format!("{unknown}[ 2.0] {}\n", &SVA[..SVA.len() - 5]));
    assert_eq!(explanation.findings.len(), 1);
    assert_eq!(explanation.unknown.count, 600);
}

#[test]
fn a_line_of_a_log_is_quoted_rather_than_a_heading() {
    let log = format!("[    7.9] {SVA}");
    let explanation = read(format!("# {SVA} why?\nI get {SVA}\n{log}\n"));
    assert_eq!(
        explanation.findings[0].seen[0].says,
        log.replace("    ", " ")
    );
    assert_eq!(explanation.findings[0].seen[0].line, 3);
    assert_eq!(explanation.findings[0].count, 3);
}

#[test]
fn unknown_lines_about_a_dsa_are_counted_and_shown() {
    let explanation = read(
        "[ 1.0] idxd 0000:6a:01.0: a new thing\n[ 2.0] idxd 0000:6a:01.0: a new thing\n[ 3.0] eth0: up\n",
    );
    assert_eq!(explanation.unknown.count, 2);
    assert_eq!(explanation.unknown.lines.len(), 1);
    let shown = messages(&explanation, 80);
    assert!(
        shown.contains("2 lines about a DSA are not known"),
        "{shown}"
    );
}

#[test]
fn what_is_no_text_is_refused_with_its_kind() {
    assert!(matches!(refuse(""), TextError::Empty));
    assert!(matches!(refuse(gzip(b"")), TextError::Empty));
    assert!(matches!(refuse(vec![0; 5000]), TextError::Binary(_)));
    assert!(matches!(
        refuse(b"\x7fELF\x02\x01\x01\0".to_vec()),
        TextError::Binary(_)
    ));
    assert!(matches!(
        refuse(b"\xfd7zXZ\0...".to_vec()),
        TextError::Compressed { program: "xz", .. }
    ));
    assert!(matches!(refuse(gzip(b"\x89PNG\r\n")), TextError::Binary(_)));
    let noise: Vec<u8> = (0..4000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    assert!(matches!(refuse(noise), TextError::Binary(_)));
    assert!(matches!(refuse(vec![0x1f, 0x8b, 8, 0]), TextError::Io(_)));
}

#[test]
fn a_gzip_that_was_cut_short_counts_up_to_there() {
    let lines: String = (0..20_000)
        .map(|n| format!("[ {n}.5] {SVA} {}\n", n * 7919))
        .collect();
    let mut packed = gzip(lines.as_bytes());
    packed.truncate(packed.len() / 2);
    let explanation = read(packed);
    assert!(explanation.texts[0].incomplete.is_some());
    assert!(explanation.findings[0].count > 1000);
    assert!(messages(&explanation, 80).contains("ends early"));
}

/// Lines without end; what is kept must not grow.
struct Endless {
    line: u64,
    rest: u64,
    pending: Cursor<Vec<u8>>,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.pending.read(buffer)?;
        if read > 0 || self.rest == 0 {
            return Ok(read);
        }
        let mut text = String::new();
        for _ in 0..self.rest.min(500) {
            self.line += 1;
            self.rest -= 1;
            let n = self.line;
            // A new host, device, code and unknown line each time.
            text += &format!(
                "Nov 20 10:00:01 host{n} kernel: idxd 0000:{:02x}:01.0: err[0]: {n:#x}\n",
                n % 256
            );
            text += &format!("idxd 0000:6a:01.0: unknown {n:x}\n");
        }
        self.pending = Cursor::new(text.into_bytes());
        self.pending.read(buffer)
    }
}

#[test]
fn what_is_kept_of_a_long_text_is_bounded() {
    let mut texts = Texts::new();
    let lines = 20_000;
    let endless = Endless {
        line: 0,
        rest: lines,
        pending: Cursor::default(),
    };
    texts.read("log", endless).unwrap();
    let explanation = texts.finish();
    assert_eq!(explanation.texts[0].lines, 2 * lines);
    assert!(explanation.findings.len() <= 256);
    assert!(explanation.systems.len() <= 64);
    assert!(explanation.unknown.lines.len() <= 10);
    assert!(explanation.more > 0);
    let kept: u64 = explanation
        .findings
        .iter()
        .map(|finding| finding.count)
        .sum();
    assert_eq!(kept + explanation.more, lines);
    assert!(serde_json::to_string(&explanation).unwrap().len() < 1 << 20);
    // One line of 4 MiB.
    let long = read(format!("{} {SVA}", "x ".repeat(2 << 20)));
    assert_eq!(long.findings.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// Whatever a text holds, nothing of it reaches the terminal unescaped, and no line is wider.
    #[test]
    fn what_is_shown_of_a_text_is_escaped(
        lines in prop::collection::vec((0_usize..6, "\\PC{0,40}|[\\x00-\\x1f\\x7f\u{202e}]{0,8}"), 1..12),
        width in 1_usize..200,
    ) {
        let heads = [SVA, FAULT, "idxd 0000:6a:01.0: ", "Error[0x14] dsa0: ", "{\"MESSAGE\":\"idxd ", ""];
        let text: String = lines.iter().map(|(head, tail)| format!("{}{tail}\n", heads[*head])).collect();
        let mut texts = Texts::new();
        texts.message(&text);
        let _ = texts.read(&text, Cursor::new(text.clone().into_bytes()));
        let explanation = texts.finish();
        let shown = messages(&explanation, width);
        let odd = |c: char| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
        prop_assert!(!shown.contains(odd), "{}", shown);
        prop_assert!(!messages_markdown(&explanation).contains(odd));
        let command = |line: &str| line.trim_start().starts_with("$ ") || line.contains("--explain");
        let too_wide = shown.lines().find(|line| line.chars().count() > width.max(40) && !command(line));
        prop_assert_eq!(too_wide, None);
    }
}
