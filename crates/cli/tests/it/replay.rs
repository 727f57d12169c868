//! Programs that are recorded, and replayed.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::common::{directory, dray};

/// A program in C that copies in threads, in a child and in another program, which it becomes.
const COPIES: &str = r#"
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static char a[1 << 20], b[1 << 20];
static void *copy(void *size)
{
	for (int i = 0; i < 300; i++)
		memcpy(a, b, (long)size);
	return size;
}
int main(int argc, char **argv)
{
	pthread_t threads[4];
	for (long i = 0; i < 4; i++)
		pthread_create(threads + i, 0, copy, (void *)4096);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], 0);
	if (!fork()) {
		copy((void *)8192);
		_exit(0);
	}
	wait(0);
	copy((void *)100);
	memset(a, 1, 65536);
	if (argc == 1)
		execl(argv[0], argv[0], "again", (char *)0);
	/* The last of the bytes that are compared differs. */
	for (volatile int i = 0; i < 16383; i++)
		b[i] = 1;
	if (memcmp(a, b, 65536) <= 0)
		return 2;
	/* The first. */
	return memcmp(b + 65536, a, 1 << 15) == 0;
}
"#;

fn compiled(dir: &Path, name: &str, source: &str) {
    let file = dir.join(format!("{name}.c"));
    fs::write(&file, source).expect("a file");
    let built = std::process::Command::new("cc")
        .args(["-O1", "-fno-builtin", "-o", name])
        .arg(&file)
        .arg("-lpthread")
        .current_dir(dir)
        .status();
    assert!(built.expect("cc").success());
}

fn run(dir: &Path, arguments: &str) -> Output {
    dray(dir, arguments).output().expect("it runs")
}

fn replayed(dir: &Path, arguments: &str) -> Value {
    let found = run(dir, &format!("replay {arguments} --format json"));
    let error = String::from_utf8_lossy(&found.stderr).into_owned();
    assert!(found.status.success(), "{error}");
    serde_json::from_slice(&found.stdout).expect("a document")
}

fn requests(replayed: &Value, from_bytes: u64) -> u64 {
    let classes = replayed["rows"][0]["latency"].as_array().expect("a list");
    let class = classes
        .iter()
        .find(|class| class["from_bytes"] == from_bytes);
    class.map_or(0, |class| class["requests"].as_u64().expect("a count"))
}

#[test]
fn a_recording_stays_if_its_program_does_not_start() {
    let dir = directory();
    fs::write(dir.path().join("kept"), "a recording").expect("a file");
    for command in ["offload", "run --profile 1e1w-s"] {
        for program in ["no-such-program", "./kept"] {
            let found = run(dir.path(), &format!("{command} --record kept -- {program}"));
            assert!(!found.status.success());
            let kept = fs::read_to_string(dir.path().join("kept")).expect("the file");
            assert_eq!(kept, "a recording", "{command} {program}");
        }
    }
}

#[test]
fn threads_children_and_programs_that_others_become_are_recorded() {
    if dray_skip::lacks(&["cc"]) {
        return;
    }
    let dir = directory();
    let dir = dir.path();
    compiled(dir, "copies", COPIES);
    let recorded = run(dir, "offload --record copies.rec -- ./copies");
    let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
    assert!(recorded.status.success(), "{said}");
    assert!(said.contains("to record one took"), "{said}");
    let found = replayed(dir, "copies.rec --by core");
    assert_eq!(found["recording"]["complete"], true);
    // Of each of both programs: four threads and a child. Calls of 100 bytes are left alone.
    assert_eq!(requests(&found, 4096), 2 * 4 * 300);
    assert_eq!(requests(&found, 8192), 2 * 300);
    assert_eq!(requests(&found, 65536), 2);
    assert_eq!(requests(&found, 16384), 1);
    assert_eq!(requests(&found, 32768), 0, "compared up to a difference");
    assert_eq!(requests(&found, 64), 0);
    let threads = found["rows"][0]["threads"].as_array().expect("a list");
    assert_eq!(threads.len(), 2 * (1 + 4 + 1));
}

