//! Every JSON document has a schema in `docs/schemas`, and is as it says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{directory, dray};

const SCHEMAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// Where a command writes its document.
enum To {
    Stdout,
    File,
}
use To::{File, Stdout};

/// Schema, exit code, where the document goes, and the command; `OUT` is the file, `DRAY` the program, `EXAMPLES` a folder.
const DOCUMENTS: &[(&str, i32, To, &str)] = &[
    ("advise", 0, Stdout, "advise --size 16k --format json"),
    (
        "advise",
        0,
        Stdout,
        "advise --size 64 --depth 4 --format json",
    ),
    (
        "bench",
        0,
        Stdout,
        "bench --benchmark_filter=copy --block_size 4096 --batch_size 0 --benchmark_format=json",
    ),
    (
        "bench",
        0,
        File,
        "bench --real --benchmark_filter=move.*rust --block_size 4096 --benchmark_min_time=5x --benchmark_repetitions 3 --benchmark_out OUT",
    ),
    ("micros", 0, Stdout, "micros -i 10 --format json"),
    ("micros", 0, Stdout, "micros -m -i 10 --format json"),
    (
        "compare",
        0,
        Stdout,
        "compare bench-2 bench-2 --format json",
    ),
    (
        "compare",
        0,
        Stdout,
        "compare bench-3 bench-3 --format json",
    ),
    (
        "config-list",
        0,
        Stdout,
        "run --profile 4e1w-s -- DRAY config list -i",
    ),
    (
        "config-validate",
        0,
        Stdout,
        "config validate 1e1w-d --format json",
    ),
    (
        "config-validate",
        1,
        Stdout,
        "config validate wrong.json --format json",
    ),
    (
        "doctor",
        0,
        Stdout,
        "run --profile 1e1w-s -- DRAY doctor --format json",
    ),
    ("doctor", 3, Stdout, "doctor --from machine --format json"),
    (
        "doctor-messages",
        1,
        Stdout,
        "doctor dmesg.txt --format json",
    ),
    (
        "figures",
        0,
        Stdout,
        "figures --only fig3 --set size=4096 --out report --format json",
    ),
    ("figures-list", 0, Stdout, "figures --list --format json"),
    ("figures-check", 0, Stdout, "figures --check --format json"),
    (
        "fabric-show",
        0,
        Stdout,
        "fabric show testbed --format json",
    ),
    ("fabric-show", 0, Stdout, "fabric show gpu8 --format json"),
    (
        "fabric-bench",
        0,
        Stdout,
        "fabric bench --only latency --format json",
    ),
    (
        "fabric-bench-check",
        0,
        Stdout,
        "fabric bench --check --format json",
    ),
    (
        "fabric-predict",
        0,
        Stdout,
        "fabric predict --topology EXAMPLES/two-gpus.toml --flows EXAMPLES/two-gpus-flows.toml --format json",
    ),
    (
        "fabric-schedule",
        0,
        Stdout,
        "fabric schedule --topology validation --jobs EXAMPLES/jobs.toml --format json",
    ),
    (
        "fabric-schedule",
        0,
        Stdout,
        "fabric schedule --topology validation --jobs EXAMPLES/jobs.toml --no-replay --format json",
    ),
    (
        "fabric-collective",
        0,
        Stdout,
        "fabric collective all-to-all --format json",
    ),
    (
        "fabric-compare-estimators",
        0,
        Stdout,
        "fabric compare-estimators --instances 2 --format json",
    ),
    (
        "offload",
        0,
        File,
        "offload --mover virtual --count-small --adapt off --stats-file OUT -- /usr/bin/python3 -c bytes(bytearray(1<<20))",
    ),
    ("replay", 0, Stdout, "replay calls.rec --format json"),
    (
        "replay",
        0,
        Stdout,
        "replay descriptors.rec --config 1e1w-d,2e1w-d --format json",
    ),
    (
        "offload-survey",
        0,
        File,
        "offload --survey --stats-file OUT -- /usr/bin/python3 -c bytes(bytearray(1<<20))",
    ),
    (
        "tier",
        0,
        File,
        "tier --back-end uffd --fast 16M --stats-file OUT -- /bin/true",
    ),
    (
        "tier",
        0,
        Stdout,
        "tier --back-end uffd --fast 16M -- sh in_session.sh DRAY tier status --format json",
    ),
    (
        "tier-bench",
        0,
        Stdout,
        "tier bench --rounds 1 --time 0.05 --format json",
    ),
    ("tier-bench", 0, Stdout, "tier bench policies --format json"),
    (
        "tier-bench",
        0,
        Stdout,
        "tier bench program --runs 2 --format json -- /bin/true",
    ),
    ("fidelity", 0, Stdout, "fidelity --format json"),
    (
        "vhost",
        0,
        Stdout,
        "vhost --port s --mover virtual --duration 0.1 --format json",
    ),
    (
        "vhost",
        0,
        File,
        "vhost --port s --duration 0.1 --stats-file OUT",
    ),
];

