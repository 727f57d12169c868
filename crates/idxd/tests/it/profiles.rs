//! Profiles as a user meets them: files, names, findings, changes.

mod change;
mod common;
mod device;
mod hostile;
mod names;
mod parse;
mod seed;
mod work_queue;
