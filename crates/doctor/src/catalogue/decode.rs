//! Numbers in messages, decoded by the tables that they come from.

use dray_spec::registers::ErrorHead;
use dray_spec::{Opcode, Status};

use super::pattern::number;
use super::{advice, fault, library};
use crate::cmd_status;

/// A kind of number or word in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Code {
    /// `cmd_status`, or the error of CMDSTS alone.
    Command,
    /// The status of a completion record, of SWERROR or of the event log.
    Status,
    /// The status of a completion record as a debugger prints it, in decimal.
    Record,
    /// The first 8 bytes of SWERROR.
    SoftwareError,
    /// The first 8 bytes of a page request.
    PageRequest,
    /// An error number, or its text.
    Errno,
    /// A status of DML's C interface.
    Dml,
    /// A status of QPL.
    Qpl,
    /// The address of a PCI function.
    Function,
    /// A fault reason of the remapping unit.
    Fault,
}

/// What a number says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) what: String,
    /// Empty if the message says what to do.
    pub(crate) advice: &'static str,
    /// It reports that all is well.
    pub(crate) fine: bool,
}

impl Decoded {
    fn new(what: impl Into<String>, advice: &'static str) -> Self {
        Self {
            what: what.into(),
            advice,
            fine: false,
        }
    }

    /// What tells reports of crashes of one entry apart: where each stopped, for instance.
    pub(crate) fn place(function: &str) -> Self {
        Self::new(function, "")
    }
}

const NAMES: [(&str, Code); 10] = [
    ("command", Code::Command),
    ("status", Code::Status),
    ("record", Code::Record),
    ("swerror", Code::SoftwareError),
    ("request", Code::PageRequest),
    ("errno", Code::Errno),
    ("dml", Code::Dml),
    ("qpl", Code::Qpl),
    ("function", Code::Function),
    ("fault", Code::Fault),
];

impl Code {
    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES
            .iter()
            .find(|known| known.0 == name)
            .map(|known| known.1)
    }

    /// Such a number that stands for a fault.
    #[cfg(test)]
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Command => "0x14",
            Self::Status => "0x10",
            Self::Record => "131",
            Self::PageRequest => "6a080001",
            Self::SoftwareError => "0x0000000300011a2d",
            Self::Errno => "-22",
            Self::Dml | Self::Qpl => "100",
            Self::Function => "6a:01.0",
            Self::Fault => "0x06",
        }
    }

    /// The length of such a number at the start of a text.
    pub(super) fn length(self, text: &str) -> Option<usize> {
        match self {
            Self::Function => {
                // Some kernels print 0x6a:0x01.0.
                let digits = |c: char| c.is_ascii_hexdigit() || ":.x".contains(c);
                let length = text.len() - text.trim_start_matches(digits).len();
                let address = text[..length].trim_end_matches([':', '.']);
                (address.contains(':') && address.contains('.')).then_some(address.len())
            }
            Self::Errno => {
                let spelled = ERRNO.iter().find(|known| text.starts_with(known.2));
                let spelled = spelled.map(|known| known.2.len());
                spelled.or_else(|| number(text, |c| c.is_ascii_digit()))
            }
            _ => number(text, |c| c.is_ascii_hexdigit()),
        }
    }

    /// What a number says.
    pub(super) fn decode(self, text: &str) -> Option<Decoded> {
        match self {
            Self::Command => command(hex(text)?),
            Self::Status => status(Status(hex(text)?.try_into().ok()?)),
            Self::Record => record(text),
            Self::SoftwareError => software_error(hex(text)?),
            Self::PageRequest => page_request(hex(text)?),
            Self::Errno => errno(text),
            Self::Dml => library::dml(text.parse().ok()?),
            Self::Qpl => library::qpl(text.parse().ok()?),
            Self::Function => None,
            Self::Fault => fault::reason(text),
        }
    }
}

fn hex(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).ok()
}

fn command(status: u64) -> Option<Decoded> {
    match cmd_status::decode(status) {
        Some(meaning) => Some(Decoded::new(meaning.what, meaning.advice)),
        None => Some(Decoded {
            fine: true,
            ..Decoded::new("success", "")
        }),
    }
}

/// What a status byte says, with what to do.
pub(super) fn status(status: Status) -> Option<Decoded> {
    Some(Decoded {
        fine: matches!(status, Status::SUCCESS),
        ..Decoded::new(status.to_string(), advice::of(status))
    })
}

fn record(text: &str) -> Option<Decoded> {
    let number: u8 = match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    status(Status(number))
}

const NO_PASID: &str = "The queue has no PASID, and a program's addresses mean nothing without one; touching pages does not help. See that pasid_enabled is 1 \
(check sva), and enable the queue anew. The addresses of a kernel client are not mapped for the device.";

/// A page request as the remapping unit queues it (VT-d specification, page request descriptor).
fn page_request(head: u64) -> Option<Decoded> {
    let source = head >> 16 & 0xffff;
    let (bus, device, function) = (source >> 8, source >> 3 & 0x1f, source & 7);
    let function = format!("the function is {bus:02x}:{device:02x}.{function}");
    Some(match head >> 8 & 1 {
        0 => Decoded::new(format!("{function}, and gave no PASID"), NO_PASID),
        _ => Decoded::new(format!("{function}, PASID {}", head >> 32 & 0xf_ffff), ""),
    })
}

