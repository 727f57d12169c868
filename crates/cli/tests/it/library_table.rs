//! The conformance suite on the library's four movers, beside each other: the hardware mover inside `dray run`,
//! where this test runs itself again.
//!
//! `cargo test -p dray-cli --test it -- library_table::four_movers_conform --nocapture` prints the table.

use std::env;
use std::process::Command;

use dray::hw::Submitting;
use dray_conformance::machines::{MoverName, Setting, columns};
use dray_conformance::{Column, Disruption, Table, Verdict};

/// Set in the process inside: which rows are tried.
const ROWS: &str = "DRAY_TEST_ROWS";

/// Rows that change the queue, or need a device that waits for pages: each in a session of its own.
const SETTINGS: [(&str, Option<Disruption>, &[&str]); 5] = [
    ("all", None, &[]),
    ("held", None, &["--faults", "touch"]),
    ("disabled", Some(Disruption::Disabled), &[]),
    ("reset", Some(Disruption::QueueReset), &[]),
    ("device reset", Some(Disruption::DeviceReset), &[]),
];

/// In the process inside: puts the rows to the queue and prints them.
fn inside(rows: &str) {
    let (way, rows) = rows.split_once(' ').expect("how to submit, and rows");
    let (name, disruption, _) = SETTINGS
        .into_iter()
        .find(|(name, ..)| *name == rows)
        .expect("a setting");
    let setting = Setting {
        disruption,
        held: name == "held",
        submitting: (way == "write").then_some(Submitting::Write),
        ..Setting::default()
    };
    let columns = columns(MoverName::Hw, &setting).expect("a work queue");
    // The test harness has begun this line.
    println!();
    print!("{}", columns[0].lines());
}

/// The column of a queue inside `dray run` with this profile.
fn hardware(profile: &str, way: &str, options: &[&str]) -> Column {
    let mut column: Option<Column> = None;
    for (rows, _, more) in SETTINGS {
        // Engines of their own: the device answers the driver while one is held.
        let profile = match rows {
            "held" => profile.replacen("1e", "4e", 1),
            _ => profile.to_owned(),
        };
        let output = Command::new(assert_cmd::cargo::cargo_bin("dray"))
            .args(["run", "--profile", &profile])
            .args(options)
            .args(more)
            .arg("--")
            .arg(env::current_exe().expect("a path"))
            .args([
                "--exact",
                "library_table::four_movers_conform",
                "--nocapture",
            ])
            .env(ROWS, format!("{way} {rows}"))
            .output()
            .expect("dray runs");
        let out = String::from_utf8_lossy(&output.stdout);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{profile} {rows}\n{out}\n{err}");
        let found = Column::parse(&out).expect("rows").expect("a column");
        match &mut column {
            None => column = Some(found),
            Some(column) => {
                assert_eq!(column.mover, found.mover);
                column.complete_with(&found);
            }
        }
    }
    column.expect("one session at least")
}

#[test]
fn four_movers_conform() {
    if let Ok(rows) = env::var(ROWS) {
        return inside(&rows);
    }
    let mut table = Table(Vec::new());
    for mover in [MoverName::Cpu, MoverName::Virtual, MoverName::Model] {
        let columns = columns(mover, &Setting::default());
        table.0.extend(columns.expect("nothing has to be opened"));
    }
    table.0.push(hardware("1e1w-d", "portal", &[]));
    // A device of version 2, which has other operations and flags.
    table.0.push(hardware("1e1w-s-v2", "portal", &[]));
    // The kernels of this driver have write(2).
    table
        .0
        .push(hardware("1e1w-d", "write", &["--personality", "7.2"]));
    println!("{table}");

    let names: Vec<&str> = table.0.iter().map(|column| column.mover.as_str()).collect();
    assert_eq!(
        names,
        [
            "cpu",
            "virtual v1 dwq",
            "virtual v2 swq",
            "model v1 dwq",
            "model v2 swq",
            "hw dwq",
            "hw swq",
            "hw write"
        ]
    );
    let first = &table.0[0];
    for column in &table.0 {
        let failures: Vec<_> = column.failures().collect();
        assert!(failures.is_empty(), "{}: {failures:?}", column.mover);
        // No mover has fewer rows than another.
        assert_eq!(column.rows.len(), first.rows.len(), "{}", column.mover);
        for (row, other) in column.rows.iter().zip(&first.rows) {
            let same = row.operation == other.operation && row.case == other.case;
            assert!(same, "{row:?} beside {other:?}");
        }
    }
    // All disruptions were caused on the queues of the hardware mover.
    for column in table
        .0
        .iter()
        .filter(|column| column.mover.starts_with("hw"))
    {
        for row in column.rows.iter().filter(|row| row.operation == "queue") {
            let cannot_hold = || row.case.contains("deadline") && !may_hold_faults();
            let passed = row.verdict == Verdict::Passed;
            assert!(passed || cannot_hold(), "{}: {row:?}", column.mover);
        }
    }
    for column in &table.0 {
        let case = "blocks of 512 bytes";
        let row = column.row("dix_generate", case).expect("a row");
        match column.mover.as_str() {
            "cpu" | "virtual v2 swq" | "model v2 swq" | "hw swq" => {
                assert_eq!(row.verdict, Verdict::Passed, "{}", column.mover);
            }
            // Version 1 has no such operation.
            _ => assert!(
                matches!(row.verdict, Verdict::Refused(_)),
                "{}: {row:?}",
                column.mover
            ),
        }
    }
    // At least one mover passes each row.
    for row in &first.rows {
        let passed = |column: &&Column| {
            let found = column.row(&row.operation, &row.case);
            found.is_some_and(|row| row.verdict == Verdict::Passed)
        };
        assert!(table.0.iter().any(|column| passed(&column)), "{row:?}");
    }
}

/// Whether this machine lets programs hold page faults of the kernel.
fn may_hold_faults() -> bool {
    dray_conformance::machines::held_page().is_some()
}
