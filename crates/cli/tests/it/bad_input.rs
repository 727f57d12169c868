//! Bad input: exit code 2, a message with file, field, value, limit and fix, and no file written.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use crate::common::{directory, dray};
use crate::session::program;

/// Profile that the tests spoil.
const PROFILE: &str = include_str!("../../../idxd/tests/data/1e1w-d-batch64.json");

/// A platform that differs from a built-in one in a single line.
fn platform(parameter: &str, topology: &str) -> String {
    format!(
        "name = \"mine\"\ntitle = \"Mine\"\nextends = \"spr-2s\"\n{topology}\n[parameters]\n{parameter}\n"
    )
}

/// Runs `dray figures`, which must fail and write no file; returns stderr.
fn refused(dir: &Path, arguments: &str) -> String {
    let before = fs::read_dir(dir).expect("it was made for the test").count();
    let output = dray(dir, &format!("figures {arguments}"))
        .assert()
        .code(2)
        .get_output()
        .clone();
    assert!(output.stdout.is_empty(), "data on stdout: {arguments}");
    let after = fs::read_dir(dir).expect("it was made for the test").count();
    assert_eq!(before, after, "something was written: {arguments}");
    String::from_utf8(output.stderr).expect("it writes text")
}

#[test]
fn an_argument_that_is_no_text_is_named_and_those_of_programs_may_be_anything() {
    let bad = OsStr::from_bytes(b"1e1w\xff-s");
    let output = Command::new(program())
        .args(["run", "--profile"])
        .arg(bad)
        .args(["--", "true"])
        .output()
        .expect("dray is there");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    says(&message, &["not text in UTF-8", "1e1w\\xFF-s"]);

    let output = Command::new(program())
        .args(["offload", "--mover", "cpu", "--quiet", "--", "printf", "%s"])
        .arg(bad)
        .output()
        .expect("dray is there");
    assert_eq!(output.stdout, bad.as_bytes(), "{output:?}");
}

#[test]
fn an_option_that_is_misspelled_is_named_and_is_no_command() {
    for line in ["run --profil 1e1w-s true", "offload --min-byte 4 true"] {
        let output = dray(directory().path(), line).assert().code(2);
        let message = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        says(
            &message,
            &["unexpected argument", "a similar argument exists"],
        );
    }
}

#[test]
fn operations_have_the_names_of_other_tools() {
    let [copy, memcpy, memmove] = ["copy", "memcpy", "0x3"].map(|name| {
        let line = format!("micros -o{name} -n4 -s4k -i1");
        let output = dray(directory().path(), &line).assert().success();
        output.get_output().stdout.clone()
    });
    assert!(!memmove.is_empty() && copy == memmove && memcpy == memmove);
}

fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is missing in:\n{message}");
    }
}

/// A profile with one text replaced.
fn spoiled(dir: &Path, name: &str, old: &str, new: &str) {
    assert!(PROFILE.contains(old), "{old}");
    fs::write(dir.join(name), PROFILE.replacen(old, new, 1)).expect("the directory is ours");
}

#[test]
fn a_profile_with_an_unknown_key() {
    let dir = directory();
    spoiled(
        dir.path(),
        "p.json",
        "\"max_transfer_size\":2097152",
        "\"max_transfer_siz\":2097152",
    );
    let message = refused(dir.path(), "--config p.json");
    says(
        &message,
        &[
            "p.json",
            "wq0.0",
            "max_transfer_siz",
            "did you mean \"max_transfer_size\"",
            "hint:",
        ],
    );
}

#[test]
fn queues_that_ask_for_more_entries_than_the_device_has() {
    let dir = directory();
    spoiled(dir.path(), "p.json", "\"size\":128", "\"size\":129");
    let message = refused(dir.path(), "--config p.json");
    says(
        &message,
        &[
            "p.json",
            "wq0.0",
            "size is 129",
            "128 entries",
            "fix: \"size\":128",
        ],
    );
}