fn software_error(register: u64) -> Option<Decoded> {
    let head = ErrorHead::from_bits(register);
    let error = Status(head.error());
    let is_page_fault = matches!(error.defined(), 0x03 | 0x04 | 0x06 | 0x1a | 0x1f);
    let advice = match head.descriptor_valid() && head.pasid() == 0 && is_page_fault {
        true => NO_PASID,
        false => advice::of(error),
    };
    let operation = match Opcode::try_from(head.operation()) {
        Ok(opcode) => opcode.name().to_owned(),
        Err(_) => format!("{:#04x}", head.operation()),
    };
    let queue = match head.wq_valid() {
        true => format!(", work queue {}", head.wq()),
        false => String::new(),
    };
    let descriptor = match head.descriptor_valid() {
        true => format!(", operation {operation}, PASID {}", head.pasid()),
        false => String::new(),
    };
    let stale = match head.valid() {
        true => "",
        false => " (valid is 0: left from an earlier error)",
    };
    let what = format!("{error}{queue}{descriptor}{stale}");
    Some(Decoded::new(what, advice))
}

/// Number, name and text of the errors that these programs print.
const ERRNO: [(i64, &str, &str); 23] = [
    (1, "EPERM", "operation not permitted"),
    (2, "ENOENT", "no such file or directory"),
    (4, "EINTR", "interrupted system call"),
    (5, "EIO", "input/output error"),
    (6, "ENXIO", "no such device or address"),
    (11, "EAGAIN", "resource temporarily unavailable"),
    (12, "ENOMEM", "cannot allocate memory"),
    (13, "EACCES", "permission denied"),
    (14, "EFAULT", "bad address"),
    (16, "EBUSY", "device or resource busy"),
    (17, "EEXIST", "file exists"),
    (19, "ENODEV", "no such device"),
    (22, "EINVAL", "invalid argument"),
    (25, "ENOTTY", "inappropriate ioctl for device"),
    (28, "ENOSPC", "no space left on device"),
    (30, "EROFS", "read-only file system"),
    (34, "ERANGE", "numerical result out of range"),
    (38, "ENOSYS", "function not implemented"),
    (61, "ENODATA", "no data available"),
    (62, "ETIME", "timer expired"),
    (95, "EOPNOTSUPP", "operation not supported"),
    (110, "ETIMEDOUT", "connection timed out"),
    (517, "EPROBE_DEFER", "the driver is asked again later"),
];

fn errno(text: &str) -> Option<Decoded> {
    let number: Option<i64> = text.parse().ok();
    let known = ERRNO.iter().find(|known| match number {
        Some(number) => number.checked_abs() == Some(known.0),
        None => text == known.2,
    })?;
    Some(Decoded::new(format!("{}, {}", known.1, known.2), ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(code: Code, text: &str) -> String {
        code.decode(text).unwrap().what
    }

    #[test]
    fn numbers_are_decoded_by_the_tables_of_the_specification() {
        assert!(what(Code::Command, "0x800c0000").contains("shared"));
        assert!(what(Code::Command, "14").contains("add up"));
        assert!(Code::Command.decode("0").unwrap().fine);
        assert!(what(Code::Status, "0x83").contains("on a write"));
        assert!(Code::Status.decode("0x1").unwrap().fine);
        for status in Status::ALL {
            let decoded = what(Code::Status, &format!("{:x}", status.0));
            assert!(decoded.contains(status.describe()), "{decoded}");
        }
        // An invalid opcode 0x0a in queue 2, of PASID 5: bits valid, wq_valid, descriptor_valid.
        let head = ErrorHead::new()
            .with_valid(true)
            .with_wq_valid(true)
            .with_wq(2);
        let head = head
            .with_descriptor_valid(true)
            .with_error(0x10)
            .with_pasid(5);
        let text = what(Code::SoftwareError, &format!("0x{:016x}", head.into_bits()));
        assert!(
            text.contains("bad_opcode") && text.contains("queue 2"),
            "{text}"
        );
        // A completion record that could not be written: the page is there to be touched if the
        // descriptor had a PASID.
        let record = |text: &str| Code::SoftwareError.decode(text).unwrap();
        let without = record("0x0000000300011a2d");
        assert!(without.advice.contains("pasid_enabled"), "{without:?}");
        assert!(!without.what.contains("earlier error"), "{without:?}");
        assert!(record("0x0000050300011a2d").advice.contains("Touch"));
        assert!(record("0x0000000300011a2c").what.contains("earlier error"));
        let request = Code::PageRequest.decode("6a080001").unwrap();
        assert!(request.what.contains("6a:01.0") && request.advice.contains("pasid_enabled"));
        let request = Code::PageRequest.decode("56a080101").unwrap();
        assert!(request.what.contains("PASID 5") && request.advice.is_empty());
        assert_eq!(what(Code::Record, "131"), what(Code::Status, "0x83"));
        assert_eq!(what(Code::Record, "0x83"), what(Code::Status, "0x83"));
        assert!(what(Code::Errno, "-95").contains("EOPNOTSUPP"));
        assert!(what(Code::Errno, "invalid argument").contains("EINVAL"));
        assert_eq!(Code::Errno.decode("-4711"), None);
        assert_eq!(Code::Function.length("6a:01.0] fault"), Some(7));
        assert_eq!(Code::Function.length("0x6a:0x01.0] fault"), Some(11));
        assert_eq!(Code::Function.length("dead beef"), None);
    }
}
