//! Hostile captures, and machines with random contents.

use std::fs;
use std::io::Write;
use std::path::Path;

use dray_doctor::{
    Captured, CapturedError, Machine, Reading, Stat, Unreadable, diagnose, markdown, table,
};
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use tar::{Builder, EntryType, Header};

const INDEX: &str = r#"{"format": 1}"#;

/// An archive of these members; names are written as they stand.
fn archive(members: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, kind, content) in members {
        let mut header = Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_cksum();
        tar.append(&header, *content).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn open(bytes: &[u8]) -> Result<Captured, CapturedError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("machine.tar.gz");
    fs::write(&path, bytes).unwrap();
    Captured::open(&path)
}

/// Why it is refused: the whole chain of errors.
fn refusal(bytes: &[u8]) -> String {
    let error = open(bytes).unwrap_err();
    let mut text = error.to_string();
    let mut next: Option<&dyn std::error::Error> = std::error::Error::source(&error);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

#[test]
fn members_outside_machine_are_refused() {
    let index = ("capture.json", EntryType::Regular, INDEX.as_bytes());
    for name in [
        "machine/../../etc/passwd",
        "/etc/passwd",
        "machine",
        "other/file",
        "../x",
        "machine/..",
    ] {
        let text = refusal(&archive(&[index, (name, EntryType::Regular, b"x")]));
        assert!(text.contains("stands outside"), "{name}: {text}");
    }
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Fifo,
    ] {
        let text = refusal(&archive(&[index, ("machine/proc/cmdline", kind, b"")]));
        assert!(text.contains("not a regular file"), "{kind:?}: {text}");
    }
    let cmdline = ("machine/proc/cmdline", EntryType::Regular, &b"x"[..]);
    assert!(refusal(&archive(&[index, cmdline, cmdline])).contains("there twice"));
    assert!(refusal(&archive(&[index, index])).contains("there twice"));
    assert!(refusal(&archive(&[cmdline])).contains("no capture.json"));
    assert!(open(&archive(&[index, cmdline])).is_ok());
}