/// Schemas whose documents another test makes, with the command.
const ELSEWHERE: [(&str, &str); 7] = [
    ("run-sanitize", "run"),
    ("run-sanitize", "shell"),
    ("attest", "attest"),
    ("compare-attest", "compare"),
    ("tier-watch", "tier watch"),
    ("vfio-counts", "vfio"),
    ("vfio-counts", "vm"),
];

/// What the commands above read.
fn prepare(dir: &Path) {
    fs::write(
        dir.join("dmesg.txt"),
        "[    5.0] Linux version 6.1.0\n[    6.0] idxd 0000:6a:01.0: Unable to turn on user SVA feature.\n\
         [    7.0] idxd 0000:6a:01.0: a message that nobody knows\n",
    )
    .unwrap();
    // Other tests have sessions, too.
    fs::write(dir.join("in_session.sh"), "exec \"$@\" --session $PPID\n").unwrap();
    let machine = dir.join("machine");
    fs::create_dir(&machine).unwrap();
    fs::write(
        machine.join("capture.json"),
        r#"{"format": 1, "missing": []}"#,
    )
    .unwrap();
    let mut wrong = fs::read_to_string(Path::new(EXAMPLES).join("my-accel-config.json")).unwrap();
    wrong = wrong.replace("\"priority\":", "\"priority\":1");
    fs::write(dir.join("wrong.json"), wrong).unwrap();
    let copies = "offload --record calls.rec -- /usr/bin/python3 -c bytes(bytearray(1<<20))";
    let micros = format!(
        "run --profile 1e1w-d --record descriptors.rec -- {} micros --device hw -i 2",
        env!("CARGO_BIN_EXE_dray")
    );
    for line in [copies, &micros] {
        assert!(dray(dir, line).output().unwrap().status.success(), "{line}");
    }
}

fn schema(name: &str) -> PathBuf {
    Path::new(SCHEMAS).join(format!("{name}.json"))
}

/// Which of the documents do not fit: empty if all do. `None` where there is no validator.
pub(crate) fn misfits(pairs: &[(&str, PathBuf)]) -> Option<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/schemas/validate.py");
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-W", "error", script]);
    for (name, document) in pairs {
        python.arg(schema(name)).arg(document);
    }
    let output = python.output().expect("python3 runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if errors.contains("No module named 'jsonschema'") {
        dray_skip::skip("python3-jsonschema is not installed");
        return None;
    }
    let wrong = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        output.status.success(),
        wrong.is_empty() && errors.is_empty(),
        "{errors}"
    );
    Some(wrong)
}

