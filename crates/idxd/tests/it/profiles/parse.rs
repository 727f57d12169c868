//! What the reader takes, and what it says of the rest.

use std::io::Write;

use super::common::{TEXT, changed};
use dray_device::{Device, WorkQueueMode};
use dray_idxd::driver::Personality;
use dray_idxd::{MAX_PROFILE_BYTES, Profile, ProfileError};

/// In the manner of accel-config's own examples: no capabilities, older names.
const MINIMAL: &str = r#"[{"dev":"dsa1","token_limit":0,"groups":[
  {"dev":"group1.0","tokens_reserved":0,"use_token_limit":0,"tokens_allowed":8,
   "grouped_workqueues":[{"dev":"wq1.0","mode":"shared","size":16,"group_id":0,"priority":10,
     "block_on_fault":1,"type":"user","name":"app1","threshold":15}],
   "grouped_engines":[{"dev":"engine1.0","group_id":0},{"dev":"engine1.1","group_id":0}]},
  {"dev":"group1.1",
   "grouped_workqueues":[{"dev":"wq1.1","mode":"dedicated","size":16,"priority":5,
     "max_batch_size":33,"max_transfer_size":65537,"type":"kernel","name":"dmanengine"}],
   "grouped_engines":[{"dev":"engine1.2"}]}]}]"#;

fn error(changes: &[(&str, &str)]) -> ProfileError {
    Profile::parse(&changed(changes), "dsa.conf").unwrap_err()
}

#[test]
fn minimal_profile_takes_the_rest_from_a_known_device() {
    let profile = Profile::parse(MINIMAL, "app.conf").unwrap();
    assert_eq!(profile.validate(Personality::NEWEST), []);
    assert_eq!(profile.title(), "app.conf (3e2w in 2 groups)");
    let device = profile.devices().unwrap().remove(0);
    assert_eq!(device.capabilities.work_queue_size, 128);
    assert_eq!(device.capabilities.max_batch_size, 1024);
    let [shared, dedicated] = device.work_queues.as_slice() else {
        panic!("two work queues")
    };
    assert_eq!(shared.mode, WorkQueueMode::Shared);
    assert_eq!((shared.threshold, shared.block_on_fault), (15, true));
    assert_eq!(
        (shared.max_batch_size, shared.max_transfer_size),
        (32, 2 << 20)
    );
    assert_eq!((dedicated.id, dedicated.group), (1, 1));
    // Rounded up, as the driver does.
    assert_eq!(
        (dedicated.max_batch_size, dedicated.max_transfer_size),
        (64, 128 << 10)
    );
    assert_eq!(device.groups[0].read_buffers_allowed, 8);
    assert_eq!(device.groups[1].read_buffers_allowed, 96);
    assert!(Device::new(device).is_ok());
}

#[test]
fn older_names_are_written_as_the_new_ones() {
    let text = Profile::parse(MINIMAL, "app.conf").unwrap().to_json();
    assert!(!text.contains("token"), "{text}");
    assert!(text.contains("\"read_buffers_allowed\":8"), "{text}");
    let again = Profile::parse(&text, "app.conf").unwrap();
    assert_eq!(again, Profile::parse(MINIMAL, "app.conf").unwrap());
}

#[test]
fn version_2_takes_the_rest_from_a_version_2_device() {
    let text = MINIMAL.replacen(
        "\"token_limit\"",
        "\"version\":\"0x200\",\"token_limit\"",
        1,
    );
    let device = Profile::parse(&text, "v2").unwrap().devices().unwrap();
    assert_eq!(device[0].capabilities.work_queue_size, 256);
}

#[test]
fn both_spellings_of_ungrouped_work_queues() {
    for key in ["ungrouped workqueues", "ungrouped_workqueues"] {
        let list = format!("\"{key}\":[{{\"dev\":\"wq0.3\"}}],\"ungrouped_engines\"");
        let profile =
            Profile::parse(&changed(&[("\"ungrouped_engines\"", &list)]), "test").unwrap();
        assert_eq!(
            profile.device_profiles()[0].ungrouped_workqueues[0].dev,
            "wq0.3"
        );
        assert!(profile.to_json().contains("\"ungrouped workqueues\":["));
    }
}

