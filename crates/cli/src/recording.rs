//! What is said of a recording that was made.

use std::ffi::OsString;
use std::path::Path;

use dray_output::counted;
use dray_recording::{Closed, MOST_BYTES};

use crate::complain::Usage;

/// Most bytes of a recording, as typed.
pub(crate) fn limit(text: &str) -> anyhow::Result<u64> {
    let hint = "--record-limit 1g";
    let bytes = dray_experiment::parse_bytes(text)
        .map_err(|error| Usage::error(format!("--record-limit {text}: {error}"), hint))?;
    match (64 << 10..=MOST_BYTES).contains(&bytes) {
        true => Ok(bytes),
        false => Err(Usage::error(
            format!("--record-limit {text}: possible are 64k to 16g"),
            hint,
        )),
    }
}

/// The words of a command.
pub(crate) fn command(words: &[OsString]) -> String {
    let words: Vec<String> = words
        .iter()
        .map(|word| word.display().to_string())
        .collect();
    words.join(" ").replace(char::is_control, " ")
}

/// What is in the file, what it cost, and what is not in it.
pub(crate) fn report(path: &Path, closed: &Closed) -> String {
    let path = path.display();
    let mut text = match closed.threads {
        0 => format!("nothing was recorded in {path}"),
        threads => format!(
            "{path}: {} with requests, {} KiB",
            counted(threads as usize, "thread"),
            closed.bytes / 1024,
        ),
    };
    let (count, ns) = closed.timed;
    if count > 0 {
        text += &format!(
            "; to record one took {:.0} ns (mean of {count} timed)",
            ns as f64 / count as f64
        );
    }
    if closed.threads > 0 {
        text += &format!("\nhint: dray replay {path}");
    }
    if closed.lost > 0 {
        let why = match &closed.full {
            Some(error) => format!("the file got no more room ({error})"),
            None => "the file was full (--record-limit), its room came too late, or a signal handler called while its thread was recording".to_owned(),
        };
        text += &format!(
            "\nwarning: {} are not in it: {why}",
            counted(closed.lost as usize, "request")
        );
    }
    text
}