#[test]
fn a_work_queue_in_no_group() {
    let dir = directory();
    let start = PROFILE
        .find("\"grouped_workqueues\":[")
        .expect("the profile has a queue");
    let end = start + PROFILE[start..].find(']').expect("the list ends") + 1;
    let list = PROFILE[start..end].to_owned();
    let free = list
        .replace("\"group_id\":0,", "")
        .replace("grouped", "ungrouped");
    let text = PROFILE.replacen(&format!("{list},"), "", 1);
    let text = text.replacen(
        "\"ungrouped_engines\"",
        &format!("{free},\n    \"ungrouped_engines\""),
        1,
    );
    fs::write(dir.path().join("p.json"), text).unwrap();
    let message = refused(dir.path(), "--config p.json");
    says(
        &message,
        &[
            "p.json",
            "wq0.0",
            "must be in a group with an engine",
            "fix:",
        ],
    );
}

#[test]
fn a_batch_larger_than_the_queue_allows() {
    let dir = directory();
    spoiled(
        dir.path(),
        "p.json",
        "\"max_batch_size\":64",
        "\"max_batch_size\":32",
    );
    let message = refused(
        dir.path(),
        "--config p.json --only fig3 --set batch=1,4,16,64",
    );
    says(
        &message,
        &[
            "fig3",
            "p.json",
            "batch 64",
            "limit of 32",
            "max_batch_size",
            "hint: --set batch=1,4,16",
        ],
    );
}

#[test]
fn a_transfer_larger_than_the_queue_allows() {
    let dir = directory();
    let message = refused(dir.path(), "--only fig3 --set size=4M");
    says(
        &message,
        &[
            "fig3",
            "1e1w-d",
            "size 4194304",
            "limit of 2097152",
            "max_transfer_size",
            "hint:",
        ],
    );
}

#[test]
fn more_outstanding_than_a_dedicated_queue_holds() {
    let dir = directory();
    let message = refused(dir.path(), "--only fig3 --set depth=200");
    says(
        &message,
        &["fig3", "depth 200", "limit of 128", "hint: --set depth=128"],
    );
}

#[test]
fn a_queue_larger_than_the_device() {
    let dir = directory();
    let message = refused(dir.path(), "--only fig4 --set wq_size=128..256*2");
    says(
        &message,
        &["fig4", "wq_size=256", "size is 256", "128 entries", "fix:"],
    );
}

#[test]
fn a_platform_with_a_negative_latency() {
    let dir = directory();
    let text = platform(
        "poll = { value = -1, unit = \"ns\", range = [9, 11], source = \"me\" }",
        "",
    );
    fs::write(dir.path().join("mine.toml"), text).unwrap();
    let message = refused(
        dir.path(),
        "--platform mine.toml --only fig6a --set dst_node=local,remote",
    );
    says(
        &message,
        &[
            "mine.toml",
            "'poll'",
            "-1 ns",
            "[9, 11] ns",
            "give a value in the range",
        ],
    );
}

#[test]
fn a_platform_with_a_missing_unit() {
    let dir = directory();
    let text = platform(
        "poll = { value = 10, range = [9, 11], source = \"me\" }",
        "",
    );
    fs::write(dir.path().join("mine.toml"), text).unwrap();
    let message = refused(
        dir.path(),
        "--platform mine.toml --only fig6a --set dst_node=local,remote",
    );
    says(
        &message,
        &["mine.toml", "'poll'", "unit none", "write unit = \"ns\""],
    );
}

#[test]
fn a_machine_without_the_memory_of_a_figure() {
    let dir = directory();
    let topology =
        "[topology]\nsockets = 1\ndevices_per_socket = 1\ncores_per_socket = 4\ncxl_nodes = 0";
    fs::write(dir.path().join("mine.toml"), platform("", topology)).unwrap();
    let message = refused(
        dir.path(),
        "--platform mine.toml --only fig6a --set dst_node=local,remote",
    );
    says(
        &message,
        &[
            "mine.toml",
            "fig6a",
            "no remote memory",
            "topology.sockets",
            "hint:",
        ],
    );
    let message = refused(
        dir.path(),
        "--platform mine.toml --only fig6b --set dst_node=cxl",
    );
    says(&message, &["fig6b", "no cxl memory", "topology.cxl_nodes"]);
}

#[test]
fn a_sweep_that_expands_to_nothing() {
    let dir = directory();
    says(
        &refused(dir.path(), "--only fig4 --set wq_size="),
        &["--set", "`wq_size`", "expands to nothing", "256..1M*4"],
    );
    says(
        &refused(dir.path(), "--only fig4 --set wq_size=8..4"),
        &[
            "`8..4`",
            "starts at 8, above its end 4",
            "write the smaller one first",
        ],
    );
}

