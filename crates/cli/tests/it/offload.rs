//! `dray offload` on programs of others, and on one that makes every call.

mod process;
mod survey;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::{directory, dray};
use serde_json::Value;
use tempfile::TempDir;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/offload");

/// Ways in which calls are offloaded, as arguments before those of the program, with their executor.
const WAYS: [(&str, &str); 2] = [
    ("offload --mover virtual", "virtual"),
    (
        "run --profile 1e1w-s -- DRAY offload --mover hw",
        "hardware",
    ),
];

fn binary() -> PathBuf {
    assert_cmd::cargo::cargo_bin("dray")
}

/// A way, with the binary where one dray starts another.
fn arguments(way: &str, more: &str) -> Vec<String> {
    let words = way.split(' ').chain(more.split(' '));
    let binary = binary().display().to_string();
    words
        .filter(|word| !word.is_empty())
        .map(|word| match word {
            "DRAY" => binary.clone(),
            word => word.to_owned(),
        })
        .collect()
}

fn json(stderr: &[u8]) -> Value {
    let text = String::from_utf8_lossy(stderr);
    let at = text.find("{\n").unwrap_or_else(|| panic!("{text}"));
    serde_json::from_str(&text[at..]).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn number(stats: &Value, name: &str) -> u64 {
    stats[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name}: {stats:#}"))
}

/// Bytes that this executor has executed.
fn by(stats: &Value, executor: &str) -> u64 {
    let rows = stats["histogram"].as_array().expect("a list");
    let rows = rows.iter().filter(|row| row["executor"] == executor);
    rows.map(|row| number(row, "bytes")).sum()
}

fn compiled(dir: &TempDir, name: &str, flags: &[&str]) -> PathBuf {
    let program = dir.path().join(name);
    let status = Command::new("cc")
        .args(["-O2", "-fno-builtin", "-pthread", "-o"])
        .arg(&program)
        .args(flags)
        .arg(format!("{HERE}/{name}.c"))
        .status()
        .expect("a compiler");
    assert!(status.success());
    program
}

#[test]
fn every_offloaded_call_has_the_result_of_the_c_library() {
    let dir = directory();
    let program = compiled(&dir, "calls", &[]);
    let plain = Command::new(&program).output().expect("it runs");
    assert_eq!(plain.stdout, b"right\n", "without dray: {plain:?}");
    let split = "--adapt off --core-fraction 0.4 --faults core";
    for (way, executor) in WAYS {
        for more in [
            "--adapt off",
            split,
            "--min-bytes 4k --wait yield",
            "--calls memcpy",
        ] {
            let output = assert_cmd::Command::new(binary())
                .current_dir(dir.path())
                .args(arguments(way, more))
                .args(["--stats-file=/dev/stderr", "--"])
                .arg(&program)
                .assert()
                .success()
                .stdout("right\n");
            let stats = json(&output.get_output().stderr);
            assert!(by(&stats, executor) > 0, "{way} {more}: {stats:#}");
            let core = stats["on_the_core"].to_string();
            if more.contains("--adapt off") {
                assert_eq!(core.contains("share of the core"), more == split, "{core}");
            }
            assert_eq!(
                stats["executors"],
                serde_json::json!([executor]),
                "{stats:#}"
            );
        }
    }
}

/// The checked calls of `_FORTIFY_SOURCE` are offloaded too, and still abort a program that overflows a buffer.
#[test]
fn fortified_calls_are_offloaded_and_still_checked() {
    let dir = directory();
    let program = dir.path().join("fortified");
    let status = Command::new("cc")
        .args(["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-o"])
        .arg(&program)
        .arg(format!("{HERE}/fortified.c"))
        .status()
        .expect("a compiler");
    assert!(status.success());
    let names = fs::read(&program).expect("a file");
    let calls = ["memcpy", "memmove", "memset"];
    for call in calls {
        let name = format!("__{call}_chk");
        let found = names.windows(name.len()).any(|at| at == name.as_bytes());
        assert!(found, "the compiler has not made {name}");
    }
    for (way, executor) in WAYS {
        let run = || {
            let mut command = assert_cmd::Command::new(binary());
            command
                .current_dir(dir.path())
                .args(arguments(way, "--adapt off --stats-file=/dev/stderr --"))
                .arg(&program);
            command
        };
        let output = run().assert().success().stdout("right\n");
        let stats = json(&output.get_output().stderr);
        assert_eq!(by(&stats, executor), 3 << 20, "{way}: {stats:#}");
        for call in calls {
            let output = run().arg(call).assert().failure();
            let output = output.get_output();
            assert_eq!(output.stdout, b"", "{way} {call}");
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(text.contains("buffer overflow detected"), "{way}: {text}");
        }
    }
}

#[test]
fn threads_share_a_dedicated_queue() {
    let dir = directory();
    let program = compiled(&dir, "threads", &[]);
    let way = "run --profile 1e1w-d -- DRAY offload --mover hw";
    let output = assert_cmd::Command::new(binary())
        .current_dir(dir.path())
        .args(arguments(way, "--adapt off --stats-file=/dev/stderr --"))
        .arg(&program)
        .args(["16", "50"])
        .assert()
        .success()
        .stdout("right\n");
    let stats = json(&output.get_output().stderr);
    let offloaded = number(&stats, "offloaded_bytes");
    assert_eq!(offloaded, by(&stats, "hardware"));
    assert!(
        offloaded * 10 >= number(&stats, "eligible_bytes") * 9,
        "{stats:#}"
    );
}

/// A session in which an engine waits for a page whose faults the program does not answer.
const HELD: &str = "run --profile 4e1w-d --faults touch -- DRAY offload --mover hw";

/// Exit code of the program if the kernel has no such page faults for it.
const IMPOSSIBLE: i32 = 77;

/// The output of a program whose call stalls on the device. `None` if it cannot hold page faults.
fn held(what: &str) -> Option<std::process::Output> {
    let dir = directory();
    let program = compiled(&dir, "held", &[]);
    let output = assert_cmd::Command::new(binary())
        .args(arguments(
            HELD,
            "--adapt off --deadline 0.2 --stats-file=/dev/stderr --",
        ))
        .arg(program)
        .arg(what)
        // Long after the deadline: a program that waits for ever fails the test.
        .timeout(Duration::from_secs(120))
        .output();
    let output = output.expect("it runs");
    if output.status.code() == Some(IMPOSSIBLE) {
        dray_skip::skip("this process may not hold page faults of the kernel");
        return None;
    }
    Some(output)
}

#[test]
fn the_core_finishes_a_comparison_that_stalls_on_the_device() {
    let Some(output) = held("compare") else {
        return;
    };
    assert_eq!(output.stdout, b"right\n", "{output:?}");
    let core = json(&output.stderr)["on_the_core"].to_string();
    assert!(core.contains("no completion in time"), "{core}");
}

#[test]
fn a_copy_that_stalls_on_the_device_aborts_the_program() {
    let Some(output) = held("copy") else {
        return;
    };
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    let said = "/dev/dsa/wq0.0: no completion for 0.2 s of a call of 131072 bytes.";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("hint: DRAY_OFFLOAD_DEADLINE"), "{text}");
}

fn redis(way: &str, values: &str, bytes: &str) -> (String, Vec<u8>) {
    let dir = directory();
    let mut command = Command::new("/usr/bin/python3");
    command.arg(format!("{HERE}/redis.py"));
    command.arg(dir.path()).args([values, bytes]);
    if !way.is_empty() {
        let more = "--adapt off --core-fraction 0 --stats-file=/dev/stderr --";
        command.arg(binary()).args(arguments(way, more));
    }
    let output = command.output().expect("python3 runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{way}: {text}");
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        output.stderr,
    )
}

