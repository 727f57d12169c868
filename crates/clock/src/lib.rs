//! Virtual time in integer picoseconds, and the event queue.
