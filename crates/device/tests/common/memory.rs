//! Memory with holes.

pub(crate) use dray_device::conformance::{PAGE, Page, Pages};