#[test]
fn redis_with_large_values_is_offloaded_and_keeps_them() {
    if dray_skip::lacks(&["redis-server"]) {
        return;
    }
    let (plain, _) = redis("", "12", "1048576");
    assert!(plain.contains("bgsave_status:ok\ndump 0"), "{plain}");
    for (way, executor) in WAYS {
        let (out, stderr) = redis(way, "12", "1048576");
        assert_eq!(out, plain, "{way}");
        let stats = json(&stderr);
        let offloaded = number(&stats, "offloaded_bytes");
        assert_eq!(offloaded, by(&stats, executor));
        assert!(
            offloaded * 10 >= number(&stats, "eligible_bytes") * 9,
            "{way}: {stats:#}"
        );
        assert_eq!(number(&stats, "min_bytes"), 65536);
    }
}

#[test]
fn sqlite_keeps_its_table_under_offload() {
    if dray_skip::lacks(&["sqlite3"]) {
        return;
    }
    let sql = "create table t(k integer primary key, v blob);\
        with recursive n(x) as (select 1 union all select x+1 from n where x<40)\
        insert into t select x, cast(hex(zeroblob(50000)) || x as blob) from n;\
        update t set v = v || v where k % 7 = 0;\
        select count(*), sum(length(v)) from t; pragma integrity_check;";
    let plain = Command::new("/usr/bin/sqlite3")
        .args([":memory:", sql])
        .output()
        .expect("sqlite3 runs");
    for (way, executor) in WAYS {
        let dir = directory();
        let output = assert_cmd::Command::new(binary())
            .current_dir(dir.path())
            .args(arguments(
                way,
                "--min-bytes 4k --stats-file=/dev/stderr -- /usr/bin/sqlite3",
            ))
            .args(["file.db", sql])
            .assert()
            .success();
        let output = output.get_output();
        assert_eq!(output.stdout, plain.stdout, "{way}");
        assert!(output.stdout.ends_with(b"ok\n"));
        assert!(by(&json(&output.stderr), executor) > 0);
    }
}

