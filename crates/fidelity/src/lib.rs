//! What of a DSA, of its driver and of its door for guests the virtual device has: exact, approximate or unsupported,
//! and which test shows it. The names come from the tables that the code uses; what is said of them is here.

mod driver;
mod page;
mod registers;
mod rules;

use dray_device::Fidelity;
use serde::Serialize;

pub use page::page;

/// A test of the workspace: the package in which it is, and its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Test {
    /// Directory below `crates`.
    pub package: &'static str,
    /// Name of the function.
    pub function: &'static str,
}

/// One thing that a DSA, its driver or the door for guests has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// What it is: `rule`, `operation`, `status`, `register`, `command`, `attribute`, `cdev` or `vfio-user`.
    pub area: &'static str,
    /// Its name.
    pub name: String,
    /// Section of the specification, or the kernels that have it.
    pub of: String,
    /// How true it is.
    #[serde(serialize_with = "word")]
    pub fidelity: Fidelity,
    /// What is missing, unless it is exact.
    pub missing: Option<String>,
    /// The test that shows it; nothing shows what is unsupported, but for a refusal.
    pub test: Option<Test>,
}

fn word<S: serde::Serializer>(fidelity: &Fidelity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(fidelity.name())
}

/// The areas, in the order of the sheet.
pub const AREAS: [&str; 8] = [
    "rule",
    "operation",
    "status",
    "register",
    "command",
    "attribute",
    "cdev",
    "vfio-user",
];

/// The whole sheet.
pub fn sheet() -> Vec<Entry> {
    [
        rules::rules(),
        rules::operations(),
        rules::statuses(),
        registers::registers(),
        registers::commands(),
        driver::attributes(),
        driver::cdev(),
        driver::vfio_user(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

const fn test(package: &'static str, function: &'static str) -> Option<Test> {
    Some(Test { package, function })
}

/// Exact, with its test.
fn exact(area: &'static str, name: String, of: String, test: Option<Test>) -> Entry {
    Entry {
        area,
        name,
        of,
        fidelity: Fidelity::Exact,
        missing: None,
        test,
    }
}

impl Entry {
    /// As true as this, for what is missing.
    fn but(self, fidelity: Fidelity, missing: &str) -> Entry {
        Entry {
            fidelity,
            missing: Some(missing.to_owned()),
            ..self
        }
    }
}
