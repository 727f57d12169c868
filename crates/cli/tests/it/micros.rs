//! `dray micros`: dsa_perf_micros's command lines, its result line, and what is refused.

use std::process::Output;

use assert_cmd::Command;

fn dray(line: &str) -> Output {
    Command::cargo_bin("dray")
        .unwrap()
        .arg("micros")
        .args(line.split_whitespace())
        .output()
        .unwrap()
}

fn stdout(line: &str) -> String {
    let output = dray(line);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{line}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(line: &str) -> String {
    let output = dray(line);
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert!(output.stdout.is_empty(), "{line}");
    String::from_utf8(output.stderr).unwrap()
}

fn snapshot(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "micros", prepend_module_to_snapshot => false, omit_expression => true }, {
        let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        insta::assert_snapshot!(name, text);
    });
}

/// The page of sample command lines, and the line that a published reproduction explains.
const SAMPLES: &[&str] = &[
    "-n128 -s4k -j -c -f -i1000 -k5 -w0 -zF,F -o3",
    "-n128 -s4k -j -f -i1000 -k5-8 -w1 -zF,F -o3",
    "-n512 -b4 -s4k -j -f -i1000 -k5 -w1 -zF,F -o3",
    "-n2 -w0 -o3 -zF,F -f -s1k -i100 -k1 -q1 -t4k",
    "-n1 -w0 -o3 -zF,F -f -s1k -i100 -k1 -q1",
    "-jcf -k0-3 -n32 -o3 -zF,F",
    "-jcf -K[0-3]@dsa0,0 -K[4-7]@dsa2,0 -K[8-11]@dsa4,0 -K[12-15]@dsa6,0 -n32 -o3 -zF,F",
    "-n128 -s4k -i1000 -c -f -w0 -zF,F -o3",
];

#[test]
fn sample_command_lines_print_their_result_lines() {
    let lines: String = SAMPLES
        .iter()
        .map(|line| format!("{line}\n{}", stdout(line)))
        .collect();
    snapshot("samples", &lines);
}

#[test]
fn wait_modes_and_submission_rates_print_their_lines() {
    let lines: String = [
        "-n1 -q1 -s4k -i100",
        "-n1 -q1 -s4k -i100 -x80",
        "-n1 -q1 -s4k -i100 -x 0x000100",
        "-i1000 -w0 -x8000000",
        "-i1000 -w0 -c -x8000000",
        "-i1000 -w1 -x40000000",
    ]
    .iter()
    .map(|line| format!("{line}\n{}", stdout(line)))
    .collect();
    snapshot("waits", &lines);
}

/// The lines that the script of a published reproduction runs, for each of its figures.
#[test]
fn the_lines_of_a_published_script_run() {
    for line in [
        "-s256 -i1000 -n128 -b1 -c -w0 -zF,F -o3",
        "-s1M -i100 -n128 -x 0x000100 -b1 -c -w0 -zF,F -o3",
        "-s4K -i100 -n128 -x 0x000100 -b64 -c -w0 -zF,F -o3",
        "-s1K -i1000 -n16 -x 0x000100 -b1 -c -w0 -zF,F -o3 --config 1e1w-d-wqsz16",
        "-s4K -i1000 -n128 -b1 -S0,1 -c -w0 -zF,F -o3",
        "-s4K -i1000 -n128 -b1 -S1,0 -c -w0 -zF,F -o3 -q1",
        "-s1K -i1000 -n128 -b4 -c -w0 -zF,F -o3 --config 4e1w-d",
    ] {
        assert!(stdout(line).starts_with("GB per sec = "), "{line}");
    }
}

#[test]
fn every_operation_is_measured_and_checked() {
    for opcode in ["0", "3", "4", "5", "6", "9", "0x10", "0x11"] {
        let text = stdout(&format!("-o{opcode} -s8k -n8 -i10 -v1"));
        assert!(text.contains("kopsrate"), "{opcode}: {text}");
    }
}

#[test]
fn another_order_of_buffers_moves_the_same_bytes() {
    let text = stdout("-a -n64 -b8 -i10 --format json");
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["verified"], true, "{text}");
}

#[test]
fn json_and_csv_hold_the_same_numbers() {
    snapshot("json", &stdout("-n1 -q1 -s4k -i100 --format json"));
    snapshot("csv", &stdout("-n32 -s4k -j -i100 --format csv"));
}