/// A few of CPython's own tests. All of them: docs in the README.
#[test]
fn cpython_passes_its_own_tests() {
    if dray_skip::lacks(&["/usr/lib/python3.11/test/test_bytes.py"]) {
        return;
    }
    for (way, executor) in WAYS {
        let dir = directory();
        let more = "--min-bytes 4k --stats-file=/dev/stderr -- /usr/bin/python3.11 -m test -j1";
        let output = assert_cmd::Command::new(binary())
            .current_dir(dir.path())
            .env("TMPDIR", dir.path())
            .args(arguments(way, more))
            .args([
                "test_array",
                "test_memoryview",
                "test_fork1",
                "test_zlib",
                "test_mmap",
            ])
            .assert()
            .success();
        let output = output.get_output();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("Tests result: SUCCESS"), "{way}: {text}");
        assert!(by(&json(&output.stderr), executor) > 0);
    }
}

#[test]
fn exit_codes_and_signals_of_programs_are_passed_on() {
    let dir = directory();
    let sh = "offload --mover virtual --quiet -- /bin/sh -c";
    dray(dir.path(), sh)
        .arg("(exit 3); echo $?; exit 5")
        .assert()
        .code(5)
        .stdout("3\n")
        .stderr("");
    dray(dir.path(), sh)
        .arg("kill -TERM $$")
        .assert()
        .interrupted();
    dray(dir.path(), "offload --mover cpu -- no-such-program")
        .assert()
        .code(127);
    let file = dir.path().join("file");
    fs::write(&file, "no program").expect("a file");
    dray(dir.path(), "offload --mover cpu -- ./file")
        .assert()
        .code(126);
}

#[test]
fn a_program_needs_no_dashes_before_it() {
    let dir = directory();
    let way = "offload --mover cpu --quiet /bin/sh -c";
    // Options behind the program are the program's.
    dray(dir.path(), way)
        .args(["echo $0 $1", "--stats", "--mover"])
        .assert()
        .success()
        .stdout("--stats --mover\n");
    // One of ours that is misspelled is still an error, and not a program.
    dray(dir.path(), "offload --min-byte 4k /bin/sh")
        .assert()
        .code(2);
}

#[test]
fn stderr_and_statistics_name_the_executor() {
    let dir = directory();
    let said = |arguments: &str| {
        let output = dray(dir.path(), arguments).assert().success();
        String::from_utf8_lossy(&output.get_output().stderr).into_owned()
    };
    let stderr = said("offload -- /bin/true");
    assert!(stderr.contains("the virtual device executes\n"), "{stderr}");
    assert!(stderr.contains("executors: virtual; "), "{stderr}");
    let stderr = said("offload --mover cpu --stats -- /bin/true");
    assert!(
        stderr.contains("executors: core; 0 B of 0 B in calls of 64 KiB"),
        "{stderr}"
    );
    let output = dray(dir.path(), "offload --mover hw -- /bin/true")
        .assert()
        .code(3);
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(stderr.contains("has no work queue"), "{stderr}");
    assert!(stderr.contains("hint:"), "{stderr}");
}

/// With a file alone nothing is printed, and a descriptor of the caller is a file.
#[test]
fn the_program_s_streams_are_its_own_when_statistics_go_to_a_file() {
    let dir = directory();
    for way in [
        "offload --mover virtual",
        "offload --survey",
        "tier --back-end uffd --fast 16M",
    ] {
        let script = format!(
            "exec 3>stats; exec \"$0\" {way} --stats-file /dev/fd/3 -- sh -c 'echo out; echo err >&2'"
        );
        assert_cmd::Command::new("sh")
            .current_dir(dir.path())
            .args(["-c", &script])
            .arg(binary())
            .assert()
            .success()
            .stdout("out\n")
            .stderr("err\n");
        let stats = fs::read(dir.path().join("stats")).expect("a file");
        let stats: Value = serde_json::from_slice(&stats).expect("JSON alone");
        assert_eq!(stats["schema"], 1, "{way}");
        let former = format!("{way} --stats=json -- true");
        let output = dray(dir.path(), &former).assert().code(2);
        let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(said.contains("hint: --stats-file FILE"), "{said}");
    }
}

