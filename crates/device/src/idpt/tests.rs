use super::*;

fn cap() -> u64 {
    IdCap::new()
        .with_types(3)
        .with_entries(4)
        .with_offset_mode(true)
        .into_bits()
}

/// PASID 1 may read and write in a window of PASID 2.
fn entry() -> IdptEntry {
    IdptEntry {
        control: IdptControl::new().with_usable(true).with_submitter_pasid(1),
        access: IdptAccess::new()
            .with_read(true)
            .with_write(true)
            .with_window_enable(true)
            .with_access_pasid(2),
        window_base: 0x1000,
        window_size: 0x100,
        bitmap: 0,
    }
}

fn copy(src: u64, size: u32) -> Descriptor {
    Descriptor::inter_domain_copy(src, 0x9000, size).with_source_handle(0)
}

fn look_up(entry: IdptEntry, d: &Descriptor, pasid: u32) -> Result<Domains, (Status, u16)> {
    let config = IdptConfig {
        entries: vec![entry],
        ..IdptConfig::default()
    };
    let submitter = Submitter {
        pasid,
        privileged: true,
    };
    Idpt::new(cap(), config).domains(Opcode::InterDomainCopy, d, submitter)
}

#[test]
fn a_window_holds_from_its_first_byte_to_its_last() {
    let offset = IdptEntry {
        access: entry().access.with_offset_mode(true),
        ..entry()
    };
    for (entry, base) in [(entry(), 0x1000), (offset, 0)] {
        for (start, size, at) in [
            (0, 0x100, Some(0x1000)),
            (0xff, 1, Some(0x10ff)),
            (0, 0x101, None),
            (1, 0x100, None),
            (0x100, 1, None),
            (u64::MAX, 1, None),
            (u64::MAX, u32::MAX, None),
        ] {
            let found = look_up(entry, &copy(base + start.min(u64::MAX - base), size), 1);
            let address = found.map(|domains| domains.first.map(|first| first.address));
            match at {
                Some(at) => assert_eq!(address, Ok(Some(at))),
                None => assert_eq!(address, Err((Status::IDPT_WINDOW, 0)), "{start} {size}"),
            }
        }
    }
}

#[test]
fn an_entry_that_is_not_sound_grants_nothing() {
    let good = entry();
    assert!(look_up(good, &copy(0x1000, 1), 1).is_ok());
    let control = |bits: u32| IdptEntry {
        control: IdptControl::from_bits(good.control.into_bits() ^ bits),
        ..good
    };
    let access = |bits: u32| IdptEntry {
        access: IdptAccess::from_bits(good.access.into_bits() ^ bits),
        ..good
    };
    let wrong = [
        control(1),
        control(1 << 4),
        control(1 << 11),
        control(2 << 2),
        control(3 << 2),
        // The submitter stays although the type is another one.
        control(1 << 2),
        access(1 << 5),
        access(1 << 11),
        // A window without its flag.
        access(1 << 3),
        IdptEntry {
            bitmap: 1 << 12,
            ..good
        },
        IdptEntry { bitmap: 1, ..good },
        IdptEntry {
            window_size: 0,
            ..good
        },
        IdptEntry {
            window_base: 0xff_u64.wrapping_neg() + 1,
            window_size: 0x100,
            ..good
        },
    ];
    for entry in wrong {
        let found = look_up(entry, &copy(0x1000, 1), 1);
        assert_eq!(found, Err((Status::IDPT_HANDLE, 0)), "{entry:?}");
    }
    assert_eq!(
        look_up(good, &copy(0x1000, 1), 3),
        Err((Status::IDPT_HANDLE, 0))
    );
    let beyond = copy(0x1000, 1).with_source_handle(4);
    assert_eq!(look_up(good, &beyond, 1), Err((Status::IDPT_HANDLE, 4)));
}

#[test]
fn privilege_is_kept_only_where_the_entry_says_so() {
    for keep in [false, true] {
        let entry = IdptEntry {
            access: entry().access.with_keep_privilege(keep),
            ..entry()
        };
        let domains = look_up(entry, &copy(0x1000, 1), 1).unwrap();
        let space = domains.first.unwrap().space;
        assert_eq!((space.pasid, space.privileged), (Some(2), keep));
        assert_eq!(domains.second, None);
    }
}

#[test]
fn only_the_owner_updates_and_only_where_it_may() {
    let flags = dray_spec::WindowFlags::new()
        .with_read(true)
        .with_window_enable(true);
    let update = |handle| Descriptor::update_window(0x5000, 0x10, flags, handle);
    let owner = Submitter {
        pasid: 2,
        privileged: false,
    };
    let other = Submitter { pasid: 1, ..owner };
    let allowed = IdptEntry {
        control: entry().control.with_allow_update(true),
        ..entry()
    };
    let config = IdptConfig {
        entries: vec![allowed, entry()],
        ..IdptConfig::default()
    };
    let mut table = Idpt::new(cap(), config);
    let refused = Err(Status::UPDATE_WINDOW_ENTRY);
    assert_eq!(table.update(&update(0), other), refused);
    assert_eq!(table.update(&update(1), owner), refused);
    assert_eq!(table.update(&update(9), owner), refused);
    assert_eq!(table.get(0), Some(&allowed));
    assert_eq!(table.update(&update(0), owner), Ok(()));
    let updated = table.get(0).unwrap();
    assert!(updated.access.read() && !updated.access.write());
    assert_eq!((updated.window_base, updated.window_size), (0x5000, 0x10));
    assert_eq!(updated.access.access_pasid(), 2);
}
