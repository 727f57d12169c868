use super::*;

// Bits as the tables of chapter 9 number them.
#[test]
fn fields_are_where_the_specification_has_them() {
    assert_eq!(
        GenCfg::new().with_event_log_enable(true).into_bits(),
        1 << 13
    );
    assert_eq!(
        GenCfg::new().with_user_interrupt_enable(true).into_bits(),
        1 << 12
    );
    assert_eq!(
        IntCause::new().with_handles_revoked(true).into_bits(),
        1 << 31
    );
    assert_eq!(IntCause::new().with_event_log(true).into_bits(), 1 << 5);
    let halted = GenSts::new()
        .with_state(DeviceState::Halted)
        .with_reset_type(ResetType::FunctionLevel);
    assert_eq!(halted.into_bits(), 0b0111);
    assert_eq!(CommandStatus::new().with_active(true).into_bits(), 1 << 31);
    assert_eq!(CommandStatus::from_bits(0x0001_2342).result(), 0x123);
    let flags = GroupFlags::new()
        .with_read_buffers_reserved(1)
        .with_read_buffers_allowed(1)
        .with_work_descriptor_limit(1)
        .with_batch_descriptor_limit(1)
        .with_read_bandwidth_limit(1)
        .with_write_bandwidth_limit(1);
    let bits = [8, 20, 32, 36, 40, 44].map(|bit| 1_u64 << bit);
    assert_eq!(flags.into_bits(), bits.iter().sum());
    let policy = WorkQueuePolicy::new()
        .with_priority(1)
        .with_pasid(1)
        .with_pasid_enable(true)
        .with_privileged(true);
    assert_eq!(policy.into_bits(), 1 << 4 | 1 << 8 | 1 << 28 | 1 << 29);
    let limits = WorkQueueLimits::new()
        .with_max_batch_shift(1)
        .with_max_scatter_gather_shift(1);
    assert_eq!(limits.into_bits(), 1 << 5 | 1 << 9);
    let status = WorkQueueStatus::new()
        .with_state(WorkQueueState::Enabled)
        .with_mode_support(true)
        .with_interrupt_generated(true);
    assert_eq!(status.into_bits(), 1 << 30 | 1 << 29 | 1 << 16);
    let head = ErrorHead::new()
        .with_pasid(1)
        .with_operation(1)
        .with_batch_id(1)
        .with_wq(1);
    assert_eq!(head.into_bits(), 1 << 40 | 1 << 32 | 1 << 24 | 1 << 16);
    let log = EvlCfg::new()
        .with_entries(1)
        .with_pasid(1)
        .with_base_page(1);
    assert_eq!(log.into_bits(), 1 << 64 | 1 << 80 | 1 << 12);
    assert_eq!(log.base(), 0x1000);
    let status = EvlStatus::new().with_tail(1).with_interrupt_pending(true);
    assert_eq!(status.into_bits(), 1 << 32 | 1 << 62);
    assert_eq!(
        MsixPermission::new()
            .with_pasid(1)
            .with_pasid_enable(true)
            .into_bits(),
        0x1008
    );
    assert_eq!(
        IdBr::new().with_pasid(1).with_traffic_class(1).into_bits(),
        0x104
    );
    assert_eq!(
        IdCap::new().with_entries(1).with_entry_shift(1).into_bits(),
        1 << 8 | 1 << 26
    );
    assert_eq!(
        IdptControl::new()
            .with_submitter_pasid(1)
            .with_kind(1)
            .into_bits(),
        0x1004
    );
    assert_eq!(
        IdptAccess::new()
            .with_access_pasid(1)
            .with_offset_mode(true)
            .into_bits(),
        0x1010
    );
    let offsets = TableOffsets::new()
        .with_perfmon(1)
        .with_inter_domain_permissions(1);
    assert_eq!(offsets.into_bits(), 1 << 64 | 1 << 80);
    let perfmon = PerfCap::new()
        .with_per_counter(true)
        .with_filters(1)
        .with_category_mask(1);
    assert_eq!(perfmon.into_bits(), 1 << 52 | 1 << 36 | 1 << 20);
    let first = DsaCap0::new()
        .with_scatter_gather_formats(1)
        .with_max_scatter_gather_descriptors(1);
    assert_eq!(first.into_bits(), 1 << 32 | 1 << 48);
    let second = DsaCap2::new()
        .with_rounding(1)
        .with_saturation(true)
        .with_signed_integers(true);
    assert_eq!(second.into_bits(), 1 << 12 | 1 << 8 | 1 << 7);
}

#[test]
fn commands_are_numbered_and_some_always_there() {
    for (code, command) in (1..).zip(Command::ALL) {
        assert_eq!(*command as u8, code);
        assert_eq!(Command::from_code(code), Some(*command));
        assert_eq!(Command::DEFAULT & command.bit() != 0, code <= 12);
    }
    assert_eq!(Command::from_code(0), None);
    assert_eq!(Command::from_code(18), None);
    // The specification's examples: queues 1, 4 and 7; queues 21 and 22 (9.2.12).
    assert_eq!(CommandRegister::queues(0, 0x92), 0x92);
    assert_eq!(
        CommandRegister::queue(21) | CommandRegister::queue(22),
        0x1_0060
    );
    let reset = CommandRegister::of(Command::ResetWq, 3).with_request_interrupt(true);
    assert_eq!(reset.into_bits(), 1 << 31 | 10 << 20 | 3);
}

#[test]
fn every_error_of_a_command_has_its_words() {
    for error in CommandError::ALL {
        assert_ne!(error.describe(), CommandError(0xff).describe());
    }
    let codes: std::collections::BTreeSet<u8> = CommandError::ALL.iter().map(|e| e.0).collect();
    assert_eq!(codes.len(), CommandError::ALL.len());
}

#[test]
fn any_of_64_slots_of_a_page_is_the_same_portal() {
    for page in 0..32_u64 {
        let portal = PortalAddress::at(page << 12).unwrap();
        assert_eq!(portal.offset(), page << 12);
        for slot in 0..64 {
            assert_eq!(PortalAddress::at((page << 12) + slot * 64), Some(portal));
            assert_eq!(PortalAddress::at((page << 12) + slot * 64 + 8), None);
        }
    }
    // The page that the kernel maps for user space: limited, MSI-X.
    let user = PortalAddress::at(0x5000).unwrap();
    assert_eq!(
        (user.wq, user.limited, user.message_storage),
        (1, true, false)
    );
    assert_eq!(PortalAddress::at(!63), None);
    assert_eq!(PortalAddress::bar_bytes(8), 128 << 10);
    assert_eq!(PortalAddress::bar_bytes(5), 128 << 10);
    assert_eq!(PortalAddress::bar_bytes(0), 16 << 10);
}
