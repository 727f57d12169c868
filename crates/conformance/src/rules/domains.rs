//! Status 0x28 to 0x2d, and what operations between address spaces do (spec 3.14, 5.6, 8.3.27 on).

use dray_spec::{CompletionRecord, Descriptor, FaultInfo, Status, WindowFlags};

use super::PAGE;
use super::case::{Case, Reported, reported};
use super::layout::{DST, HOLE, RECORD, SRC};
use super::profile::handle;
use super::rule::Rule;

pub(super) fn rules() -> Vec<Rule> {
    [
        moved(),
        entries(),
        windows(),
        updates(),
        update_fields(),
        faults(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

const SUCCESS: Reported = Reported::Status(Status::SUCCESS);

fn copy_from(handle: u16) -> Descriptor {
    let copy = Descriptor::inter_domain_copy(SRC, DST, 64);
    copy.with_source_handle(handle).with_completion(RECORD)
}

fn copy_to(handle: u16) -> Descriptor {
    let copy = Descriptor::inter_domain_copy(SRC, DST, 64);
    copy.with_destination_handle(handle).with_completion(RECORD)
}

/// A record that names the handle at fault (spec 3.14.4).
fn refused(status: Status, handle: u16) -> Reported {
    let mut record = CompletionRecord::with_status(status);
    record.set_idpt_handle(handle);
    Reported::Record(record)
}

/// Bytes come from where the handle says, and go where it says.
fn moved() -> Vec<Rule> {
    let text = *b"between two address spaces, 40 bytes of.";
    let here = |d: Descriptor, reported| {
        Case::new(d.with_completion(RECORD), reported).with_bytes(SRC, &text)
    };
    let copy = Descriptor::inter_domain_copy(SRC, DST, 40);
    // The other address space holds the complement of what is here.
    let plain = Case::new(
        copy.with_source_handle(handle::WHOLE)
            .with_completion(RECORD),
        SUCCESS,
    );
    let complement: Vec<u8> = plain
        .memory()
        .peek(SRC, 40)
        .iter()
        .map(|byte| !byte)
        .collect();
    let to = here(copy.with_destination_handle(handle::WHOLE), SUCCESS);
    let within = copy
        .with_source_handle(handle::WHOLE)
        .with_destination_handle(handle::OFFSET);
    let offset = Descriptor {
        address2: 80,
        ..within
    };
    let fill = Descriptor::inter_domain_fill_16(0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100, DST, 20);
    let fill = fill
        .with_destination_handle(handle::WHOLE)
        .with_completion(RECORD);
    let filled: Vec<u8> = (0..20).map(|n| n % 16).collect();
    let compare = Descriptor::inter_domain_compare(SRC, SRC, 8);
    let result = |offset, result| {
        let mut record = CompletionRecord::with_status(Status::SUCCESS);
        (record.result, record.bytes_completed) = (result, offset);
        Reported::Record(record)
    };
    let both = compare
        .with_source_handle(handle::WHOLE)
        .with_destination_handle(handle::READ)
        .with_completion(RECORD);
    let one = compare
        .with_source_handle(handle::WHOLE)
        .with_completion(RECORD);
    let word = |n: u64| {
        complement
            .iter()
            .take(8)
            .rev()
            .fold(n, |all, b| all << 8 | u64::from(*b))
    };
    let pattern = |value| {
        Descriptor::inter_domain_compare_pattern(SRC, value, 8)
            .with_source_handle(handle::WHOLE)
            .with_completion(RECORD)
    };
    let unexpected = |d: Descriptor| d.with_expected_result(1);
    vec![
        Rule::new("8.3.28", "a copy between domains")
            .kept_by(plain.writing(DST, &complement))
            .kept_by(to.writing_other(DST, &text))
            .broken_by(
                Case::new(offset.with_completion(RECORD), SUCCESS)
                    .writing_other(SRC + 80, &complement),
            ),
        Rule::new("8.3.29", "a fill of another domain")
            .kept_by(Case::new(fill, SUCCESS).writing_other(DST, &filled))
            .broken_by(Case::new(
                copy_to(handle::READ),
                refused(Status::IDPT_PERMISSION, handle::READ),
            )),
        Rule::new("8.3.30", "a compare between domains")
            .kept_by(Case::new(both, result(0, 0)))
            .kept_by(Case::new(one, result(0, 1)))
            .broken_by(Case::new(
                unexpected(both),
                Reported::Status(Status::SUCCESS_PREDICATE),
            )),
        Rule::new("8.3.31", "a compare of another domain with a pattern")
            .kept_by(Case::new(pattern(word(0)), result(0, 0)))
            .kept_by(Case::new(pattern(word(0) ^ 1 << 40), result(5, 1)))
            .broken_by(Case::new(
                unexpected(pattern(word(0))),
                Reported::Status(Status::SUCCESS_PREDICATE),
            )),
    ]
}

/// Who may use which entry for what (spec 5.6).
fn entries() -> Vec<Rule> {
    let bad = |handle| Case::new(copy_from(handle), refused(Status::IDPT_HANDLE, handle));
    let fill = Descriptor::inter_domain_fill(1, DST, 64);
    let fill = |handle| fill.with_destination_handle(handle).with_completion(RECORD);
    let pattern = Descriptor::inter_domain_compare_pattern(SRC, 0, 64);
    let pattern = |handle| pattern.with_source_handle(handle).with_completion(RECORD);
    let denied = |d, handle| Case::new(d, refused(Status::IDPT_PERMISSION, handle));
    let without_pasid = |d| {
        Case::new(d, reported(Status::INTER_DOMAIN_PASID)).on(|c| c.work_queues[0].pasid = None)
    };
    let single: fn(&mut dray_device::DeviceConfig) = |c| c.capabilities.id_cap &= !2;
    let many = refused(Status::IDPT_HANDLE, handle::MANY);
    let update = Descriptor::update_window(0, 0, WindowFlags::new(), handle::OWN);
    vec![
        Rule::new("5.4", "between domains, the queue has a PASID")
            .broken_by(without_pasid(copy_from(handle::WHOLE)))
            .broken_by(without_pasid(copy_from(handle::WHOLE)).in_batch())
            .broken_by(without_pasid(update.with_completion(RECORD)))
            .allows(copy_from(handle::WHOLE)),
        Rule::new("5.4", "a handle is in the table")
            .broken_by(bad(handle::COUNT))
            .broken_by(bad(u16::MAX))
            .broken_by(bad(handle::COUNT).in_batch())
            .allows(copy_from(handle::WHOLE)),
        Rule::new("5.6", "an entry is usable")
            .broken_by(bad(handle::UNUSABLE))
            .allows(copy_from(handle::WHOLE)),
        Rule::new("5.6", "an entry is for its submitter")
            .broken_by(bad(handle::REFUSED))
            .allows(copy_from(handle::WHOLE)),
        Rule::new("3.14.2", "an entry is for those in its bitmap")
            .broken_by(bad(handle::EXCLUDED))
            .broken_by(bad(handle::NO_BITMAP))
            .allows(copy_from(handle::MANY)),
        Rule::new("5.6", "the type of an entry is supported")
            .broken_by(Case::new(copy_from(handle::MANY), many).on(single))
            .kept_by(Case::new(copy_from(handle::WHOLE), SUCCESS).on(single)),
        Rule::new("5.6", "reserved fields of an entry are 0")
            .broken_by(bad(handle::WHOLE).on(|c| c.idpt.entries[0].bitmap = 1 << 12))
            .broken_by(bad(handle::WHOLE).on(|c| c.idpt.entries[0].window_base = 1))
            .broken_by(bad(handle::OFFSET).on(|c| c.capabilities.id_cap &= !(1 << 24)))
            .allows(copy_from(handle::WHOLE)),
        Rule::new("5.6", "the window of an entry is one")
            .broken_by(bad(handle::WINDOW).on(|c| c.idpt.entries[1].window_size = 0))
            .broken_by(bad(handle::WINDOW).on(|c| c.idpt.entries[1].window_size = u64::MAX))
            .allows(copy_from(handle::WINDOW)),
        Rule::new("5.6", "reading needs leave to read")
            .broken_by(denied(copy_from(handle::WRITE), handle::WRITE))
            .broken_by(denied(pattern(handle::WRITE), handle::WRITE))
            .broken_by(denied(copy_from(handle::WRITE), handle::WRITE).in_batch())
            .allows(copy_from(handle::READ))
            .allows(pattern(handle::READ)),
        Rule::new("5.6", "writing needs leave to write")
            .broken_by(denied(copy_to(handle::READ), handle::READ))
            .broken_by(denied(fill(handle::READ), handle::READ))
            .allows(copy_to(handle::WRITE))
            .allows(fill(handle::WRITE)),
    ]
}

/// Ranges at the edges of windows (spec 5.6).
fn windows() -> Vec<Rule> {
    let copy = |handle, at, size| {
        let copy = Descriptor::inter_domain_copy(at, DST, size);
        copy.with_source_handle(handle).with_completion(RECORD)
    };
    let mut rules = Vec::new();
    for (name, handle, base) in [
        ("by address", handle::WINDOW, SRC),
        ("by offset", handle::OFFSET, 0),
    ] {
        let mut rule = Rule::new("5.6", format!("accesses are in the window, {name}"));
        for (at, size) in [
            (base.wrapping_sub(1), 1),
            (base.wrapping_sub(1), 2),
            (base + 4 * PAGE - 1, 2),
            (base + 4 * PAGE, 1),
            (base, 4 * PAGE as u32 + 1),
            (base + 1, 4 * PAGE as u32),
            (u64::MAX, 2),
        ] {
            let bad = refused(Status::IDPT_WINDOW, handle);
            rule = rule.broken_by(Case::new(copy(handle, at, size), bad));
        }
        for (at, size) in [(base, 1), (base + 4 * PAGE - 1, 1), (base, 4 * PAGE as u32)] {
            rule = rule.allows(copy(handle, at, size));
        }
        rules.push(rule);
    }
    rules
}

fn update(base: u64, size: u64, flags: WindowFlags, handle: u16) -> Descriptor {
    Descriptor::update_window(base, size, flags, handle).with_completion(RECORD)
}

/// Who may change a window (spec 8.3.27).
fn updates() -> Vec<Rule> {
    let window = WindowFlags::new().with_read(true).with_window_enable(true);
    let set = |handle| update(SRC, PAGE, window, handle);
    let bad = |handle| Case::new(set(handle), reported(Status::UPDATE_WINDOW_ENTRY));
    vec![
        Rule::new("5.6", "an entry to update is in the table")
            .broken_by(bad(handle::COUNT))
            .allows(set(handle::OWN)),
        Rule::new("5.6", "an entry may be updated")
            .broken_by(bad(handle::FIXED))
            .allows(set(handle::OWN)),
        Rule::new("5.6", "an entry is updated by its owner")
            .broken_by(bad(handle::FOREIGN))
            .allows(set(handle::OWN)),
        Rule::new("5.6", "an entry to update is sound")
            .broken_by(bad(handle::OWN).on(|c| c.idpt.entries[8].bitmap = 1 << 12))
            .allows(set(handle::OWN)),
    ]
}

/// What a window can be (spec Table 5-6, 0x2d, and Table 5-4).
fn update_fields() -> Vec<Rule> {
    let off = WindowFlags::new().with_write(true);
    let on = off.with_window_enable(true);
    let offset = on.with_offset_mode(true);
    let set = |base, size, flags| update(base, size, flags, handle::OWN);
    let bad = |d| Case::new(d, reported(Status::UPDATE_WINDOW_FIELDS));
    let reserved = |d| Case::new(d, reported(Status::NONZERO_RESERVED));
    vec![
        Rule::new("5.4", "a window is not empty")
            .broken_by(bad(set(SRC, 0, on)))
            .allows(set(SRC, 1, on)),
        Rule::new("5.4", "a window does not wrap")
            .broken_by(bad(set(u64::MAX, 2, on)))
            .broken_by(bad(set(2, u64::MAX, offset)))
            .allows(set(u64::MAX, 1, on))
            .allows(set(1, u64::MAX, on)),
        Rule::new(
            "8.3.27",
            "offset mode needs a window, and a device that has it",
        )
        .broken_by(bad(set(0, 0, off.with_offset_mode(true))))
        .broken_by(bad(set(SRC, 1, offset)).on(|c| c.capabilities.id_cap &= !(1 << 24)))
        .allows(set(SRC, 1, offset)),
        Rule::new(
            "Table 5-4",
            "without a window its base and size are reserved",
        )
        .broken_by(reserved(set(SRC, 0, off)))
        .broken_by(reserved(set(0, 1, off)))
        .allows(set(0, 0, off)),
    ]
}

/// Faults in another address space name the handle; in offset mode they hide the address.
fn faults() -> Vec<Rule> {
    let near = HOLE - 100;
    let fault = |bytes, address, operand: u8, write: bool, handle: Option<u16>| {
        let status = Status::PAGE_FAULT;
        let mut record = CompletionRecord::with_status(match write {
            true => status.with_write_fault(),
            false => status,
        });
        record.bytes_completed = bytes;
        record.fault_address = address;
        record.fault_info = operand << 1;
        if let Some(handle) = handle {
            record.set_idpt_handle(handle);
        }
        record
    };
    let copy = |src, dst| Descriptor::inter_domain_copy(src, dst, 101);
    let from = |src, dst, handle| {
        copy(src, dst)
            .with_source_handle(handle)
            .with_completion(RECORD)
    };
    let to = |src, dst, handle| {
        copy(src, dst)
            .with_destination_handle(handle)
            .with_completion(RECORD)
    };
    let record = |d, record| Case::new(d, Reported::Record(record));
    let whole = Some(handle::WHOLE);
    let mut hidden = fault(100, 0, 1, false, Some(handle::HIDDEN));
    let info = FaultInfo::from_bits(hidden.fault_info).with_address_masked(true);
    hidden.fault_info = info.into_bits();
    let fill = Descriptor::inter_domain_fill(1, near, 101).with_destination_handle(handle::WHOLE);
    let compare =
        Descriptor::inter_domain_compare(SRC, HOLE, 8).with_destination_handle(handle::WHOLE);
    let pattern =
        Descriptor::inter_domain_compare_pattern(HOLE, 8, 8).with_source_handle(handle::WHOLE);
    let here = |d: Descriptor| d.with_completion(RECORD);
    vec![
        Rule::new("3.14.4", "a fault in another domain names the handle")
            .broken_by(record(
                from(near, DST, handle::WHOLE),
                fault(100, HOLE, 1, false, whole),
            ))
            .broken_by(record(
                to(SRC, near, handle::WHOLE),
                fault(100, HOLE, 3, true, whole),
            ))
            .broken_by(record(here(fill), fault(100, HOLE, 3, true, whole)))
            .broken_by(record(here(compare), fault(0, HOLE, 2, false, whole)))
            .broken_by(record(here(pattern), fault(0, HOLE, 1, false, whole)))
            .kept_by(record(
                to(near, DST, handle::WHOLE),
                fault(100, HOLE, 1, false, None),
            ))
            .allows(from(near - 1, DST, handle::WHOLE)),
        Rule::new("3.14.4", "a fault behind an offset hides the address")
            .broken_by(record(from(PAGE - 100, DST, handle::HIDDEN), hidden))
            .allows(from(PAGE - 101, DST, handle::HIDDEN)),
    ]
}
