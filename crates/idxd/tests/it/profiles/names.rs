//! Profiles by name.

use dray_device::{Device, WorkQueueMode};
use dray_idxd::driver::Personality;
use dray_idxd::{GRAMMAR, Profile, ProfileError};
use proptest::prelude::*;

#[test]
fn the_name_of_the_published_reproduction() {
    let device = Profile::named("1e1w-d")
        .unwrap()
        .devices()
        .unwrap()
        .remove(0);
    let [queue] = device.work_queues.as_slice() else {
        panic!("one work queue")
    };
    assert_eq!(queue.mode, WorkQueueMode::Dedicated);
    assert_eq!((queue.size, queue.threshold, queue.priority), (128, 0, 10));
    assert_eq!(
        (queue.max_batch_size, queue.max_transfer_size),
        (1024, 2 << 20)
    );
    assert_eq!(device.groups.len(), 1);
    assert_eq!(device.groups[0].engines, [0]);
    assert!(Device::new(device).is_ok());
}

#[test]
fn queues_share_the_entries_equally() {
    for (name, count, size) in [
        ("2e2w-d", 2, 64),
        ("4e3w-d", 3, 42),
        ("4e8w-s", 8, 16),
        ("1e4w-s-wqsz7", 4, 7),
        ("1e2w-d-v2", 2, 128),
    ] {
        let device = Profile::named(name).unwrap().devices().unwrap().remove(0);
        assert_eq!(device.work_queues.len(), count, "{name}");
        for queue in &device.work_queues {
            assert_eq!(queue.size, size, "{name}");
            let shared = queue.mode == WorkQueueMode::Shared;
            assert_eq!(queue.threshold, if shared { size } else { 0 }, "{name}");
        }
    }
}

#[test]
fn options_in_any_order() {
    let profile = Profile::named("dsa3-4e1w-s-prio1-thr9-bs32-wqsz16").unwrap();
    assert_eq!(profile.title(), "dsa3-4e1w-s-wqsz16-bs32-thr9-prio1");
    let queue = &profile.devices().unwrap()[0].work_queues[0];
    assert_eq!((queue.size, queue.threshold, queue.priority), (16, 9, 1));
    assert_eq!(queue.max_batch_size, 32);
    assert_eq!(Profile::named("dsa0-1e1w-d").unwrap().title(), "1e1w-d");
}

#[test]
fn unknown_names_show_the_grammar_and_near_names() {
    for name in [
        "",
        "1e1w",
        "1e1w-x",
        "1w1e-d",
        "e1w-d",
        "1ew-d",
        "1e1w-d-",
        "1e1w-d-wqsz",
        "1e1w-d-q4",
        "1e1w-d-wqsz1-wqsz2",
        "-1e1w-d",
        "1e1w-d-wqsz99999999999",
        "+1e1w-d",
        "1e1w-d-wqsz-1",
        "dsa-1e1w-d",
        "é",
        "1é1w-d",
    ] {
        let error = Profile::named(name).unwrap_err();
        assert!(
            matches!(error, ProfileError::UnknownName { .. }),
            "{name}: {error}"
        );
        assert!(error.hint().unwrap().contains(GRAMMAR), "{name}");
    }
    let hint = Profile::named("1e1w-x").unwrap_err().hint().unwrap();
    assert!(hint.contains("near names: 1e1w-d, 1e1w-s"), "{hint}");
}

#[test]
fn what_the_device_has_not_is_refused() {
    for (name, field) in [
        ("0e1w-d", "engines"),
        ("5e1w-d", "engines"),
        ("4294967295e1w-d", "engines"),
        ("1e0w-d", "work queues"),
        ("1e9w-d", "work queues"),
        ("1e1w-d-wqsz0", "size"),
        ("1e1w-d-wqsz129", "size"),
        ("1e2w-d-wqsz65", "size"),
        ("1e1w-d-bs2048", "max_batch_size"),
        ("1e1w-d-thr1", "threshold"),
        ("1e1w-s-thr0", "threshold"),
        ("1e1w-s-thr129", "threshold"),
        ("1e1w-d-prio16", "priority"),
    ] {
        let error = Profile::named(name).unwrap_err();
        let ProfileError::Invalid { title, findings } = &error else {
            panic!("{name}: {error}")
        };
        assert!(
            findings.iter().any(|finding| finding.field == field),
            "{name}: {error}"
        );
        assert!(title.starts_with(&name[..4]), "{title}");
    }
}

proptest! {
    #[test]
    fn a_title_names_its_profile(
        engines in 1..=4_u16, queues in 1..=8_u16, shared: bool, size in 1..=16_u16,
        batch in proptest::option::of(1..=10_u32), priority in 1..=15_u8, version_2: bool,
    ) {
        let mode = if shared { 's' } else { 'd' };
        let mut name = format!("{engines}e{queues}w-{mode}-wqsz{size}-prio{priority}");
        if let Some(shift) = batch {
            name += &format!("-bs{}", 1 << shift);
        }
        if version_2 {
            name += "-v2";
        }
        let profile = Profile::named(&name).unwrap();
        prop_assert_eq!(Profile::named(&profile.title()).unwrap(), profile.clone());
        let text = profile.to_json();
        let again = Profile::parse(&text, "x").unwrap();
        prop_assert_eq!(again.to_json(), text);
        prop_assert_eq!(again.devices().unwrap(), profile.devices().unwrap());
    }

    #[test]
    fn any_text_is_a_name_or_an_error(name in "([0-9]{0,3}[ew]){0,3}(-[a-z]{0,4}[0-9]{0,12}){0,4}") {
        if let Ok(profile) = Profile::named(&name) {
            prop_assert!(profile.validate(Personality::NEWEST).is_empty());
        }
    }
}
