//! The device as a driver sees it: registers, commands, portals, interrupts, resets.

#[path = "registers/access.rs"]
mod access;
#[path = "registers/commands.rs"]
mod commands;
#[allow(dead_code, reason = "every test binary uses its part of it")]
mod common;
#[path = "registers/driver.rs"]
mod driver;
#[path = "registers/event_log.rs"]
mod event_log;
#[path = "registers/full_log.rs"]
mod full_log;
#[path = "registers/log.rs"]
mod log;
#[path = "registers/random.rs"]
mod random;
#[path = "registers/software_error.rs"]
mod software_error;
#[path = "registers/startup.rs"]
mod startup;
#[path = "registers/work.rs"]
mod work;
