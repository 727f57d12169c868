//! Rings, their reader, doorbells and regions, on one thread. All interleavings: `tests/loom.rs`.

mod attachment;
mod reader;