#[test]
fn variables_of_dto_apply_and_options_override_them() {
    let dir = directory();
    let stats = |options: &str| {
        let arguments =
            format!("offload --mover virtual --stats-file=/dev/stderr {options} -- /bin/true");
        let output = dray(dir.path(), &arguments)
            .env("DTO_MIN_BYTES", "8192")
            .env("DTO_CPU_SIZE_FRACTION", "0.25")
            .assert()
            .success();
        let stats = json(&output.get_output().stderr);
        (number(&stats, "min_bytes"), number(&stats, "core_percent"))
    };
    assert_eq!(stats(""), (8192, 25));
    assert_eq!(stats("--min-bytes 16k --core-fraction 0"), (16384, 0));
}

#[test]
fn the_preload_library_works_without_dray_as_dto_does() {
    let dir = directory();
    // The library file exists while a program runs under dray offload.
    let copy = dir.path().join("libdray_offload.so");
    dray(dir.path(), "offload --mover cpu --quiet -- /bin/sh -c")
        .arg(format!(
            "name=${{LD_PRELOAD%%:*}}; cp ${{name##*/..}} {}",
            copy.display()
        ))
        .assert()
        .success();
    let log = dir.path().join("log");
    let output = Command::new("/usr/bin/python3")
        .args(["-c", "x = bytes(bytearray(1 << 20)); print(len(x))"])
        .env("LD_PRELOAD", &copy)
        .env("DTO_COLLECT_STATS", "1")
        .env("DTO_LOG_FILE", &log)
        .output()
        .expect("python3 runs");
    assert_eq!(output.stdout, b"1048576\n", "{output:?}");
    let logs = fs::read_dir(dir.path()).expect("a directory");
    let logs: Vec<PathBuf> = logs
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.display().to_string().contains("/log.python3"))
        .collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    let text = fs::read_to_string(&logs[0]).expect("a file");
    assert!(text.contains("no work queue"), "{text}");
    assert!(text.contains("memcpy"), "{text}");
}

fn refused(arguments: &str, message: &str) {
    let dir = directory();
    let output = dray(dir.path(), arguments).assert().code(2);
    let text = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(text.contains(message), "{arguments}: {text}");
    assert!(
        text.contains("hint:") || text.contains("tip:") || text.contains("--help"),
        "{text}"
    );
}

#[test]
fn bad_input_is_refused_with_a_hint() {
    refused("offload", "no program is named");
    refused("offload --min-bytes 0 -- /bin/true", "possible are 1 to");
    refused("offload --min-bytes 2T -- /bin/true", "possible are 1 to");
    refused("offload --min-bytes much -- /bin/true", "--min-bytes much");
    refused("offload --core-fraction 1 -- /bin/true", "below 1");
    refused("offload --core-fraction half -- /bin/true", "below 1");
    refused("offload --wq wq0 -- /bin/true", "names of work queues");
    refused(
        "offload --deadline soon -- /bin/true",
        "seconds are expected",
    );
    refused("offload --deadline=-1 -- /bin/true", "hint: --deadline 60");
    refused("offload --wait sleep -- /bin/true", "sleep");
    refused("offload --movr cpu -- /bin/true", "--mover");
}

#[test]
fn programs_that_load_no_library_are_refused() {
    let dir = directory();
    let source = dir.path().join("static.c");
    fs::write(&source, "int main(void) { return 0; }").expect("a file");
    let program = dir.path().join("static");
    let status = Command::new("cc")
        .args(["-static", "-o"])
        .arg(&program)
        .arg(&source)
        .status()
        .expect("a compiler");
    assert!(status.success());
    refused(
        &format!("offload -- {}", program.display()),
        "is statically linked",
    );
    let setuid = dir.path().join("setuid");
    fs::copy("/bin/true", &setuid).expect("a copy");
    fs::set_permissions(&setuid, fs::Permissions::from_mode(0o4755)).expect("its owner may");
    if rustix::process::getuid().is_root() {
        dray_skip::skip("for root a setuid program of root has no additional privileges");
        return;
    }
    refused(
        &format!("offload -- {}", setuid.display()),
        "privileges of its own",
    );
}

#[test]
fn libraries_already_in_ld_preload_stay_there() {
    let dir = directory();
    let library = Path::new("/lib/x86_64-linux-gnu/libm.so.6");
    let output = dray(dir.path(), "offload --mover cpu --quiet -- /bin/sh -c")
        .arg("echo $LD_PRELOAD")
        .env("LD_PRELOAD", library)
        .assert()
        .success();
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    assert!(text.contains("libdray_offload.so:/lib"), "{text}");
}
