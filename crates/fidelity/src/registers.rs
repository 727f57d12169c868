//! Registers and commands.

use dray_device::Fidelity;
use dray_spec::registers::{self as at, Command};

use crate::{Entry, Test, exact, test};

const VALUES: Option<Test> = test(
    "device",
    "registers_have_their_values_and_change_where_and_when_they_may",
);

/// Registers of BAR0 by the names of `dray_spec::registers`, with their sections.
macro_rules! named {
    ($($name:ident $section:literal,)+) => {
        &[$((stringify!($name), at::$name, $section),)+]
    };
}

pub(crate) const REGISTERS: &[(&str, u64, &str)] = named! {
    VERSION "9.2.1",
    GENCAP "9.2.2",
    WQCAP "9.2.3",
    GRPCAP "9.2.4",
    ENGCAP "9.2.5",
    OPCAP "9.2.6",
    OFFSETS "9.2.7",
    GENCFG "9.2.8",
    GENCTRL "9.2.9",
    GENSTS "9.2.10",
    INTCAUSE "9.2.11",
    CMD "9.2.12",
    CMDSTATUS "9.2.13",
    CMDCAP "9.2.14",
    SWERROR "9.2.15",
    EVLCFG "9.2.16",
    EVLSTATUS "9.2.17",
    IDCAP "9.2.18",
    IDBR "9.2.19",
    CMDPARAM "9.2.20",
    DUMMY_PORTAL "9.2.21",
    DSACAP0 "9.2.30",
    DSACAP1 "9.2.31",
    DSACAP2 "9.2.32",
};

/// Tables whose places OFFSETS and the MSI-X capability say.
const TABLES: &[(&str, &str, Option<Test>)] = &[
    (
        "MSI-X table and permissions",
        "9.2.22",
        test("device", "interrupts_follow_their_tables"),
    ),
    (
        "GRPCFG",
        "9.2.23",
        test(
            "device",
            "what_is_written_is_what_the_device_is_enabled_with",
        ),
    ),
    (
        "WQCFG",
        "9.2.24",
        test(
            "device",
            "what_is_written_is_what_the_device_is_enabled_with",
        ),
    ),
    (
        "IMS table",
        "9.2.28",
        test("device", "interrupts_follow_their_tables"),
    ),
    (
        "IDPT",
        "9.2.29",
        test("device", "software_replaces_entries_while_the_device_runs"),
    ),
];

pub(crate) fn registers() -> Vec<Entry> {
    let entry = |(name, offset, section): &(&str, u64, &str)| {
        let entry = exact(
            "register",
            format!("{offset:#x} {name}"),
            (*section).to_owned(),
            VALUES,
        );
        match *name {
            "DSACAP0" | "DSACAP1" | "DSACAP2" => entry.but(
                Fidelity::Unsupported,
                "version 3 is not there: it reads as 0",
            ),
            "SWERROR" => Entry {
                test: test(
                    "device",
                    "errors_are_kept_first_come_with_what_is_known_of_them",
                ),
                ..entry
            },
            _ => entry,
        }
    };
    let mut all: Vec<Entry> = REGISTERS.iter().map(entry).collect();
    all.extend(TABLES.iter().map(|(name, section, test)| {
        exact("register", (*name).to_owned(), (*section).to_owned(), *test)
    }));
    let counters = exact(
        "register",
        "performance counters".to_owned(),
        "9.2.25".to_owned(),
        None,
    );
    all.push(counters.but(
        Fidelity::Unsupported,
        "PERFCAP is 0, as of a device without",
    ));
    all
}

/// The test of a command.
fn of_command(command: Command) -> Option<Test> {
    let function = match command {
        Command::EnableDevice => "a_device_is_not_enabled_with_what_is_wrong",
        Command::EnableWq => "a_queue_is_not_enabled_with_what_is_wrong",
        Command::DrainAll | Command::DrainWq | Command::DrainPasid => {
            "a_drain_command_ends_with_the_last_work_that_was_there"
        }
        Command::AbortPasid => "the_abort_of_a_pasid_leaves_the_others",
        Command::AbortAll | Command::AbortWq => {
            "what_is_aborted_is_never_told_and_its_end_is_waited_for"
        }
        Command::DisableWq => "a_queue_that_is_disabled_takes_nothing_and_ends_what_it_has",
        Command::RequestInterruptHandle | Command::ReleaseInterruptHandle => {
            "handles_are_given_out_taken_back_and_run_out"
        }
        Command::RequestIdptHandle | Command::ReleaseIdptHandle => {
            "idpt_handles_are_good_from_their_request_to_their_release"
        }
        _ => "commands_say_what_is_wrong_with_them",
    };
    test("device", function)
}

pub(crate) fn commands() -> Vec<Entry> {
    let entry = |command: &Command| {
        let name = format!("{:#x} {command:?}", *command as u8);
        exact("command", name, "9.2.12".to_owned(), of_command(*command))
    };
    Command::ALL.iter().map(entry).collect()
}
