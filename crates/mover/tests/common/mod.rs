//! Machines to test on, memory to work on, and applications that keep a mover busy.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod busy;
pub(crate) mod ground;
pub(crate) mod line;
pub(crate) mod machine;
pub(crate) mod once;
pub(crate) mod script;
