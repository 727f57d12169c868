use super::*;

/// Files as the kernel has them once there is one monitor with one target of two ranges.
fn kernel(operations: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    let context = "0/contexts/0";
    let mut files = vec![
        ("nr_kdamonds".to_owned(), "0"),
        ("0/state".to_owned(), "off"),
        ("0/contexts/nr_contexts".to_owned(), "0"),
        (format!("{context}/avail_operations"), operations),
    ];
    for name in [
        "operations",
        "monitoring_attrs/nr_regions/min",
        "monitoring_attrs/nr_regions/max",
        "monitoring_attrs/intervals/sample_us",
        "monitoring_attrs/intervals/aggr_us",
        "targets/nr_targets",
        "targets/0/pid_target",
        "targets/0/regions/nr_regions",
        "targets/0/regions/0/start",
        "targets/0/regions/0/end",
        "targets/0/regions/1/start",
        "targets/0/regions/1/end",
        "schemes/nr_schemes",
        "schemes/0/action",
        "schemes/0/access_pattern/sz/max",
        "schemes/0/access_pattern/nr_accesses/max",
        "schemes/0/access_pattern/age/max",
    ] {
        files.push((format!("{context}/{name}"), ""));
    }
    let tried = format!("{context}/schemes/0/tried_regions");
    for (number, file, text) in [
        (10, "start", "8192"),
        (10, "end", "12288"),
        (10, "nr_accesses", "0"),
        (9, "start", "4096"),
        (9, "end", "8192"),
        (9, "nr_accesses", "20"),
    ] {
        files.push((format!("{tried}/{number}/{file}"), text));
    }
    files.push((format!("{tried}/total_bytes"), "8192"));
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    root
}

fn read(root: &tempfile::TempDir, path: &str) -> String {
    fs::read_to_string(root.path().join(path)).expect(path)
}

const ATTRIBUTES: Attributes = Attributes {
    sample: Duration::from_millis(5),
    regions: (50, 1000),
};

#[test]
fn ranges_of_a_process_are_monitored_until_drop() {
    let root = kernel("vaddr\nfvaddr\npaddr\n");
    let mut damon = Damon::take(root.path(), 77).expect("it is free");
    assert!(matches!(
        Damon::take(root.path(), 78),
        Err(DamonError::InUse)
    ));
    damon
        .monitor(&[(4096, 8192), (8192, 12288)], ATTRIBUTES)
        .expect("all files are there");
    assert_eq!(read(&root, "0/state"), "on");
    assert_eq!(read(&root, "0/contexts/0/targets/0/pid_target"), "77");
    let at = |name: &str| read(&root, &format!("0/contexts/0/{name}"));
    assert_eq!(at("operations"), "fvaddr");
    assert_eq!(at("targets/0/regions/1/end"), "12288");
    assert_eq!(at("monitoring_attrs/intervals/aggr_us"), "100000");
    assert_eq!(
        at("schemes/0/access_pattern/sz/max"),
        "18446744073709551615"
    );
    let region = |start, accesses| Region {
        start,
        end: start + 4096,
        accesses,
    };
    assert_eq!(
        damon.regions().expect("they are there"),
        [region(4096, 20), region(8192, 0)]
    );
    drop(damon);
    assert_eq!(read(&root, "0/state"), "off");
    assert_eq!(read(&root, "nr_kdamonds"), "0");
}

#[test]
fn damon_without_vaddr_is_refused_and_unchanged() {
    let root = kernel("paddr\n");
    let error = Damon::take(root.path(), 77).expect_err("no virtual addresses");
    assert!(matches!(error, DamonError::NoVaddr), "{error}");
    assert_eq!(read(&root, "nr_kdamonds"), "0");
    let absent = tempfile::tempdir().expect("a directory");
    assert!(matches!(
        Damon::take(absent.path(), 77),
        Err(DamonError::Absent)
    ));
}

