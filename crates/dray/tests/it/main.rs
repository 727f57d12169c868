//! Movers of this process.

mod aborts;
mod channel;
mod channels;
mod device_answers;
mod dispatch;
mod examples;
mod forked;
mod gate;
mod handles;
mod inaccessible;
mod lost;
mod machine;
mod manual;
mod memory;
mod never;
mod outcomes;
#[cfg(target_os = "linux")]
mod page_limits;
mod page_report;
mod page_statistics;
mod pages;
mod policies;
mod resumed;
mod silent;
mod task;
mod vectors;
mod waiting;
mod withdraw;
