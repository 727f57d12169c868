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
    /// The first 8 bytes of SWERROR.
    SoftwareError,
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
}

const NAMES: [(&str, Code); 8] = [
    ("command", Code::Command),
    ("status", Code::Status),
    ("swerror", Code::SoftwareError),
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
            Self::SoftwareError => software_error(hex(text)?),
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

fn software_error(register: u64) -> Option<Decoded> {
    let head = ErrorHead::from_bits(register);
    let error = Status(head.error());
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
    let what = format!("{error}{queue}{descriptor}");
    Some(Decoded::new(what, advice::of(error)))
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
        assert!(what(Code::Errno, "-95").contains("EOPNOTSUPP"));
        assert!(what(Code::Errno, "invalid argument").contains("EINVAL"));
        assert_eq!(Code::Errno.decode("-4711"), None);
        assert_eq!(Code::Function.length("6a:01.0] fault"), Some(7));
        assert_eq!(Code::Function.length("0x6a:0x01.0] fault"), Some(11));
        assert_eq!(Code::Function.length("dead beef"), None);
    }
}
