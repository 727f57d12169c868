//! Records of /dev/kmsg as lines of dmesg.

/// One record as dmesg prints it; none for what is no record.
///
/// A record is `priority,sequence,microseconds,flags;text`, then lines of its own that begin with
/// a space (Documentation/ABI/testing/dev-kmsg).
pub(super) fn line(record: &[u8]) -> Option<String> {
    let record = String::from_utf8_lossy(record);
    let (head, text) = record.split_once(';')?;
    let micros: u64 = head.split(',').nth(2)?.parse().ok()?;
    let text = text.lines().next()?;
    let seconds = micros / 1_000_000;
    Some(format!("[{seconds:5}.{:06}] {text}", micros % 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kmsg_records_are_converted_to_dmesg_lines() {
        let record = b"4,1203,7927634,-;idxd 0000:f2:01.0: Unable to turn on user SVA feature.\n SUBSYSTEM=pci\n";
        assert_eq!(
            line(record).as_deref(),
            Some("[    7.927634] idxd 0000:f2:01.0: Unable to turn on user SVA feature.")
        );
        assert_eq!(line(b"garbage"), None);
        assert_eq!(line(b"4,5;short"), None);
        assert!(line(b"4,5,18446744073709551615,-;\xff").is_some());
    }
}