#[test]
fn monitoring_of_a_killed_dray_is_ended_and_of_others_kept() {
    let root = kernel("fvaddr");
    let put = |path: &str, text: &str| fs::write(root.path().join(path), text).expect(path);
    let mut killed = Damon::take(root.path(), 77).expect("it is free");
    killed
        .monitor(&[(4096, 8192)], ATTRIBUTES)
        .expect("all files are there");
    // Its end without its work.
    killed.runs = false;
    let interface = Arc::get_mut(&mut killed.interface).expect("one monitor has it");
    interface.ours = false;
    drop(killed);
    assert_eq!(read(&root, "0/state"), "on");
    drop(Damon::take(root.path(), 78).expect("its lock is free"));
    assert_eq!(read(&root, "0/state"), "off");
    put("0/state", "on");
    put(&format!("0/{MARKED}"), &u32::MAX.to_string());
    // The kernel refuses to change the number then (EBUSY), which these files cannot.
    let _ = Damon::take(root.path(), 78);
    assert_eq!(read(&root, "0/state"), "on");
}

#[test]
fn several_processes_are_monitored_and_one_too_many_is_refused() {
    let root = kernel("fvaddr");
    let two = [Target::Process(77), Target::Process(78)];
    // The kernel makes the directories.
    fs::create_dir_all(root.path().join("1/contexts/0")).expect("a directory");
    let interface = Interface::take(root.path(), 2, two[0]).expect("it is free");
    let monitors = two.map(|target| interface.monitor(target).expect("there are two"));
    assert_eq!(monitors.each_ref().map(|monitor| monitor.index), [0, 1]);
    let full = interface
        .monitor(Target::Process(79))
        .expect_err("no third");
    assert!(matches!(full, DamonError::Full { monitors: 2 }), "{full}");
    drop(monitors);
    assert_eq!(read(&root, "nr_kdamonds"), "2");
    interface.monitor(Target::Process(79)).expect("one is free");
    drop(interface);
    assert_eq!(read(&root, "nr_kdamonds"), "0");
}

#[test]
fn what_is_not_built_is_said_before_that_it_is_in_use() {
    let root = kernel("paddr");
    let holder = Interface::take(root.path(), 1, Target::Memory).expect("it is free");
    let error = Damon::take(root.path(), 77).expect_err("no virtual addresses");
    assert!(matches!(error, DamonError::NoVaddr), "{error}");
    let error = Interface::take(root.path(), 1, Target::Memory).expect_err("it is taken");
    assert!(matches!(error, DamonError::InUse), "{error}");
    drop(holder);
}

#[test]
fn physical_memory_is_monitored_without_a_process() {
    let root = kernel("paddr");
    let interface = Interface::take(root.path(), 1, Target::Memory).expect("it is free");
    let mut damon = interface.monitor(Target::Memory).expect("one");
    damon
        .monitor(&[(0, 4096)], ATTRIBUTES)
        .expect("all files are there");
    assert_eq!(read(&root, "0/contexts/0/operations"), "paddr");
    assert_eq!(read(&root, "0/contexts/0/targets/0/pid_target"), "");
    let vaddr = kernel("vaddr fvaddr");
    let error = Interface::take(vaddr.path(), 1, Target::Memory).expect_err("none");
    assert!(matches!(error, DamonError::NoPaddr), "{error}");
}

#[test]
fn tidy_ends_only_the_monitoring_of_the_given_process() {
    let root = kernel("fvaddr");
    let put = |path: &str, text: &str| fs::write(root.path().join(path), text).expect(path);
    put("nr_kdamonds", "1");
    put("0/contexts/0/targets/0/pid_target", "77\n");
    tidy(root.path(), 78);
    assert_eq!(read(&root, "nr_kdamonds"), "1");
    tidy(root.path(), 77);
    assert_eq!(read(&root, "nr_kdamonds"), "0");
}