#[test]
fn indices_of_another_format_are_refused() {
    let with = |index: &str| {
        refusal(&archive(&[(
            "capture.json",
            EntryType::Regular,
            index.as_bytes(),
        )]))
    };
    assert!(with(r#"{"format": 2}"#).contains("use a newer dray"));
    assert!(with(r#"{"format": 1, "base": "other"}"#).contains("base"));
    assert!(with(r#"{"format": 1, "more": 0}"#).contains("does not hold"));
    assert!(with("[").contains("does not hold"));
}

#[test]
fn large_members_and_archives_are_refused() {
    let zeros = vec![0; (8 << 20) + 1];
    let index = ("capture.json", EntryType::Regular, INDEX.as_bytes());
    let text = refusal(&archive(&[
        index,
        ("machine/x", EntryType::Regular, &zeros),
    ]));
    assert!(text.contains("larger than"), "{text}");
    // 80 MB in some 80 kB.
    let part = &zeros[..8 << 20];
    let names: Vec<String> = (0..10).map(|i| format!("machine/{i}")).collect();
    let members: Vec<_> = names
        .iter()
        .map(|n| (n.as_str(), EntryType::Regular, part))
        .collect();
    let bomb = archive(&members);
    assert!(bomb.len() < 1 << 20);
    let text = refusal(&bomb);
    assert!(text.contains("unpacked, is larger than"), "{text}");
}

#[test]
fn a_truncated_archive_is_reported_as_truncated() {
    let whole = Captured::open(&fixture("healthy-6.8-bare-metal"))
        .unwrap()
        .pack()
        .unwrap();
    for length in (20..whole.len()).step_by(97) {
        let text = refusal(&whole[..length]);
        assert!(text.contains("truncated"), "{length}: {text}");
    }
    assert!(refusal(b"PK\x03\x04 and so on, a zip file").contains("not a tar.gz"));
    assert!(refusal(b"").contains("truncated"));
    // A tar that ends in the middle inside a whole gzip.
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(&[b'x'; 100]).unwrap();
    assert!(!refusal(&gz.finish().unwrap()).is_empty());
}

#[test]
fn a_base_outside_the_capture_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("capture");
    fs::create_dir_all(root.join("machine/proc")).unwrap();
    assert!(
        Captured::open(&root)
            .unwrap_err()
            .to_string()
            .contains("no capture.json")
    );
    for base in ["../other", "/etc", "..", ""] {
        fs::write(
            root.join("capture.json"),
            format!(r#"{{"format": 1, "base": "{base}"}}"#),
        )
        .unwrap();
        let text = Captured::open(&root).unwrap_err().to_string();
        assert!(text.contains("no name of a directory"), "{base}: {text}");
    }
    // A base that is the capture itself must not loop.
    fs::write(
        root.join("capture.json"),
        r#"{"format": 1, "base": "capture"}"#,
    )
    .unwrap();
    assert!(
        Captured::open(&root)
            .unwrap_err()
            .to_string()
            .contains("bases")
    );
    fs::write(root.join("capture.json"), INDEX).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", root.join("machine/proc/cmdline")).unwrap();
    assert!(matches!(
        Captured::open(&root),
        Err(CapturedError::FileKind { .. })
    ));
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name)
}

/// A machine with something else in place of one kind of answer.
struct Spoiled {
    machine: Captured,
    /// Which paths are spoiled: those whose bytes sum up to this, modulo `every`.
    seed: u32,
    every: u32,
    text: Vec<u8>,
}

impl Spoiled {
    fn hits(&self, path: &str) -> bool {
        let sum = path.bytes().fold(self.seed, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        });
        sum.is_multiple_of(self.every)
    }

    fn name(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }
}

impl Machine for Spoiled {
    fn read(&self, path: &str) -> Reading<Vec<u8>> {
        match self.hits(path) {
            true => Ok(self.text.clone()),
            false => self.machine.read(path),
        }
    }

    fn list(&self, path: &str) -> Reading<Vec<String>> {
        let mut names = self.machine.list(path)?;
        if self.hits(path) {
            names.push(self.name());
        }
        Ok(names)
    }

    fn link(&self, path: &str) -> Reading<String> {
        match self.hits(path) {
            true => Ok(self.name()),
            false => self.machine.link(path),
        }
    }

    fn stat(&self, path: &str) -> Reading<Stat> {
        match self.hits(path) {
            true => Err(Unreadable::Other(self.name())),
            false => self.machine.stat(path),
        }
    }
}

fn names() -> impl Strategy<Value = String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let entries = fs::read_dir(root).unwrap().map(|e| e.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    prop::sample::select(names)
}

fn spoil() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        Just(b"$(touch /tmp/owned);`id` \x1b[2J\n\"'".to_vec()),
        Just(b"-9223372036854775808\n".to_vec()),
        Just(b"0xffffffffffffffff\n".to_vec()),
        Just(b"9223372036854775807\n".to_vec()),
        Just(Vec::new()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Random file contents do not make a diagnosis fail, and reach neither the terminal nor the shell
    /// commands of its fixes unescaped.
    #[test]
    fn a_diagnosis_of_random_contents_is_escaped(name in names(), seed: u32, every in 1_u32..40, text in spoil()) {
        let machine = Captured::open(&fixture(&name)).unwrap();
        let spoiled = Spoiled { machine, seed, every, text };
        let diagnosis = diagnose(&spoiled);
        let shown = table(&diagnosis, 96) + &markdown(&diagnosis);
        prop_assert!(shown.chars().all(|c| c == '\n' || !c.is_control()));
        let causes = diagnosis.findings().flat_map(|f| &f.causes).map(|c| &c.fix);
        let fixes = diagnosis.findings().map(|f| &f.fix).chain(causes);
        for command in fixes.flat_map(|fix| &fix.commands) {
            prop_assert!(!command.contains("touch"), "{}", command);
            prop_assert!(!command.contains('`'), "{}", command);
        }
    }

    #[test]
    fn random_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = open(&bytes);
        // The same as a tar inside a gzip, which is reached seldom otherwise.
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(&bytes).unwrap();
        let _ = open(&gz.finish().unwrap());
    }
}
