//! Trace events in Chrome's format, which Perfetto loads: the array form.

use std::collections::HashMap;
use std::io::{self, Write};

use super::Form;
use crate::descriptor_table::Ended;
use crate::stats::operation_name;

/// Tracks of a device: its engines; their batches, which lie over their members; and the drains of
/// each queue, which reach no engine.
const BATCHES: u32 = 1000;
const DRAINS: u32 = 2000;

/// The format needs to know which tracks have names, and where each of them ends.
#[derive(Debug, Default)]
pub(super) struct Chrome {
    /// By device and track: the end of its last event.
    tracks: HashMap<(u32, u32), u64>,
    begun: bool,
}

impl Chrome {
    /// What stands between two events.
    fn separate(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let comma = if std::mem::replace(&mut self.begun, true) {
            ",\n"
        } else {
            "\n"
        };
        out.write_all(comma.as_bytes())
    }
}

/// Processes are numbered from 1: 0 is the idle process.
fn process(device: u32) -> u32 {
    device + 1
}

fn track(ended: &Ended) -> (u32, String) {
    match ended.engine {
        Some(engine) if ended.is_batch() => (
            BATCHES + u32::from(engine),
            format!("batches of engine {engine}"),
        ),
        Some(engine) => (1 + u32::from(engine), format!("engine {engine}")),
        None => (DRAINS + u32::from(ended.wq), format!("wq {}", ended.wq)),
    }
}

/// Microseconds, which is what the format counts in, with all digits that there are.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

impl Form for Chrome {
    fn begin(&mut self, out: &mut dyn Write, devices: &[u32]) -> io::Result<()> {
        out.write_all(b"[")?;
        for device in devices {
            self.separate(out)?;
            let pid = process(*device);
            write!(
                out,
                r#"{{"name":"process_name","ph":"M","ts":0,"pid":{pid},"tid":0,"args":{{"name":"dsa{device}"}}}}"#
            )?;
        }
        Ok(())
    }

    fn write(&mut self, out: &mut dyn Write, device: u32, ended: &Ended) -> io::Result<()> {
        let pid = process(device);
        let (tid, name) = track(ended);
        let before = match self.tracks.get(&(device, tid)) {
            Some(before) => *before,
            None => {
                self.separate(out)?;
                write!(
                    out,
                    r#"{{"name":"thread_name","ph":"M","ts":0,"pid":{pid},"tid":{tid},"args":{{"name":"{name}"}}}}"#
                )?;
                0
            }
        };
        // An engine may hold several descriptors, and carries them out one after the other: on its
        // track one begins where the one before ends.
        let began = ended.started_ns.max(before);
        let end = ended.ended_ns.max(began);
        self.tracks.insert((device, tid), end);
        self.separate(out)?;
        write!(
            out,
            r#"{{"name":"{}","cat":"descriptor","ph":"X","ts":{},"dur":{},"pid":{pid},"tid":{tid},"args":{{"pid":{},"pasid":{},"wq":"wq{device}.{}","size":{},"status":"{}","bytes_completed":{},"wait_ns":{},"member":{}}}}}"#,
            operation_name(ended.operation),
            micros(began),
            micros(end - began),
            // 0 where it is not known: no program has that number.
            ended.pid.unwrap_or(0),
            ended.pasid,
            ended.wq,
            ended.size,
            ended.status_name(),
            ended.bytes_completed(),
            ended.wait_ns(),
            ended.member,
        )
    }

    fn end(&self) -> &'static [u8] {
        b"\n]\n"
    }
}
