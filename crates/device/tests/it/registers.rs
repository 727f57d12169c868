//! The device as a driver sees it: registers, commands, portals, interrupts, resets.

mod access;
mod commands;
mod driver;
mod event_log;
mod full_log;
mod log;
mod random;
mod software_error;
mod startup;
mod work;
