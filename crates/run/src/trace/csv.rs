//! A line for each descriptor.

use std::io::{self, Write};

use super::Form;
use crate::descriptor_table::Ended;
use crate::stats::operation_name;

/// Bytes of most lines.
const LINE: usize = 256;

/// Comma-separated, with a head.
pub(super) struct Csv;

impl Form for Csv {
    fn begin(&mut self, out: &mut dyn Write, _devices: &[u32]) -> io::Result<()> {
        record(
            out,
            [
                "accepted_ns",
                "started_ns",
                "ended_ns",
                "device",
                "wq",
                "engine",
                "pid",
                "pasid",
                "operation",
                "member",
                "size",
                "status",
                "bytes_completed",
                "wait_ns",
            ],
        )
    }

    fn write(&mut self, out: &mut dyn Write, device: u32, ended: &Ended) -> io::Result<()> {
        let number = |number: Option<u32>| number.map_or_else(String::new, |n| n.to_string());
        record(
            out,
            [
                ended.accepted_ns.to_string(),
                ended.started_ns.to_string(),
                ended.ended_ns.to_string(),
                device.to_string(),
                ended.wq.to_string(),
                number(ended.engine.map(u32::from)),
                number(ended.pid),
                ended.pasid.to_string(),
                operation_name(ended.operation).to_string(),
                u8::from(ended.member).to_string(),
                ended.size.to_string(),
                ended.status_name().to_string(),
                ended.bytes_completed().to_string(),
                ended.wait_ns().to_string(),
            ],
        )
    }

    fn end(&self) -> &'static [u8] {
        b""
    }
}

/// Writes one line.
fn record<const N: usize>(out: &mut dyn Write, cells: [impl AsRef<[u8]>; N]) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new()
        .buffer_capacity(LINE)
        .from_writer(out);
    writer.write_record(cells)?;
    writer.flush()
}
