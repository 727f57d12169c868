//! `dray advise` on cases with a known side.

use assert_cmd::Command;

fn advise(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("dray").expect("the program");
    let output = command.arg("advise").args(args).output().expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let code = output.status.code().expect("a code");
    (code, text(output.stdout), text(output.stderr))
}

#[test]
fn a_small_copy_stays_on_the_core_and_a_large_one_goes() {
    let (code, small, _) = advise(&["--size", "256"]);
    assert_eq!(code, 0);
    assert!(small.contains("One core is faster"), "{small}");
    let (_, large, _) = advise(&["--size", "64k", "--depth", "4"]);
    assert!(large.contains("Offload: "), "{large}");
}

#[test]
fn programs_read_the_same_as_people() {
    let args = ["--op", "fill", "--size", "16k", "--depth", "8"];
    let (_, json, _) = advise(&[&args[..], &["--format", "json"]].concat());
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["case"]["size"], 16384);
    let metric = |side: &str| value[side]["metrics"]["throughput_gbps"].as_f64();
    assert!(metric("dsa") > metric("core"), "{json}");
    let from = value["break_even_bytes"].as_u64().expect("a size");
    assert!(from < 16384, "{json}");
    let (_, csv, _) = advise(&[&args[..], &["--format", "csv"]].concat());
    assert_eq!(csv.lines().count(), 5, "{csv}");
}

#[test]
fn bad_input_names_the_flag_and_the_fix() {
    for (args, parts) in [
        (&["--size", "0"][..], &["size", "outside"][..]),
        (&["--size", "4k", "--op", "memmov"], &["memmove"]),
        (&["--size", "4k", "--op", "noop"], &["noop"]),
        (&["--size", "4k", "--depth", "200"], &["depth", "128"]),
        (&["--size", "64M"], &["size", "max_transfer_size"]),
    ] {
        let (code, out, error) = advise(args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {error}");
        for part in parts {
            assert!(error.contains(part), "{args:?}: {error}");
        }
    }
}