#[test]
fn every_document_is_as_its_schema_says() {
    let dir = directory();
    prepare(dir.path());
    let mut pairs = Vec::new();
    for (index, (name, code, to, line)) in DOCUMENTS.iter().enumerate() {
        let document = dir.path().join(format!("{name}-{index}"));
        let out = document.display().to_string();
        let words = line.split(' ').map(|word| match word {
            "DRAY" => env!("CARGO_BIN_EXE_dray").to_owned(),
            "OUT" => out.clone(),
            word => word.replace("EXAMPLES", EXAMPLES),
        });
        let mut command = dray(dir.path(), "");
        let output = command.args(words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{line}: {errors}");
        match to {
            Stdout => fs::write(&document, &output.stdout).unwrap(),
            File => assert!(document.is_file(), "{line}: {errors}"),
        }
        pairs.push((*name, document));
    }
    if let Some(wrong) = misfits(&pairs) {
        assert!(wrong.is_empty(), "{wrong}");
    }
}

/// Histograms of migrations that the test itself causes are not to be had: the trace may be empty.
#[test]
fn a_watch_of_the_kernel_is_as_its_schema_says() {
    let dir = directory();
    let script =
        "mount -t tracefs trace . && exec \"$0\" tier watch --time 1 --tracefs . --format json";
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_dray")]);
    let output = unshare.current_dir(dir.path()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        dray_skip::skip(&format!("no trace file system: {errors}"));
        return;
    }
    let document = dir.path().join("document");
    fs::write(&document, &output.stdout).unwrap();
    if let Some(wrong) = misfits(&[("tier-watch", document)]) {
        assert!(wrong.is_empty(), "{wrong}");
    }
}

/// All commands, each with its help.
fn commands(path: &str, found: &mut Vec<(String, String)>) {
    let dir = directory();
    let output = dray(dir.path(), path).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    for line in listed.take_while(|line| !line.is_empty()) {
        let name = line.split_whitespace().next().unwrap();
        if name != "help" && line.starts_with("  ") && !line.starts_with("   ") {
            commands(format!("{path} {name}").trim(), found);
        }
    }
    found.push((path.to_owned(), help));
}

#[test]
fn every_command_that_prints_json_has_a_schema_and_every_schema_a_command() {
    let mut found = Vec::new();
    commands("", &mut found);
    // Traces are in the format of the viewer.
    let is_json = |line: &str| {
        let words = line.contains("json:") || line.contains("json,") || line.contains("json]");
        words && line.contains("values")
            || line.trim_start().starts_with("- json:")
            || line.contains("as JSON")
    };
    let printing: BTreeSet<&str> = found
        .iter()
        .filter(|(_, help)| help.lines().any(is_json))
        .map(|(path, _)| path.as_str())
        .collect();
    assert!(printing.len() > 15, "{printing:?}");
    let tested = |path: &&&str| {
        let mut lines = DOCUMENTS.iter().map(|(_, _, _, line)| *line);
        let starts = |line: &str| {
            let own = line.rsplit("DRAY ").next().unwrap_or(line);
            own == **path || own.starts_with(&format!("{path} "))
        };
        lines.any(starts) || ELSEWHERE.iter().any(|(_, command)| command == *path)
    };
    let missing: Vec<&&str> = printing.iter().filter(|path| !tested(path)).collect();
    assert!(
        missing.is_empty(),
        "no document of {missing:?} is validated"
    );
    let used = DOCUMENTS
        .iter()
        .map(|(name, ..)| *name)
        .chain(ELSEWHERE.map(|(name, _)| name));
    let used: BTreeSet<String> = used.map(|name| format!("{name}.json")).collect();
    let files = fs::read_dir(SCHEMAS).unwrap();
    let files: BTreeSet<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files, used);
    let guide = fs::read_to_string(Path::new(SCHEMAS).join("../json.md")).unwrap();
    let unnamed: Vec<&String> = files
        .iter()
        .filter(|name| !guide.contains(&format!("(schemas/{name})")))
        .collect();
    assert!(unnamed.is_empty(), "docs/json.md does not name {unnamed:?}");
}
