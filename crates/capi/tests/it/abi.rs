//! What programs that were linked with the last release rely on, libdray still has, and what was added is recorded.

use std::path::Path;

use crate::toolchain::{ROOT, prefix};

#[test]
fn the_interface_is_that_of_the_record() {
    let checked = xtask::abi::check(&xtask::DRAY, prefix(), &Path::new(ROOT).join("abi"));
    if let Err(error) = checked {
        panic!("{error:#}");
    }
}
