//! Google Benchmark's own compare.py reads our JSON.

use assert_cmd::Command;

const COMPARE: &str = "/usr/share/benchmark/compare.py";

#[test]
fn compare_py_reads_our_json() {
    if dray_skip::lacks(&[COMPARE]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let result = |name: &str, platform: &str| {
        let path = directory.path().join(name).display().to_string();
        Command::cargo_bin("dray")
            .unwrap()
            .args([
                "bench",
                "--block_size=4k,64k",
                "--queue_size=16",
                "--batch_size=0",
            ])
            .arg("--benchmark_filter=^copy/api:rust/path:dsa/.*timer:full")
            .arg("--benchmark_repetitions=3")
            .arg(format!("--platform={platform}"))
            .arg(format!("--benchmark_out={path}"))
            .assert()
            .success();
        path
    };
    let (old, new) = (result("old.json", "spr-2s"), result("new.json", "emr-2s"));
    // Debian's python has Debian's scipy; one earlier in the PATH need not.
    let output = Command::new("/usr/bin/python3")
        .args([COMPARE, "benchmarks", &old, &new])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    for size in [4096, 65536] {
        let name = format!("/size:{size}/real_time/threads:16_median");
        assert!(text.contains(&name), "{text}");
    }
}
