use super::*;
use std::string::ToString;
use std::vec::Vec;

/// GENCAP of a Sapphire Rapids DSA, from an accel-config dump of one.
const SPR_GENCAP: u64 = 0x40_915f_0107;

#[test]
fn sapphire_rapids_gencap_reads_as_its_sysfs_attributes_say() {
    let cap = GenCap::from_bits(SPR_GENCAP);
    assert!(cap.block_on_fault());
    assert!(cap.overlapping_copy());
    assert!(cap.cache_control_memory());
    assert!(!cap.cache_control_cache());
    assert!(!cap.command_capability());
    assert!(cap.destination_readback());
    assert!(!cap.drain_readback());
    assert!(!cap.crc64());
    assert_eq!(cap.event_log_entry_bytes(), 0);
    assert_eq!(cap.max_transfer_bytes(), 2_147_483_648);
    assert_eq!(cap.max_batch(), 1024);
    assert_eq!(cap.ims_entries(), 2048);
    assert!(cap.configurable());
    assert_eq!(
        cap.into_bits(),
        SPR_GENCAP,
        "bit 38 has no name and must survive"
    );
}

#[test]
fn gencap_bits_are_where_the_registers_have_them() {
    // Each line: bits of spec 9.2.2 and the register with only that field at its maximum.
    let fields: [(u32, u32, GenCap); 23] = [
        (0, 0, GenCap::new().with_block_on_fault(true)),
        (1, 1, GenCap::new().with_overlapping_copy(true)),
        (2, 2, GenCap::new().with_cache_control_memory(true)),
        (3, 3, GenCap::new().with_cache_control_cache(true)),
        (4, 4, GenCap::new().with_command_capability(true)),
        (5, 5, GenCap::new().with_durable_write(true)),
        (6, 6, GenCap::new().with_inter_domain(true)),
        (7, 7, GenCap::new().with_translation_fetch_stride(true)),
        (8, 8, GenCap::new().with_destination_readback(true)),
        (9, 9, GenCap::new().with_drain_readback(true)),
        (10, 10, GenCap::new().with_fill_pattern_16(true)),
        (11, 11, GenCap::new().with_crc64(true)),
        (12, 12, GenCap::new().with_fault_info(true)),
        (14, 13, GenCap::new().with_event_log_entry(3)),
        (15, 15, GenCap::new().with_batch_continuation(true)),
        (20, 16, GenCap::new().with_max_transfer_shift(31)),
        (24, 21, GenCap::new().with_max_batch_shift(15)),
        (30, 25, GenCap::new().with_ims_blocks(63)),
        (31, 31, GenCap::new().with_configurable(true)),
        (32, 32, GenCap::new().with_event_log_overflow(true)),
        (52, 52, GenCap::new().with_batch_of_one(true)),
        (54, 53, GenCap::new().with_strict_ordering_limits(3)),
        (63, 64, GenCap::new()),
    ];
    for (high, low, cap) in fields {
        let expected = (low..=high).fold(0, |bits, bit| bits | 1_u64 << bit);
        assert_eq!(cap.into_bits(), expected, "bits {high}:{low}");
    }
}

#[test]
fn event_log_entries_double() {
    let bytes = |code| {
        GenCap::new()
            .with_event_log_entry(code)
            .event_log_entry_bytes()
    };
    assert_eq!([bytes(0), bytes(1), bytes(2), bytes(3)], [0, 64, 128, 256]);
}

#[test]
fn wqcap_bits_are_where_the_registers_have_them() {
    let cap = WqCap::new()
        .with_total_entries(128)
        .with_work_queues(8)
        .with_config_shift(1);
    assert_eq!(cap.into_bits(), 0x0108_0080);
    assert_eq!(cap.config_stride_bytes(), 64);
    let flags = [
        WqCap::new().with_shared_mode(true),
        WqCap::new().with_dedicated_mode(true),
        WqCap::new().with_ats_disable(true),
        WqCap::new().with_priority(true),
        WqCap::new().with_occupancy(true),
        WqCap::new().with_occupancy_interrupt(true),
        WqCap::new().with_operation_config(true),
        WqCap::new().with_prs_disable(true),
    ];
    for (bit, cap) in (48..).zip(flags) {
        assert_eq!(cap.into_bits(), 1 << bit);
    }
}

