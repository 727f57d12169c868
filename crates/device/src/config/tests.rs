use super::*;

fn queue(id: u16, group: u16, size: u16) -> WorkQueueConfig {
    WorkQueueConfig {
        id,
        group,
        mode: WorkQueueMode::Shared,
        size,
        threshold: size,
        priority: 1,
        pasid: Some(0),
        max_batch_size: 32,
        max_transfer_size: 4096,
        ..WorkQueueConfig::default()
    }
}

fn group(id: u16, engines: &[u16]) -> GroupConfig {
    GroupConfig {
        id,
        engines: engines.to_vec(),
        ..GroupConfig::default()
    }
}

fn config(work_queues: Vec<WorkQueueConfig>, groups: Vec<GroupConfig>) -> DeviceConfig {
    let capabilities = Capabilities {
        version: 0x100,
        max_groups: 2,
        max_work_queues: 3,
        max_engines: 4,
        work_queue_size: 16,
        max_read_buffers: 96,
        max_batch_size: 32,
        max_transfer_size: 4096,
        ..Capabilities::default()
    };
    DeviceConfig {
        capabilities,
        work_queues,
        groups,
        ..DeviceConfig::default()
    }
}

fn error(work_queues: Vec<WorkQueueConfig>, groups: Vec<GroupConfig>) -> String {
    let checked = config(work_queues, groups);
    let checked = crate::registers::check(&checked);
    checked.map_or_else(|error| error.to_string(), |()| String::new())
}

#[test]
fn what_the_device_has_can_be_used_to_the_last() {
    let queues = vec![queue(2, 1, 10), queue(0, 0, 6)];
    assert_eq!(error(queues, vec![group(1, &[3, 0]), group(0, &[2])]), "");
    assert_eq!(error(vec![], vec![]), "");
}

#[test]
fn what_it_has_not_is_refused_by_name() {
    let one = || vec![group(0, &[0])];
    let asked = error(vec![queue(0, 0, 10), queue(1, 0, 7)], one());
    assert_eq!(asked, "work queues ask for 17 entries: the device has 16");
    let most = error(vec![queue(0, 0, u16::MAX), queue(1, 0, u16::MAX)], one());
    assert_eq!(
        most,
        "work queues ask for 131070 entries: the device has 16"
    );
    assert_eq!(
        error(vec![queue(3, 0, 1)], one()),
        "work queue 3: the device has 3"
    );
    assert_eq!(
        error(vec![], vec![group(2, &[0])]),
        "group 2: the device has 2"
    );
    assert_eq!(
        error(vec![], vec![group(0, &[4])]),
        "engine 4: the device has 4"
    );
    assert_eq!(
        error(vec![], vec![group(0, &[0])]),
        "group 0: has engines but no work queues"
    );
}

#[test]
fn what_cannot_work_is_refused_with_why() {
    let one = || vec![group(0, &[0])];
    let twice = error(vec![queue(1, 0, 1), queue(1, 0, 1)], one());
    assert_eq!(twice, "work queue 1: configured twice");
    let twice = error(vec![], vec![group(0, &[0]), group(0, &[1])]);
    assert_eq!(twice, "group 0: configured twice");
    let queues = vec![queue(0, 0, 1), queue(1, 1, 1)];
    let shared = error(queues, vec![group(0, &[0]), group(1, &[0])]);
    assert_eq!(shared, "engine 0: in two groups");
    let idle = error(vec![queue(0, 1, 1)], vec![group(0, &[0]), group(1, &[])]);
    assert_eq!(idle, "work queue 0: in a group without engines");
    assert_eq!(error(vec![queue(0, 1, 1)], one()), idle);
    assert_eq!(
        error(vec![queue(0, 0, 0)], one()),
        "work queue 0: has no entries"
    );
    let changed = |change: fn(&mut WorkQueueConfig)| {
        let mut queue = queue(0, 0, 1);
        change(&mut queue);
        error(vec![queue], one())
    };
    let why = "work queue 0: priority is not 1 to 15";
    assert_eq!(changed(|wq| wq.priority = 16), why);
    let why = "work queue 0: PASID has more than 20 bits";
    assert_eq!(changed(|wq| wq.pasid = Some(1 << 20)), why);
    let why = "work queue 0: largest batch or transfer is no power of two";
    assert_eq!(changed(|wq| wq.max_batch_size = 3), why);
    assert_eq!(changed(|wq| wq.max_transfer_size = 0), why);
}

// Enable errors of a queue (spec 5.2): the same rules as for a driver.
#[test]
fn what_the_commands_refuse_is_refused_with_their_codes() {
    type Change = fn(&mut DeviceConfig);
    let refused: [(Change, CommandError); 7] = [
        (|c| c.work_queues[0].priority = 0, CommandError::WQ_PRIORITY),
        (
            |c| c.work_queues[0].block_on_fault = true,
            CommandError::WQ_BLOCK_ON_FAULT,
        ),
        (
            |c| c.work_queues[0].pasid = None,
            CommandError::WQ_PASID_ENABLE,
        ),
        (
            |c| {
                c.capabilities.op_cap[0] = 2;
                c.work_queues[0].max_batch_size = 1;
            },
            CommandError::WQ_MAX_BATCH,
        ),
        (
            |c| {
                c.capabilities.op_cap[0] = 2;
                c.work_queues[0].max_batch_size = 64;
            },
            CommandError::WQ_MAX_BATCH,
        ),
        (
            |c| c.work_queues[0].max_transfer_size = 8192,
            CommandError::WQ_MAX_TRANSFER,
        ),
        (
            |c| {
                c.pci.privileged_mode = false;
                c.work_queues[0].mode = WorkQueueMode::Dedicated;
                c.work_queues[0].privileged = true;
            },
            CommandError::WQ_PRIVILEGE,
        ),
    ];
    for (change, error) in refused {
        let mut config = config(vec![queue(0, 0, 1)], vec![group(0, &[0])]);
        assert_eq!(crate::registers::check(&config), Ok(()));
        change(&mut config);
        let what = "work queue";
        let refusal = ConfigError::Refused { what, id: 0, error };
        assert_eq!(crate::registers::check(&config), Err(refusal));
    }
    // Read buffers: four for each engine, and no more than there are.
    for (reserved, allowed) in [(0, 3), (9, 8), (97, 97), (0, 97)] {
        let mut config = config(vec![queue(0, 0, 1)], vec![group(0, &[0])]);
        config.groups[0].read_buffers_reserved = reserved;
        config.groups[0].read_buffers_allowed = allowed;
        let refusal = ConfigError::Device(CommandError::READ_BUFFERS);
        assert_eq!(crate::registers::check(&config), Err(refusal));
    }
}

#[test]
fn the_embedded_device_is_one_that_registers_can_hold() {
    for (asked, queues) in [(0, 1), (1, 1), (3, 3), (8, 8), (9, 8)] {
        for mode in [WorkQueueMode::Dedicated, WorkQueueMode::Shared] {
            let config = DeviceConfig::embedded(mode, asked, 2 << 20);
            assert_eq!(config.work_queues.len(), queues);
            assert_eq!(config.check_representable(), Ok(()));
            let entries: u16 = config.work_queues.iter().map(|queue| queue.size).sum();
            assert!(entries <= 128 && entries > 128 - queues as u16);
        }
    }
}
