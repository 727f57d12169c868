//! A line for each descriptor.

use std::io::{self, Write};

use super::Form;
use crate::descriptor_table::Ended;
use crate::stats::operation_name;

/// Comma-separated, with a head.
pub(super) struct Csv;

impl Form for Csv {
    fn begin(&mut self, out: &mut dyn Write, _devices: &[u32]) -> io::Result<()> {
        writeln!(
            out,
            "accepted_ns,started_ns,ended_ns,device,wq,engine,pid,pasid,operation,member,size,\
             status,bytes_completed,wait_ns"
        )
    }

    fn write(&mut self, out: &mut dyn Write, device: u32, ended: &Ended) -> io::Result<()> {
        let number = |number: Option<u32>| number.map_or_else(String::new, |n| n.to_string());
        writeln!(
            out,
            "{},{},{},{device},{},{},{},{},{},{},{},{},{},{}",
            ended.accepted_ns,
            ended.started_ns,
            ended.ended_ns,
            ended.wq,
            number(ended.engine.map(u32::from)),
            number(ended.pid),
            ended.pasid,
            operation_name(ended.operation),
            u8::from(ended.member),
            ended.size,
            ended.status_name(),
            ended.bytes_completed(),
            ended.wait_ns(),
        )
    }

    fn end(&self) -> &'static [u8] {
        b""
    }
}
