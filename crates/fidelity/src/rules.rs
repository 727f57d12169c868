//! Rules, operations and statuses of the specification.

use dray_conformance::rules::{Scope, clauses};
use dray_device::Fidelity;
use dray_spec::{Opcode, Status};

use crate::{Entry, Test, exact, test};

/// The test of the table of rules.
const TABLE: Option<Test> = test("device", "the_table_of_rules_by_hand");

/// The test of a rule that the table has not, by what the rule says.
const ELSEWHERE: &[(&str, Test)] = &[
    shown(
        "a fence waits for all members before it",
        "a_fence_waits_for_all_earlier_members_and_holds_all_later_ones",
    ),
    shown_in(
        "attest",
        "the record follows the data, the interrupt the record",
        "a_device_as_it_is_deviates_in_nothing",
    ),
    shown(
        "a drain of a dedicated queue waits",
        "a_drain_ends_with_the_last_of_what_was_before_it_and_waits_for_nothing_else",
    ),
    shown(
        "a drain of a shared queue waits",
        "a_drain_of_a_shared_queue_waits_for_its_pasid_alone",
    ),
    shown(
        "a record that cannot be written goes to the event log",
        "a_record_that_faults_goes_to_the_log_with_what_it_says",
    ),
    shown(
        "an update of a window waits",
        "an_update_waits_for_what_began_under_the_old_window",
    ),
    shown(
        "an abort ends inter-domain work",
        "an_aborted_user_of_a_window_and_an_aborted_update_end_with_the_user",
    ),
    shown(
        "a shared queue takes what ENQCMD brings",
        "a_shared_queue_stops_at_the_threshold_or_at_its_size",
    ),
    shown(
        "a dedicated queue that is full loses",
        "a_write_to_a_full_dedicated_queue_is_lost_and_told",
    ),
    shown(
        "a queue that is not enabled takes nothing",
        "a_queue_that_is_disabled_takes_nothing_and_ends_what_it_has",
    ),
    shown(
        "traffic classes are those of the map",
        "traffic_classes_follow_the_map_while_the_device_is_enabled",
    ),
    shown("a handle is in its table", "interrupts_follow_their_tables"),
    shown(
        "a handle has been given out and not revoked",
        "handles_are_given_out_taken_back_and_run_out",
    ),
    shown(
        "PASID enable of the interrupt entry",
        "interrupts_follow_their_tables",
    ),
    shown(
        "PASID of the interrupt entry",
        "interrupts_follow_their_tables",
    ),
    shown(
        "a handle has been given out by a command",
        "idpt_handles_are_good_from_their_request_to_their_release",
    ),
    shown(
        "0x20: a fault on a read without ATS",
        "a_read_that_faults_ends_the_descriptor_without_an_address",
    ),
    shown(
        "0x21: a fault on a destination readback",
        "a_readback_finds_what_is_not_there_at_the_end",
    ),
    shown(
        "0x26 and 0x27",
        "a_drain_goes_to_the_log_where_no_page_request_mends_the_records_before_it",
    ),
    shown(
        "0x51: PCI configuration changed",
        "a_halt_gives_everything_up_until_the_reset",
    ),
    shown(
        "0x52: a command during a command",
        "a_command_while_one_waits_is_discarded_and_told",
    ),
    shown(
        "0x54: the event log could not be extended",
        "what_the_log_has_no_room_for_is_given_up_with_its_descriptors",
    ),
    shown(
        "CRC: a partial result is the seed",
        "the_rest_after_a_fault_completes_the_whole",
    ),
];

const fn shown(begin: &'static str, function: &'static str) -> (&'static str, Test) {
    shown_in("device", begin, function)
}

const fn shown_in(
    package: &'static str,
    begin: &'static str,
    function: &'static str,
) -> (&'static str, Test) {
    (begin, Test { package, function })
}

