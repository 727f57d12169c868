//! The kernel driver's rules, as a process that writes to sysfs sees them.

mod attributes;
mod clients;
mod common;
mod copies;
mod devices;
mod function;
mod life;
mod random;