#[test]
fn a_size_of_0() {
    let dir = directory();
    let message = refused(dir.path(), "--set size=0");
    says(
        &message,
        &["--set", "size = 0", "1 to 2G", "write a value within"],
    );
}

#[test]
fn names_that_do_not_exist() {
    let dir = directory();
    says(
        &refused(dir.path(), "--only fg3"),
        &["'fg3'", "did you mean `fig3`?", "hint: --list"],
    );
    says(
        &refused(dir.path(), "--platform spr2s"),
        &["'spr2s'", "did you mean `spr-2s`?", "hint: --platform"],
    );
    says(
        &refused(dir.path(), "--config 1e1w-x"),
        &["1e1w-x", "near names: 1e1w-d"],
    );
    says(
        &refused(dir.path(), "--set sise=4"),
        &["`sise`", "did you mean `size`"],
    );
    says(
        &refused(dir.path(), "--set op=memmov"),
        &["`memmov`", "did you mean `memmove`"],
    );
    says(
        &refused(dir.path(), "--set size"),
        &["--set size", "hint: --set wq_size=1..128*2"],
    );
    says(
        &refused(dir.path(), "--protocol sede"),
        &["'sede'", "[possible values: paper, seed]", "exists: 'seed'"],
    );
}

#[test]
fn files_that_cannot_be_read() {
    let dir = directory();
    says(
        &refused(dir.path(), "--platform none.toml"),
        &["none.toml", "cannot be read"],
    );
    says(
        &refused(dir.path(), "--config none.json"),
        &["none.json", "cannot read", "hint:"],
    );
}

#[test]
fn an_output_directory_that_is_a_file() {
    let dir = directory();
    fs::write(dir.path().join("taken"), "").unwrap();
    let message = refused(dir.path(), "--only fig3 --set size=4k --out taken");
    says(
        &message,
        &["taken is not a directory", "name another output directory"],
    );
}

#[test]
fn more_jobs_than_the_limit() {
    let dir = directory();
    let message = refused(dir.path(), "--only fig3 --jobs 100000");
    says(&message, &["--jobs", "0..=256"]);
}

#[test]
fn figures_are_drawn_with_a_neighbour_of_size_0() {
    let dir = directory();
    for figure in ["tenants", "priorities"] {
        let arguments = format!("figures --only {figure} --set neighbour_size=0 --out {figure}");
        dray(dir.path(), &arguments).assert().success();
        let chart = fs::read_dir(dir.path().join(figure)).unwrap();
        let names = chart.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let charts = names.filter(|name| name.ends_with(".svg")).count();
        assert!(charts > 0, "{figure}");
    }
}

/// Without a device every command with an option for one ends with 3, and prints a hint.
#[test]
fn commands_without_their_device_exit_with_3() {
    let dir = directory();
    // A machine without the driver.
    for name in ["sys", "dev"] {
        fs::create_dir(dir.path().join(name)).expect("a directory");
    }
    for command in [
        "tier --back-end uffd --fast 64M --mover hw -- /bin/true",
        "vhost --port v.sock --mover hw",
        "offload --mover hw -- /bin/true",
        "figures --device hw --out report",
        "bench --device hw",
        "micros --device hw",
    ] {
        let output = dray(dir.path(), command)
            .env("DRAY_SYSFS_PATH", dir.path().join("sys"))
            .env("DRAY_DEV_PATH", dir.path().join("dev"))
            .assert()
            .code(3);
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        says(&stderr, &["error: ", "\nhint: "]);
    }
}

/// As with `2>&1 | head`: a standard error that nobody reads changes no exit code.
#[test]
fn a_closed_standard_error_is_no_panic() {
    for (line, code) in [
        ("advise --size x", 2),
        ("run -- true", 0),
        ("run --stats -- false", 1),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let status = std::process::Command::new(env!("CARGO_BIN_EXE_dray"))
            .args(line.split(' '))
            .stdout(std::process::Stdio::null())
            .stderr(writer)
            .status()
            .expect("it runs");
        assert_eq!(status.code(), Some(code), "{line}");
    }
}
