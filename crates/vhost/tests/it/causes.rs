//! Why copies fail.

use dray::CpuMover;
use dray_spec::Status;
use dray_vhost::copy::{Copy, CopyEngine, Done, MoverCopier};

#[test]
fn a_failed_copy_keeps_the_status_of_its_mover() {
    let mut copier = MoverCopier::new(CpuMover::checked(4), "cpu");
    let mut target = [0_u8; 64];
    let good = [7_u8; 64];
    let destination = target.as_mut_ptr().expose_provenance() as u64;
    // Nothing is mapped at the first page; no copy has no bytes.
    let copies = [
        (0x10, 64),
        (good.as_ptr().expose_provenance() as u64, 64),
        (0x10, 0),
    ];
    let copies: Vec<Copy> = copies
        .into_iter()
        .zip(0..)
        .map(|((source, len), token)| Copy {
            source,
            destination,
            token,
            len,
        })
        .collect();
    // SAFETY: the mover looks at addresses before it accesses them.
    unsafe { copier.submit(&copies) };
    let mut done = [Done::default(); 4];
    let count = copier.poll(&mut done);
    done[..count].sort_by_key(|end| end.token);
    let statuses: Vec<&str> = done[..count].iter().map(|end| end.status.name()).collect();
    assert_eq!(statuses, ["page_fault", "success", "transfer_size"]);
    assert_eq!(done[1].status, Status::SUCCESS);
}
