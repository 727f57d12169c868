//! Unmodified DSA programs on the virtual device.