pub(crate) fn rules() -> Vec<Entry> {
    let entry = |clause: &dray_conformance::rules::Clause| {
        let named = exact(
            "rule",
            clause.text.to_owned(),
            clause.section.to_owned(),
            None,
        );
        match clause.scope {
            Scope::Descriptor => Entry {
                test: TABLE,
                ..named
            },
            Scope::Sequence | Scope::Registers => {
                let mut all = ELSEWHERE.iter();
                let found = all.find(|(begin, _)| clause.text.starts_with(begin));
                Entry {
                    test: found.map(|(_, test)| *test),
                    ..named
                }
            }
            Scope::Absent => named.but(
                Fidelity::Unsupported,
                "the virtual device has no such error",
            ),
            Scope::Version3 => named.but(Fidelity::Unsupported, "version 3 is not there"),
        }
    };
    clauses().iter().map(entry).collect()
}

/// All codes of the architecture: those that there are, and those of version 3.
pub(crate) fn operations() -> Vec<Entry> {
    let known = Opcode::ALL
        .iter()
        .map(|opcode| (u8::from(*opcode), opcode.name()));
    let version_3 = (0x18..=0x1e).map(|code| (code, "version 3"));
    let entry = |(code, name): (u8, &str)| {
        let entry = exact(
            "operation",
            format!("{code:02x} {name}"),
            "8.3".to_owned(),
            TABLE,
        );
        match Fidelity::of_operation(code) {
            (Fidelity::Exact, _) => entry,
            (fidelity, missing) => entry.but(fidelity, missing.unwrap_or_default()),
        }
    };
    known.chain(version_3).map(entry).collect()
}

/// The test of a status that the table of rules has not.
fn of_status(status: Status) -> Option<Test> {
    const STATUSES: Option<Test> = test("device", "every_status_of_a_record_is_in_the_table");
    match status {
        Status::INTERRUPT_HANDLE => test(
            "device",
            "an_interrupt_handle_that_is_none_is_in_the_log_with_the_record",
        ),
        Status::HARDWARE_ERROR_READ => test(
            "device",
            "a_read_that_faults_ends_the_descriptor_without_an_address",
        ),
        Status::HARDWARE_ERROR_WRITE => {
            test("device", "a_readback_finds_what_is_not_there_at_the_end")
        }
        Status::DRAIN_EVENT_LOG => test(
            "device",
            "a_drain_goes_to_the_log_where_no_page_request_mends_the_records_before_it",
        ),
        Status::BATCH_EVENT_LOG => test("device", "a_batch_is_in_the_log_behind_members_that_are"),
        Status::INTER_DOMAIN_ABORTED => test(
            "device",
            "an_aborted_user_of_a_window_and_an_aborted_update_end_with_the_user",
        ),
        Status::PCI_CONFIGURATION => test("device", "a_halt_gives_everything_up_until_the_reset"),
        Status::COMMAND_ACTIVE => test("device", "a_command_while_one_waits_is_discarded_and_told"),
        Status::WQ_OVERFLOW => test(
            "device",
            "a_write_to_a_full_dedicated_queue_is_lost_and_told",
        ),
        Status::EVENT_LOG_APPEND => test(
            "device",
            "what_the_log_has_no_room_for_is_given_up_with_its_descriptors",
        ),
        Status::TRANSLATION_FAIL => None,
        _ => STATUSES,
    }
}

pub(crate) fn statuses() -> Vec<Entry> {
    let all = Status::ALL.iter().filter(|status| **status != Status::NONE);
    let entry = |status: &Status| {
        let entry = exact(
            "status",
            format!("{:02x} {}", status.0, status.name()),
            "Table 5-6".to_owned(),
            of_status(*status),
        );
        match *status {
            Status::HARDWARE_ERROR_READ | Status::HARDWARE_ERROR_WRITE => entry.but(
                Fidelity::Approximate,
                "for faults without ATS alone: no bus errors, timeouts or parity",
            ),
            Status::TRANSLATION_FAIL => entry.but(
                Fidelity::Unsupported,
                "translation requests do not fail; dray vfio --inject reports it",
            ),
            _ => entry,
        }
    };
    all.map(entry).collect()
}
