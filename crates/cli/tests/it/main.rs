//! The tests of the command, in one program: each runs `dray` as a process of its own.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too, fail by panic")]

mod advise;
mod attest;
mod bad_input;
mod bench;
mod bench_cpp;
mod bench_peer;
mod build;
mod chaos;
mod check;
mod common;
mod compare;
mod config;
mod config_peer;
#[path = "../../../../tests/counting_allocator.rs"]
mod counting_allocator;
mod doctor;
mod environments;
mod fabric;
mod fabric_bench;
mod guide;
mod help;
mod library;
mod library_c;
mod library_dml;
mod library_open;
mod library_path;
mod library_queue;
mod library_table;
mod measured_device;
mod micros;
mod modelled_values;
mod offload;
mod outputs;
mod package;
mod readme;
mod report;
mod repro;
mod run;
mod run_end;
mod run_portal;
mod run_redirect;
mod run_static;
mod run_stats;
mod run_supervised;
mod run_write;
mod sanitize;
mod schemas;
mod session;
mod terminal;
mod tier;
mod tier_hazards;
mod tier_refused;
mod vfio;
mod vhost;
