//! A machine to test on, and an application that keeps a mover busy.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod busy;
pub(crate) mod machine;
