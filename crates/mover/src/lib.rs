//! Offload memory operations to a data mover, and say who executed them.
