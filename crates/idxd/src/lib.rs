//! What the Linux driver decides: accel-config profiles and their validation.