#[test]
fn a_full_recording_says_what_is_not_in_it_and_the_program_goes_on() {
    if dray_skip::lacks(&["cc"]) {
        return;
    }
    let dir = directory();
    let dir = dir.path();
    compiled(dir, "copies", COPIES);
    let line = "offload --record copies.rec --record-limit 64k -- ./copies";
    let recorded = run(dir, line);
    let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
    assert!(recorded.status.success(), "{said}");
    assert!(
        said.contains("requests are not in it: the file was full"),
        "{said}"
    );
    assert_eq!(
        fs::metadata(dir.join("copies.rec")).expect("it").len(),
        64 << 10
    );
    let found = run(dir, "replay copies.rec --by core");
    let said = String::from_utf8_lossy(&found.stderr).into_owned();
    assert!(
        found.status.success() && said.contains("it had no room for them"),
        "{said}"
    );
}

#[test]
fn recordings_replace_nothing_that_is_no_regular_file() {
    let dir = directory();
    for command in [
        "offload --record /dev/null -- /bin/true",
        "run --record /dev/null -- /bin/true",
    ] {
        let refused = run(dir.path(), command);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success(), "{command}");
        assert!(said.contains("it is no regular file"), "{said}");
    }
}

#[test]
fn what_is_no_recording_is_refused_with_its_reason() {
    let dir = directory();
    let dir = dir.path();
    fs::write(dir.join("text"), "some text").expect("a file");
    fs::write(dir.join("short"), b"drayrec1\x01\0\0\0\x02\0\0\0").expect("a file");
    fs::write(dir.join("later"), b"drayrec1\x07\0\0\0\x02\0\0\0").expect("a file");
    for (file, words) in [
        ("text", "text is no recording of dray"),
        (
            "short",
            "short at offset 16: the file ends within its header",
        ),
        (
            "later",
            "later is a recording of version 7; this release reads version 1",
        ),
        ("/dev/zero", "/dev/zero is no recording of dray"),
        ("missing", "missing cannot be read: No such file"),
    ] {
        let refused = run(dir, &format!("replay {file}"));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

/// The same loop by `dray micros`, recorded on the virtual device and replayed, and modelled.
#[test]
fn micros_that_was_recorded_is_as_fast_as_micros() {
    let dir = directory();
    let dir = dir.path();
    let binary = assert_cmd::cargo::cargo_bin("dray");
    for flags in ["-s4096 -n32 -i 100", "-s16384 -n64 -b8 -i 50"] {
        let line = format!(
            "run --profile 1e1w-d --record micros.rec -- {} micros --device hw {flags} -v0",
            binary.display()
        );
        let recorded = run(dir, &line);
        let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
        assert!(recorded.status.success(), "{said}");
        let line = "micros.rec --config 1e1w-d --think none --placement dram";
        let found = replayed(dir, line);
        let bytes = found["recording"]["bytes"].as_f64().expect("a number");
        let run_ns = found["rows"][0]["run_ns"].as_f64().expect("a number");
        let modelled = run(
            dir,
            &format!("micros --config 1e1w-d {flags} -v0 --format json"),
        );
        let modelled: Value = serde_json::from_slice(&modelled.stdout).expect("a document");
        let expected = modelled["gb_per_sec"].as_f64();
        let expected = expected.unwrap_or_else(|| panic!("{modelled:#}"));
        // It fills and empties its queue once.
        assert!(
            (bytes / run_ns / expected - 1.0).abs() < 0.03,
            "{flags}: {bytes} {run_ns} {expected}"
        );
    }
}

#[test]
fn ways_are_swept_and_bad_words_refused() {
    if dray_skip::lacks(&["cc"]) {
        return;
    }
    let dir = directory();
    let dir = dir.path();
    compiled(dir, "copies", COPIES);
    assert!(
        run(dir, "offload --record copies.rec -- ./copies")
            .status
            .success()
    );
    let line = "replay copies.rec --config 1e1w-d,2e2w-s --by core,sync,async --threshold 4k,64k --window 1,4 \
                --wait poll,umwait --format csv";
    let csv = run(dir, line);
    let text = String::from_utf8_lossy(&csv.stdout).into_owned();
    // The core once; for each configuration two thresholds and waits, with three ways.
    assert_eq!(text.lines().count(), 1 + 1 + 2 * 2 * 2 * 3, "{text}");
    for (words, said) in [
        ("--set nothing=1", "nothing"),
        ("--set umwait_wake", "a parameter of the platform"),
        ("--threshold many", "--threshold many"),
        ("--config 9x", "9x"),
    ] {
        let refused = run(dir, &format!("replay copies.rec {words}"));
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{error}");
        assert!(error.contains(said), "{error}");
    }
}
