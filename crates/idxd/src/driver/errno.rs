//! Error numbers of Linux, as a write to sysfs or an open returns them.

use std::fmt;

/// An error number; positive, as in `errno`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

/// Declares constants, names and descriptions from one table.
macro_rules! errnos {
    ($($number:literal $name:ident $text:literal,)*) => {
        impl Errno {
            $(#[doc = $text] pub const $name: Errno = Errno($number);)*

            /// The symbol, as `EPERM`; `errno` for a number that the driver does not use.
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($number => stringify!($name),)*
                    _ => "errno",
                }
            }

            /// What `strerror` says.
            pub const fn describe(self) -> &'static str {
                match self.0 {
                    $($number => $text,)*
                    _ => "Unknown error",
                }
            }
        }
    };
}

errnos! {
    1 EPERM "Operation not permitted",
    2 ENOENT "No such file or directory",
    6 ENXIO "No such device or address",
    11 EAGAIN "Resource temporarily unavailable",
    13 EACCES "Permission denied",
    16 EBUSY "Device or resource busy",
    19 ENODEV "No such device",
    20 ENOTDIR "Not a directory",
    21 EISDIR "Is a directory",
    22 EINVAL "Invalid argument",
    34 ERANGE "Numerical result out of range",
    75 EOVERFLOW "Value too large for defined data type",
    95 EOPNOTSUPP "Operation not supported",
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.describe(), self.name(), self.0)
    }
}

impl std::error::Error for Errno {}
