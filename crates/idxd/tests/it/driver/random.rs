//! Whatever is written: no panic, and what must hold, holds.

use dray_idxd::driver::{Driver, EntryKind, Errno, Personality};
use proptest::prelude::*;

use super::common::*;

/// Every file below a directory, links not followed.
fn files(driver: &Driver, directory: &str, found: &mut Vec<String>) {
    for entry in driver.list(directory).unwrap() {
        let path = format!("{directory}/{}", entry.name);
        match entry.kind {
            EntryKind::Directory => files(driver, &path, found),
            EntryKind::File(_) => found.push(path),
            EntryKind::Link(_) | EntryKind::Node { .. } => {}
        }
    }
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (-2_i64..20).prop_map(|n| format!("{n}\n").into_bytes()),
        2 => (0_u32..33).prop_map(|shift| (1_u64 << shift).to_string().into_bytes()),
        6 => prop::sample::select(vec![
            "dsa0", "wq0.0", "wq0.1", "user", "kernel", "none", "shared", "dedicated", "dmaengine",
            "app", "on", "off", "1,003f03ff", "18446744073709551615", "",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

fn check(driver: &Driver) {
    let number = |path: &str| get(driver, path).parse::<u64>().unwrap();
    let sizes: u64 = (0..8).map(|wq| number(&format!("wq0.{wq}/size"))).sum();
    assert!(sizes <= number("dsa0/max_work_queues_size"));
    let device = get(driver, "dsa0/state");
    let mut nodes = 0;
    for wq in 0..8 {
        let state = get(driver, &format!("wq0.{wq}/state"));
        let queue = driver.function(0).unwrap().queue(wq);
        assert_eq!(state == "enabled", queue.is_some(), "wq0.{wq}");
        assert!(state == "disabled" || device == "enabled");
        if state == "enabled" {
            // Any bytes are a name, also such as are no text.
            let name = driver.read(&format!("/sys/bus/dsa/devices/wq0.{wq}/name"));
            assert_ne!(name, Ok(b"\n".to_vec()));
            nodes += usize::from(get(driver, &format!("wq0.{wq}/type")) == "user");
        }
    }
    assert_eq!(driver.nodes().len(), nodes);
    let status = get(driver, "dsa0/cmd_status");
    assert!(status.starts_with("0x"), "{status}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_writes(
        personality in prop::sample::select(Personality::ALL.to_vec()),
        version in prop::sample::select(vec![0x100_u32, 0x200]),
        ready in any::<bool>(),
        writes in prop::collection::vec((any::<prop::sample::Index>(), value()), 0..200),
    ) {
        let mut driver = driver(personality, version);
        let mut paths = Vec::new();
        files(&driver, "/sys", &mut paths);
        // Enabling is rare unless helped.
        let bind = paths.iter().filter(|path| path.contains("/drivers/"));
        let bind: Vec<String> = bind.cloned().collect();
        paths.extend(bind.iter().cycle().take(60).cloned());
        if ready {
            let text = DEDICATED.replace("wq0.0/driver_name=user", "");
            put_all(&mut driver, &text);
            if personality.has_driver_name() {
                put_all(&mut driver, "wq0.0/driver_name=user");
            }
        }
        for (path, value) in writes {
            let path = path.get(&paths);
            match driver.write(path, &value) {
                Ok(()) => {}
                Err(errno) => prop_assert_ne!(errno.name(), "errno"),
            }
            check(&driver);
        }
        for path in paths {
            let result = driver.read(&path);
            let known = [Errno::EACCES, Errno::ENXIO, Errno::EOPNOTSUPP];
            let fine = match result {
                Ok(bytes) => bytes.is_empty() || bytes.ends_with(b"\n"),
                Err(errno) => known.contains(&errno),
            };
            prop_assert!(fine, "{}", path);
        }
    }

    #[test]
    fn random_paths(path in "(/sys)?(/(bus|dsa|devices|drivers|dsa0|wq0\\.[0-9]|size|driver|user|bind|\\.\\.|é)){0,7}") {
        let mut driver = enabled();
        let _ = driver.list(&path);
        let _ = driver.read(&path);
        let _ = driver.write(&path, b"wq0.0");
    }
}
