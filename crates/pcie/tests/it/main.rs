//! Tests of the crate through its public interface.

mod bench;
mod simulation;
mod topology;