#[test]
fn unknown_key_names_place_and_neighbour() {
    let error = error(&[("\"threshold\"", "\"treshold\"")]);
    assert_eq!(
        error.to_string(),
        "dsa.conf: dsa0/groups[0]/grouped_workqueues[0] (wq0.0): unknown key \"treshold\"; did you mean \"threshold\"?"
    );
    assert!(error.hint().unwrap().contains("priority"));
}

#[test]
fn unknown_key_without_a_neighbour() {
    let error = error(&[("\"numa_node\"", "\"colour\"")]);
    assert_eq!(error.to_string(), "dsa.conf: dsa0: unknown key \"colour\"");
}

#[test]
fn syntax_errors_carry_line_and_column() {
    let error = Profile::parse("[\n  {\"dev\":\"dsa0\",,}\n]", "dsa.conf").unwrap_err();
    assert_eq!(error.to_string(), "dsa.conf:2:17: key must be a string");
    for text in ["", "[", "nonsense", "[{}] x", "\u{0}"] {
        let error = Profile::parse(text, "dsa.conf").unwrap_err();
        assert!(matches!(error, ProfileError::Syntax { .. }), "{error}");
    }
}

#[test]
fn dev_comes_first() {
    let error = error(&[(
        "\"dev\":\"wq0.0\",\n            \"mode\":\"dedicated\",",
        "\"mode\":\"dedicated\",\n            \"dev\":\"wq0.0\",",
    )]);
    let ProfileError::DevNotFirst { path, first, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(
        (path.as_str(), first.as_str()),
        ("dsa0/groups[0]/grouped_workqueues[0]", "mode")
    );
}

#[test]
fn a_key_stands_once() {
    let error = error(&[("\"size\":128", "\"size\":128,\"size\":64")]);
    assert!(
        matches!(&error, ProfileError::DuplicateKey { key, .. } if key == "size"),
        "{error}"
    );
    let both = Profile::parse(
        &MINIMAL.replacen(
            "\"token_limit\"",
            "\"read_buffer_limit\":1,\"token_limit\"",
            1,
        ),
        "test",
    );
    assert!(matches!(both, Err(ProfileError::DuplicateKey { .. })));
}

#[test]
fn analytics_accelerators_are_left_alone_beside_a_dsa() {
    let iax = r#"{"dev":"iax3","iaa_cap":"0x1","groups":7}"#;
    let both = MINIMAL.replacen('[', &format!("[{iax},"), 1);
    let profile = Profile::parse(&both, "app.conf").unwrap();
    assert_eq!(profile.iaa(), ["iax3"]);
    let alone = Profile::parse(MINIMAL, "app.conf").unwrap();
    assert_eq!(profile.device_profiles(), alone.device_profiles());
    let error = Profile::parse(&format!("[{iax}]"), "app.conf").unwrap_err();
    assert_eq!(
        error.to_string(),
        "app.conf describes no DSA, only IAA (analytics accelerators): iax3"
    );
    for name in ["iax", "iaxx", "iax-1", "iaa1.0"] {
        let error = Profile::parse(&format!(r#"[{{"dev":"{name}"}}]"#), "app.conf").unwrap_err();
        assert!(
            error.to_string().contains("expected dsa and a number"),
            "{error}"
        );
    }
}

#[test]
fn values_of_the_wrong_kind() {
    for (from, to) in [
        ("\"size\":128", "\"size\":\"128\""),
        ("\"size\":128", "\"size\":128.0"),
        ("\"size\":128", "\"size\":18446744073709551615"),
        ("\"size\":128", "\"size\":1e400"),
        ("\"size\":128", "\"size\":null"),
        ("\"size\":128", "\"size\":[]"),
        ("\"mode\":\"dedicated\"", "\"mode\":1"),
        ("\"dev\":\"wq0.0\"", "\"dev\":0"),
        ("\"dev\":\"wq0.0\"", "\"dev\":\"wq0\""),
        ("\"dev\":\"wq0.0\"", "\"dev\":\"wq+0.0\""),
        ("\"dev\":\"wq0.0\"", "\"dev\":\"wq0.99999999999\""),
        ("\"dev\":\"engine0.0\"", "\"dev\":\"wq0.0\""),
        ("\"dev\":\"dsa0\"", "\"dev\":\"dma0\""),
        ("\"0x100\"", "\"100\""),
        ("\"0x100\"", "\"0x\""),
        ("\"0x100\"", "\"0x10000000000000000\""),
        ("\"0x100\"", "-1"),
        ("00000001,003f03ff", "00000001,003f03fg"),
        ("\"groups\":[", "\"groups\":{},\"ungrouped_engines\":["),
    ] {
        let error = Profile::parse(&changed(&[(from, to)]), "dsa.conf").unwrap_err();
        let shown = error.to_string();
        assert!(shown.starts_with("dsa.conf:"), "{to}: {shown}");
        assert!(
            matches!(
                error,
                ProfileError::Value { .. } | ProfileError::Syntax { .. }
            ) || to.contains("groups"),
            "{to}: {shown}"
        );
    }
    for text in ["{}", "[]", "[1]", "[{}]", "null", "[[]]"] {
        let error = Profile::parse(text, "dsa.conf").unwrap_err();
        assert!(
            matches!(error, ProfileError::Value { .. }),
            "{text}: {error}"
        );
    }
}

#[test]
fn registers_may_be_numbers() {
    let text = changed(&[("\"0x100\"", "256")]);
    assert_eq!(Profile::parse(&text, "test").unwrap().to_json(), TEXT);
}

#[test]
fn too_many_and_too_deep() {
    let many = |count| {
        let engine = "{\"dev\":\"engine0.0\"}";
        let list = vec![engine; count].join(",");
        format!("[{{\"dev\":\"dsa0\",\"ungrouped_engines\":[{list}]}}]")
    };
    assert!(Profile::parse(&many(256), "test").is_ok());
    let error = Profile::parse(&many(257), "test").unwrap_err();
    assert!(matches!(
        error,
        ProfileError::TooMany {
            count: 257,
            limit: 256,
            ..
        }
    ));
    let deep = "[".repeat(100_000);
    let error = Profile::parse(&deep, "test").unwrap_err();
    assert!(matches!(error, ProfileError::Syntax { .. }), "{error}");
}

#[test]
fn files_have_a_limit() {
    let length = usize::try_from(MAX_PROFILE_BYTES).unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(TEXT.as_bytes()).unwrap();
    file.write_all(&vec![b' '; length - TEXT.len()]).unwrap();
    assert!(Profile::load(file.path()).is_ok());
    file.write_all(b" ").unwrap();
    let error = Profile::load(file.path()).unwrap_err();
    assert!(matches!(error, ProfileError::TooLong { .. }), "{error}");
    let error = Profile::parse(&" ".repeat(length + 1), "test").unwrap_err();
    assert!(matches!(error, ProfileError::TooLong { .. }), "{error}");
}

#[test]
fn files_are_text() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"[\xff]").unwrap();
    let error = Profile::load(file.path()).unwrap_err();
    assert!(
        matches!(error, ProfileError::NotText { offset: 1, .. }),
        "{error}"
    );
    let folder = tempfile::tempdir().unwrap();
    let error = Profile::load(folder.path()).unwrap_err();
    assert!(matches!(error, ProfileError::Read { .. }), "{error}");
}

#[test]
fn all_findings_are_in_the_error() {
    let text = changed(&[
        ("\"size\":128", "\"size\":-1"),
        ("\"priority\":10", "\"priority\":99"),
    ]);
    let error = Profile::parse(&text, "dsa.conf")
        .unwrap()
        .devices()
        .unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.starts_with("dsa.conf (1e1w-d-wqsz-1-bs64-prio99): 2 settings would be refused\n"),
        "{shown}"
    );
    assert_eq!(shown.matches("fix: ").count(), 2, "{shown}");
}

#[test]
fn settings_that_are_not_modelled_are_said() {
    let text = changed(&[
        ("\"0x100\"", "\"0x200\""),
        ("\"max_groups\":4", "\"event_log_size\":64,\"max_groups\":4"),
        (
            "\"read_buffers_reserved\":0",
            "\"desc_progress_limit\":1,\"read_buffers_reserved\":0",
        ),
        (
            "\"ats_disable\":-2",
            "\"ats_disable\":1,\"prs_disable\":1,\"op_config\":\"00000001\"",
        ),
    ]);
    let profile = Profile::parse(&text, "test").unwrap();
    assert_eq!(profile.validate(Personality::NEWEST), []);
    let found = profile.unmodelled();
    let fields: Vec<&str> = found.iter().map(|finding| finding.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "event_log_size",
            "desc_progress_limit",
            "ats_disable",
            "prs_disable"
        ]
    );
}
