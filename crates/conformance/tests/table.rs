//! The table finds what is wrong.

use dray::{CpuMover, Executor};
use dray_conformance::{ProcessDoor, Verdict, tabulate};

#[test]
fn another_executor_than_the_promised_one_fails_every_operation_that_succeeds() {
    let mut door = ProcessDoor::new("cpu", Executor::Hardware, CpuMover::checked(16));
    let column = tabulate(&mut door);
    let failed = |operation: &str, case: &str| match column.row(operation, case) {
        Some(row) => matches!(&row.verdict, Verdict::Failed(why) if why.contains("Cpu")),
        None => panic!("no row {operation}, {case}"),
    };
    assert!(failed("memmove", "success"));
    assert!(failed("dif_update", "a wrong guard"));
    assert!(failed(
        "all operations",
        "sizes and alignments, against the oracle"
    ));
    // Who refuses an operation does not execute it.
    let row = column.row("memmove", "no bytes: transfer_size");
    assert_eq!(row.map(|row| &row.verdict), Some(&Verdict::Passed));
    // Without faults there are no rows of faults, and the reason is said.
    let row = column.row("memmove", "page fault on the source");
    let refused = row.map(|row| &row.verdict);
    assert!(matches!(refused, Some(Verdict::Refused(_))), "{refused:?}");
}
