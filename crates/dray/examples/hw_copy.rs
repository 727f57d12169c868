//! Copies a page with the first work queue of this machine: `dray run --profile 1e1w-d -- hw_copy`.

use dray::hw::{self, HwOptions};
use dray::{Completion, Mover, Operation, Progress};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut mover = hw::open(None, HwOptions::default())?;
    let source = vec![7_u8; 4096];
    let mut target = vec![0_u8; 4096];
    let from = source.as_ptr().expose_provenance() as u64;
    let to = target.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: both buffers outlive the operation, and nothing else accesses them meanwhile.
    unsafe { mover.enqueue(&Operation::memmove(from, to, 4096)) }?;
    while mover.submit() == Progress::Pending {
        std::hint::spin_loop();
    }
    let mut ended = [Completion::default()];
    while mover.poll(&mut ended) == 0 {
        std::hint::spin_loop();
    }
    println!(
        "{:?} on {} by {}: {}",
        ended[0].executor,
        mover.info().name(),
        mover.submit_path(),
        ended[0].status()
    );
    assert_eq!(source, target);
    Ok(())
}
