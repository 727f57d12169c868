//! Points of the shipped experiments that the profile or the platform of a run cannot have.
//!
//! An experiment sweeps what the published device can do. Another device may have fewer entries or engines, or a
//! profile may divide them among several work queues: such points are left out, and named with the reason. A value
//! that was asked for with `--set` is an error instead.

use dray_idxd::{Profile, ProfileError};

use crate::FiguresError;
use crate::point_counts::PointCounts;
use crate::setup::changed;
use crate::workload::Workload;

/// Points that were left out: how many of each figure, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RefusedPoints {
    points: PointCounts<String>,
}

impl RefusedPoints {
    /// Leaves a point out. Whether that is right: it is not if a value was `asked` for that is the cause of the
    /// error, or if the cause is none of the values.
    pub(crate) fn add(
        &mut self,
        figure: &str,
        profile: &Profile,
        workload: &Workload,
        asked: &[(String, String)],
        error: &FiguresError,
    ) -> bool {
        let parameters = causes(error, profile, workload);
        let is_asked = |name: &&str| asked.iter().any(|(asked, _)| asked == name);
        if parameters.is_empty() || parameters.iter().any(is_asked) {
            return false;
        }
        self.points.add(figure, reason(error, parameters, workload));
        true
    }

    /// Points in all.
    pub fn count(&self) -> usize {
        self.points.count()
    }

    /// A line for each figure and reason.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.points.lines("left out")
    }
}

/// The parameters of a point of which one has the value that is refused; none if it is something else.
fn causes(error: &FiguresError, profile: &Profile, w: &Workload) -> &'static [&'static str] {
    match error {
        FiguresError::Limit { what, .. } => match *what {
            "batch" => &["batch"],
            "devices" => &["devices"],
            "cores" => &["cores"],
            "read_buffers" => &["read_buffers"],
            "depth" => &["depth", "buffers", "count", "cores", "devices", "wq_size"],
            "size" => &["size", "pages", "payload", "huge_pages", "base_pages"],
            "neighbour_size" => &["neighbour_size"],
            _ => &[],
        },
        FiguresError::NoNode { .. } => &["src_node", "dst_node", "core_node", "slow"],
        FiguresError::NoSecondTenant { .. } => &["neighbour_size", "sharing", "cores", "queues"],
        FiguresError::Profile(_) => setting(profile, w),
        _ => &[],
    }
}

/// The setting without which the profile could be as the point wants it.
fn setting(profile: &Profile, w: &Workload) -> &'static [&'static str] {
    let without = |w: Workload| changed(profile, &w).is_ok();
    let settings: [(Workload, &[&str]); 3] = [
        (
            Workload {
                wq_size: None,
                ..*w
            },
            &["wq_size"],
        ),
        (
            Workload {
                engines: None,
                ..*w
            },
            &["engines"],
        ),
        (Workload { shared: None, ..*w }, &["submit"]),
    ];
    let found = settings.into_iter().find(|(w, _)| without(*w));
    found.map_or(&[], |(_, name)| name)
}

fn reason(error: &FiguresError, parameters: &[&str], w: &Workload) -> String {
    let findings = match error {
        FiguresError::Profile(ProfileError::Invalid { findings, .. }) => findings,
        // One line for all values above the limit.
        FiguresError::Limit {
            what, limit, field, ..
        } => return format!("{what} above {limit} ({field})"),
        other => return other.to_string(),
    };
    let value = match parameters {
        ["wq_size"] => w.wq_size.map(|entries| format!("wq_size {entries}")),
        ["engines"] => w.engines.map(|engines| format!("engines {engines}")),
        _ => w.shared.map(|shared| match shared {
            true => "submit enqcmd".to_owned(),
            false => "submit movdir64b".to_owned(),
        }),
    };
    let finding = findings.first().map(|finding| {
        let (field, value, limit) = (&finding.field, &finding.value, &finding.limit);
        format!("{field} is {value}; {limit}")
    });
    let parts: Vec<String> = value.into_iter().chain(finding).collect();
    parts.join(": ")
}
