//! Programs that break a rule of asynchronous copies, each beside its right twin: the class is named, and nothing is
//! said of the twin.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::common::{race_example, race_example_with};

/// What a program does while a descriptor is in flight is seen in most runs: a machine may give it no processor for long.
const TRIES: usize = 20;

/// What the last line says of a case with these options, and whether the session was an error.
fn judged(program: &Path, options: &[&str], case: &str, twin: &str) -> (String, bool) {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("dray"))
        .args(["run", "--profile", "1e1w-d", "--sanitize=error"])
        .args(options)
        .arg("--")
        .args([program, Path::new(case), Path::new(twin)])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let verdict = said
        .lines()
        .rev()
        .find(|line| line.starts_with("dray sanitize: "));
    let verdict = verdict.unwrap_or_else(|| panic!("{case} {twin}: {said}"));
    (verdict.to_owned(), output.status.success())
}

#[test]
fn findings_are_written_as_their_schema_says() {
    let directory = TempDir::new().expect("a directory");
    let program = race_example(directory.path(), "clinic");
    let mut documents = Vec::new();
    for case in ["copy-of-copy", "size-zero", "overrun"] {
        let file = directory.path().join(case).with_extension("json");
        reported(&[], &program, case, &file);
        documents.push(("run-sanitize", file));
    }
    let text = std::fs::read_to_string(&documents[1].1).expect("it is written");
    assert!(
        text.contains("\"class\": \"field\"") && text.contains("\"opcode\": 3"),
        "{text}"
    );
    if let Some(wrong) = crate::schemas::misfits(&documents) {
        assert!(wrong.is_empty(), "{wrong}");
    }
}

/// What a session with these options writes on standard error, and to the file: of the first of some sessions in which
/// something is seen, as above.
fn reported(options: &[&str], program: &Path, case: &str, file: &Path) -> (String, String) {
    let session = |_| {
        let output = Command::new(assert_cmd::cargo::cargo_bin!("dray"))
            .args(["run", "--profile", "1e1w-d", "--sanitize"])
            .arg("--sanitize-file")
            .arg(file)
            .args(options)
            .arg("--")
            .args([program, Path::new(case), Path::new("wrong")])
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stderr).expect("text");
        let written = std::fs::read_to_string(file).expect("it is written");
        (said, written)
    };
    let seen = |(said, _): &(String, String)| {
        !said.contains("nothing found") || said.contains("suppressed by")
    };
    let mut sessions = (0..TRIES).map(session);
    sessions.find(seen).expect("something is seen")
}

/// `submit` of the clinic is one function for all: its callers tell the two apart.
#[test]
fn a_finding_has_the_places_of_both_and_is_suppressed_by_either() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("findings.sarif");
    for flags in [&["-g"][..], &["-g", "-static"], &["-no-pie", "-fno-inline"]] {
        let program = race_example_with(directory.path(), "clinic", flags);
        let (said, written) = reported(&[], &program, "copy-of-copy", &file);
        let places = said.matches(" in pair").count();
        let debug = flags[0] == "-g";
        let lines = said.matches("clinic.c:").count();
        assert!(places == 2 && (lines >= 8) == debug, "{flags:?}: {said}");
        let log: serde_json::Value = serde_json::from_str(&written).expect("JSON");
        let result = &log["runs"][0]["results"][0];
        assert_eq!(log["version"], "2.1.0");
        assert_eq!(result["ruleId"], "overlap");
        assert_eq!(
            result["stacks"].as_array().map(Vec::len),
            Some(2),
            "{written}"
        );
        let location = &result["locations"][0];
        assert_eq!(location["logicalLocations"][0]["name"], "submit");
        let related = result["relatedLocations"].as_array().expect("places");
        let names = related
            .iter()
            .map(|place| place["logicalLocations"][0]["name"].as_str());
        let expected = ["submit", "pair", "pair"].map(Some);
        assert!(names.eq(expected), "{written}");
        let line = &location["physicalLocation"]["region"]["startLine"];
        assert_eq!(line.is_u64(), debug, "{written}");
    }
    let program = directory.path().join("clinic");
    let list = directory.path().join("suppressions");
    for (text, suppressed) in [
        ("overlap:copy_of_copy\n", true),
        ("overlap:*clinic$\n", true),
        ("overlap:two_writers\nsource:*\n", false),
    ] {
        std::fs::write(&list, text).expect("written");
        let option = ["--suppressions", list.to_str().expect("text")];
        let (said, _) = reported(&option, &program, "copy-of-copy", &file);
        let quiet = said.contains("nothing found") && said.contains("suppressed by overlap:");
        assert_eq!(quiet, suppressed, "{text}: {said}");
    }
}