#[test]
fn bad_options_are_refused_with_the_possible_ones() {
    for (line, parts) in [
        ("-b2048 -n4096", &["-b 2048", "max_batch_size of 1024"][..]),
        ("-w1 --config 1e1w-d", &["-w1", "1e1w-s"]),
        ("-w1 -K0@dsa0,0 --config 1e1w-d", &["-w1", "dedicated"]),
        ("-K[0-3]@dsa9,0", &["dsa9", "dsa0, dsa2"]),
        ("-K0@dsa0,5", &["no work queue 5"]),
        ("-K0", &["-K[0-3]@dsa0,0"]),
        ("-s4q", &["-s", "4q"]),
        ("-o0x55", &["0x3 memmove"]),
        (
            "-o10",
            &["version 1 has no opcode 0x0a", "op_cap", "version 2 has it"],
        ),
        (
            "-o0x2a",
            &["versions 1 and 2 have no opcode 0x2a", "op_cap"],
        ),
        (
            "-X1 -o3",
            &["-X: version 1 has no opcode 0x0a", "op_cap", "leave -X out"],
        ),
        ("-k9999", &["CPUs 0 to 95"]),
        ("-k0-9", &["no dedicated work queue is left"]),
        ("-S7,7", &["memory nodes 0 to"]),
        ("-x zz", &["hexadecimal"]),
        ("-x 10000000", &["no parameter"]),
        ("-n10 -b4", &["whole batches", "-n12"]),
        ("-zQ,F", &["-z"]),
        ("-i0", &["-i0"]),
        ("-F 1:2", &["-F"]),
        ("-Y", &["-Y"]),
    ] {
        let message = refused(line);
        for part in parts {
            assert!(
                message.contains(part),
                "{line}: {part:?} is not in {message}"
            );
        }
    }
}

/// The published script copies between two sockets by the CPU as well.
#[test]
fn a_core_of_another_platform_is_modelled() {
    let json = |line: &str| -> serde_json::Value {
        serde_json::from_str(&stdout(&format!("{line} --format json"))).unwrap()
    };
    let local = json("-m -s4k -n16 -i4 --platform spr-2s -S0,0 -zF,F -o3");
    let apart = json("-m -s4k -n16 -i4 --platform spr-2s -S0,1 -zF,F -o3");
    assert_eq!(
        (&local["time"], &local["made_on"]),
        (&"modelled".into(), &"spr-2s".into())
    );
    let rate = |result: &serde_json::Value| result["gb_per_sec"].as_f64().unwrap();
    assert!(rate(&local) > rate(&apart), "{local} {apart}");
    if !std::path::Path::new("/sys/devices/system/node/node2").exists() {
        // The CXL node of the platform.
        let silent = dray("-m -s4k -n16 -i4 -S2,2");
        let notes = String::from_utf8(silent.stderr).unwrap();
        assert!(
            notes.contains("not 2: the core is modelled, on platform spr-2s"),
            "{notes}"
        );
        assert!(silent.status.success());
    }
}

/// The line that the published script runs for the CPU; numbers are this machine's, so only
/// their form is looked at.
#[test]
fn a_result_of_this_cpu_is_marked_as_measured() {
    let line = stdout("-s256 -i25 -n128 -m -c -w0 -zF,F -o3");
    assert!(line.starts_with("GB per sec = ") && line.contains(" cpu 100.000000 kopsrate = "));
    let text = stdout("-m -n1 -q1 -s4k -i10 --format json");
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["time"], "measured");
    assert_eq!(result["verified"], true);
    assert!(result["latency_ns"].as_f64().unwrap() > 0.0);
    assert!(refused("-m -k4095").contains("-k 4095"));
    for key in ["p50_ns", "p90_ns", "p99_ns", "machine"] {
        assert!(result.get(key).is_some(), "{key}: {text}");
    }
    assert!(result["machine"]["dray_kernel"].is_string(), "{text}");
    assert!(stdout("-m -n4 -i5 -S0,-1 -a -o9").starts_with("GB per sec = "));
    let silent = dray("-m -n4 -i5 -w0 -c");
    let notes = String::from_utf8(silent.stderr).unwrap();
    assert!(notes.contains("-w -c without effect"), "{notes}");
    assert!(refused("-m --config 1e1w-d").contains("-m"));
    assert!(refused("-m -S0,999").contains("-S 999"));
    assert!(refused("-m -x 8000000").contains("submits nothing"));
}
