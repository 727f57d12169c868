//! Records of `journalctl -o json` and of container engines' log files.

use serde_json::Value;

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) message: String,
    pub(super) host: Option<String>,
    /// Which start of the host it is of.
    pub(super) boot: Option<String>,
}

/// Keys under which the text stands, of journald, docker and common libraries.
const MESSAGES: [&str; 4] = ["MESSAGE", "log", "message", "msg"];

/// The record of a line; none if it is not one.
pub(super) fn record(line: &[u8]) -> Option<Record> {
    // `-o json-seq` has a mark before each, `-o json-sse` a word.
    let line = line.strip_prefix(b"\x1e").unwrap_or(line);
    let line = line.strip_prefix(b"data: ").unwrap_or(line);
    if !line.starts_with(b"{") {
        return None;
    }
    let Ok(Value::Object(fields)) = serde_json::from_slice(line) else {
        return None;
    };
    let text = |name: &str| match fields.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        // What is not printable, such as colours, is a list of bytes.
        Some(Value::Array(bytes)) => {
            let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
            let bytes: Vec<u8> = bytes.iter().filter_map(byte).collect();
            Some(String::from_utf8_lossy(&bytes).into_owned())
        }
        _ => None,
    };
    let message = MESSAGES.iter().find_map(|name| text(name))?;
    Some(Record {
        message: match text("SYSLOG_IDENTIFIER") {
            Some(identifier) => format!("{identifier}: {message}"),
            None => message,
        },
        host: text("_HOSTNAME"),
        boot: text("_BOOT_ID"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_with_text_or_bytes() {
        let line = br#"{"MESSAGE":"idxd: no","_HOSTNAME":"a","_BOOT_ID":"1","SYSLOG_IDENTIFIER":"kernel"}"#;
        let found = record(line).unwrap();
        assert_eq!(found.message, "kernel: idxd: no");
        assert_eq!(
            (found.host.as_deref(), found.boot.as_deref()),
            (Some("a"), Some("1"))
        );
        let bytes = br#"{"MESSAGE":[27,91,51,49,109,105,100]}"#;
        assert_eq!(record(bytes).unwrap().message, "\u{1b}[31mid");
        assert_eq!(
            record(br#"{"log":"x\n","stream":"stderr"}"#)
                .unwrap()
                .message,
            "x\n"
        );
        for other in [&b"{"[..], b"{}", b"[1]", br#"{"dev":"dsa0"}"#, b"idxd"] {
            assert_eq!(record(other), None);
        }
    }
}