/// What polls for a while only gives up more often here.
#[test]
fn a_program_that_fails_with_descriptors_in_flight_has_a_note() {
    let directory = TempDir::new().expect("a directory");
    let program = race_example(directory.path(), "clinic");
    let said = |twin: &str| {
        let output = Command::new(assert_cmd::cargo::cargo_bin!("dray"))
            .args(["run", "--profile", "1e1w-d", "--sanitize", "--"])
            .args([&program, Path::new("polled-for-a-while"), Path::new(twin)])
            .output()
            .expect("it runs");
        String::from_utf8(output.stderr).expect("text")
    };
    const NOTE: &str = "note: the program failed with 1 descriptor in flight";
    assert!((0..TRIES).any(|_| said("wrong").contains(NOTE)));
    assert!(!said("right").contains("note: "));
}

/// The other party of memory that is taken away is the call.
#[test]
fn a_call_that_takes_memory_away_is_named_and_suppressed_by_its_caller() {
    let directory = TempDir::new().expect("a directory");
    let program = race_example(directory.path(), "clinic");
    let file = directory.path().join("findings.json");
    let list = directory.path().join("suppressions");
    for (case, call, caller) in [
        ("source-unmapped", "munmap", "unmap"),
        ("source-given-back", "madvise", "give_back"),
        ("destination-moved", "mremap", "move_mapping"),
        ("destination-mapped-again", "mmap", "map_again"),
    ] {
        let (said, written) = reported(&[], &program, case, &file);
        let by = format!(", by {call}\n");
        let frame = format!(" in {caller} ");
        let (_, after) = said.split_once("taken away by thread").expect("a call");
        assert!(said.contains(&by) && after.contains(&frame), "{said}");
        let written: serde_json::Value = serde_json::from_str(&written).expect("JSON");
        let finding = &written["findings"][0];
        assert!(finding["other"].is_null() && finding["other_site"].is_object());

        // By the caller of the call alone, which has submitted nothing.
        std::fs::write(&list, format!("lifetime:^{caller}$\n")).expect("written");
        let option = ["--suppressions", list.to_str().expect("text")];
        let (said, _) = reported(&option, &program, case, &file);
        let quiet = said.contains("nothing found") && said.contains("suppressed by lifetime:");
        assert!(quiet, "{said}");
    }
    // The C library's own calls are not seen: nobody else is named for them.
    let (said, _) = reported(&[], &program, "large-chunk-freed", &file);
    assert!(
        said.contains("lifetime: ") && !said.contains("taken away"),
        "{said}"
    );
}

#[test]
fn every_class_is_named_and_the_right_twin_is_not() {
    let directory = TempDir::new().expect("a directory");
    let program = race_example(directory.path(), "clinic");
    let list = Command::new(&program)
        .arg("list")
        .output()
        .expect("it runs");
    let list = String::from_utf8(list.stdout).expect("text");
    let mut classes = std::collections::BTreeSet::new();
    for line in list.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [case, class, options @ ..] = &words[..] else {
            panic!("{line}: a name and a class");
        };
        // Of an error of the program alone nothing is said.
        let names = match *class {
            "error" => "nothing found".to_owned(),
            class => format!("{class} "),
        };
        classes.insert(class.to_string());
        let mut verdicts = (0..TRIES).map(|_| judged(&program, options, case, "wrong"));
        let found = verdicts.find(|(verdict, _)| verdict.contains(&names));
        let found = found.map(|(_, success)| success);
        // What has killed itself ends so.
        assert_eq!(found, Some(false), "{case}: {class} is not found");
        let (verdict, success) = judged(&program, options, case, "right");
        assert!(
            verdict.contains("nothing found") && success,
            "{case}, right: {verdict}"
        );
    }
    let all = [
        "close",
        "destination",
        "error",
        "field",
        "lifetime",
        "lost",
        "overlap",
        "record",
        "resume",
        "source",
    ];
    assert!(classes.into_iter().eq(all));
}