#[test]
fn group_and_engine_bits_are_where_the_registers_have_them() {
    let cap = GroupCap::new().with_groups(4).with_read_buffers(96);
    assert_eq!(cap.into_bits(), 0x6004);
    let flags = [
        GroupCap::new().with_read_buffer_controls(true),
        GroupCap::new().with_global_read_buffer_limit(true),
        GroupCap::new().with_in_progress_limits(true),
        GroupCap::new().with_bandwidth_limits(true),
    ];
    for (bit, cap) in (16..).zip(flags) {
        assert_eq!(cap.into_bits(), 1 << bit);
    }
    let cap = EngineCap::new()
        .with_engines(4)
        .with_max_work_descriptors(2)
        .with_max_batch_descriptors(3);
    assert_eq!(cap.into_bits(), 0x03_0204);
}

/// OPCAP of a Sapphire Rapids DSA as accel-config prints it.
const SPR_OPCAP: &str = "00000000,00000000,00000000,00000000,00000000,00000000,00000001,003f03ff";

#[test]
fn sapphire_rapids_opcap_lists_the_version_1_operations() {
    let cap: OpCap = SPR_OPCAP.parse().unwrap();
    assert_eq!(cap.0, [0x1_003f_03ff, 0, 0, 0]);
    assert_eq!(cap.to_string(), SPR_OPCAP);
    let codes: Vec<u8> = cap.codes().collect();
    let expected: Vec<u8> = (0..=9).chain(0x10..=0x15).chain([0x20]).collect();
    assert_eq!(codes, expected);
    assert!(!cap.supports(Opcode::TranslationFetch as u8));
    assert!(cap.with(Opcode::TranslationFetch).supports(0x0a));
    assert!(cap.with(Opcode::TranslationFetch).contains(&cap));
    assert!(!cap.contains(&cap.with(Opcode::TranslationFetch)));
}

#[test]
fn opcap_text_covers_all_256_bits() {
    for code in 0..=u8::MAX {
        let mut words = [0; 4];
        words[usize::from(code) / 64] = 1 << (code % 64);
        let cap = OpCap(words);
        assert_eq!(cap.codes().collect::<Vec<_>>(), [code]);
        assert_eq!(cap.to_string().parse(), Ok(cap));
    }
}

#[test]
fn opcap_text_may_be_short_but_not_wrong() {
    assert_eq!("1,3f".parse(), Ok(OpCap([0x1_0000_003f, 0, 0, 0])));
    assert_eq!(" ff\n".parse(), Ok(OpCap([0xff, 0, 0, 0])));
    let word = |index_from_right| Err(ParseOpCapError::Word { index_from_right });
    assert_eq!("".parse::<OpCap>(), word(0));
    assert_eq!("1,,2".parse::<OpCap>(), word(1));
    assert_eq!("000000001".parse::<OpCap>(), word(0));
    assert_eq!("0x1".parse::<OpCap>(), word(0));
    assert_eq!("+1,0".parse::<OpCap>(), word(1));
    let nine = "0,0,0,0,0,0,0,0,0";
    assert_eq!(nine.parse::<OpCap>(), Err(ParseOpCapError::TooManyWords));
}

// Spec Table 8-2.
#[test]
fn operations_are_defined_from_their_version_on() {
    assert_eq!(OpCap::defined(0x200).0, [0x7b_00bf_07ff, 0, 0, 0]);
    assert_eq!(OpCap::defined(0x300).0, [0x7b_7fbf_07ff, 0, 0, 0]);
}
