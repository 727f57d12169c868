//! One thing in a profile that the driver or the device would refuse.

use std::fmt;

/// A value that cannot be, with what to type instead.
///
/// Displayed in two lines: what was wrong and where, then the fix.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Where, as `dsa0/groups[0]/grouped_workqueues[0] (wq0.0)`.
    pub path: String,
    /// The key, as accel-config spells it.
    pub field: String,
    /// What the profile says; `missing` if it says nothing.
    pub value: String,
    /// What would be accepted, and whose rule it is.
    pub limit: String,
    /// What to type instead.
    pub fix: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            field,
            value,
            limit,
            fix,
        } = self;
        write!(f, "{path}: {field} is {value}; {limit}\n  fix: {fix}")
    }
}

/// What [`Finding::value`] says where the profile says nothing.
pub(crate) const MISSING: &str = "missing";

/// Gathers findings about one object of a profile.
pub(crate) struct Findings<'a> {
    path: String,
    list: &'a mut Vec<Finding>,
}

impl<'a> Findings<'a> {
    pub(crate) fn at(path: impl Into<String>, list: &'a mut Vec<Finding>) -> Self {
        Self {
            path: path.into(),
            list,
        }
    }

    pub(crate) fn add(
        &mut self,
        field: &str,
        value: impl ToString,
        limit: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.list.push(Finding {
            path: self.path.clone(),
            field: field.to_owned(),
            value: value.to_string(),
            limit: limit.into(),
            fix: fix.into(),
        });
    }
}
