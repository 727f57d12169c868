//! Errors of a mover fail the rows of the table.

use dray::{CpuMover, Executor};
use dray_conformance::{ProcessDoor, Verdict, tabulate};

#[test]
fn operations_of_an_unexpected_executor_fail() {
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
    // A refused operation is not executed.
    let row = column.row("memmove", "no bytes: transfer_size");
    assert_eq!(row.map(|row| &row.verdict), Some(&Verdict::Passed));
    // A mover without faults has no rows of faults, and the reason is printed.
    let row = column.row("memmove", "page fault on the source");
    let refused = row.map(|row| &row.verdict);
    assert!(matches!(refused, Some(Verdict::Refused(_))), "{refused:?}");
}
