//! The configuration of a device after a measurement that did not end by itself.

use std::path::Path;

use serde_json::Value;

use super::{FIG4, has_two_cpus, script, two_devices};

#[test]
fn an_interrupted_measurement_restores_the_configuration() {
    let out = tempfile::tempdir().expect("a directory");
    // Enough points that one of them is measured when the signal comes.
    let text = format!(
        "$DRAY config list -i > $OUT/before
         {FIG4} --set wq_size=1..128 & pid=$!
         until [ -s $OUT/report/device-samples.jsonl ]; do kill -0 $pid || exit 9; done
         kill -INT $pid; wait $pid; echo $? > $OUT/code
         $DRAY config list -i > $OUT/after"
    );
    let output = script("4e1w-s", out.path(), &text);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let read = |name: &str| std::fs::read_to_string(out.path().join(name)).expect("a file");
    assert_eq!(read("code").trim(), "130", "{errors}");
    assert_eq!(read("before"), read("after"));
    assert!(!out.path().join("report/index.html").exists());
}

/// What `config list -i` said, in the file at `path`, without the errors that a device has met.
pub(super) fn listed(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("a file");
    let mut found: Value = serde_json::from_str(&text).expect("JSON");
    for device in found.as_array_mut().expect("devices") {
        let device = device.as_object_mut().expect("a device");
        device.remove("errors");
    }
    found
}

#[test]
fn a_killed_measurement_leaves_a_configuration_that_can_be_undone() {
    let out = tempfile::tempdir().expect("a directory");
    // Enough points that the measurement is not over when the signal comes.
    let text = format!(
        "$DRAY config list -i > $OUT/before
         ({FIG4} --set wq_size=1..128 & echo $! > $OUT/pid; wait $!; echo $? > $OUT/code) &
         until [ \"$(cat /sys/bus/dsa/devices/wq0.0/mode)\" = dedicated ] && [ -s $OUT/pid ]; do
             [ ! -s $OUT/code ] || exit 9
         done
         kill -KILL $(cat $OUT/pid); wait
         $DRAY config list -i > $OUT/killed
         $DRAY config --undo || exit 8
         $DRAY config list -i > $OUT/after"
    );
    let output = script("4e1w-s", out.path(), &text);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let code = std::fs::read_to_string(out.path().join("code")).expect("a file");
    assert_eq!(code.trim(), "137", "{errors}");
    let before = listed(&out.path().join("before"));
    assert_ne!(before, listed(&out.path().join("killed")));
    assert_eq!(before, listed(&out.path().join("after")));
}

#[test]
fn a_device_disabled_during_measurement_is_named_and_restored() {
    if !has_two_cpus() {
        return;
    }
    let out = tempfile::tempdir().expect("a directory");
    // Enough points that one of them is measured when the device is disabled, and one configuration for all.
    let text = "$DRAY config list -i > $OUT/before
         ($DRAY figures --device hw --only devices --set size=4033..4160 --set devices=2 --jobs 1 \
             --out $OUT/report 2> $OUT/errors; echo $? > $OUT/code) &
         until [ -s $OUT/report/device-samples.jsonl ]; do [ ! -s $OUT/code ] || exit 9; done
         $DRAY config disable-device -f dsa1 || exit 8
         wait
         $DRAY config list -i > $OUT/after";
    let output = script(&two_devices(out.path()), out.path(), text);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let read = |name: &str| std::fs::read_to_string(out.path().join(name)).expect("a file");
    let errors = read("errors");
    assert_eq!(read("code").trim(), "1", "{errors}");
    // While it is open, or between two points.
    let names = ["wq1.0 was disabled", "there is no work queue wq1.0"];
    assert!(names.iter().any(|name| errors.contains(name)), "{errors}");
    let listed = |name: &str| listed(&out.path().join(name));
    assert_eq!(listed("before"), listed("after"));
}
