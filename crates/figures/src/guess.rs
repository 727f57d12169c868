//! Which results rest on parameters that no source gives.

use dray_device::WorkQueueMode;
use dray_experiment::{BACKEND, Figure, Outcome, Point};
use dray_idxd::Profile;
use dray_platform::{Cache, Distance, Parameter, PlatformFile, Unit, WaitMode};
use dray_workload::Op;

use crate::request::Request;
use crate::task::Backend;
use crate::tenants::Sharing;
use crate::workload::{What, Workload};

/// The guessed parameters that a result rests on: those of the mechanisms that its workload singles
/// out, not those which shift all results alike.
///
/// `shared`: the profile's first work queue is one for ENQCMD. `metric`: which of the results; a
/// part that is a guess by itself (the core's time to prepare) is one only where it stands alone.
pub(crate) fn behind<'a>(
    w: &Workload,
    platform: &'a PlatformFile,
    shared: bool,
    metric: &str,
) -> Vec<&'a Parameter> {
    let mut names = match w.what {
        What::Software => software(w),
        What::BreakEven => [device(w, platform, shared), software(w)].concat(),
        _ => device(w, platform, shared),
    };
    match metric {
        "prepare_ns" | "break_even_bytes" => names.push("prepare"),
        "core_break_even_bytes" | CORE_TIME => names.extend(["prepare", "umwait_wake"]),
        _ => {}
    }
    let guessed = platform.list().iter().filter(|p| p.guess);
    guessed
        .filter(|p| names.contains(&p.name.as_str()))
        .collect()
}

/// The guesses behind an outcome: those of the metrics that its figure draws.
pub(crate) fn of_outcome<'a>(
    request: &'a Request,
    figure: &Figure,
    outcome: &Outcome,
) -> Vec<&'a Parameter> {
    let backend = Backend::ALL
        .into_iter()
        .find(|backend| outcome.point.text(BACKEND) == Some(backend.name()));
    let shared = is_shared(&request.profile);
    let mut found: Vec<&Parameter> = Vec::new();
    for panel in &figure.experiment.panels {
        let overlays = panel.overlays.iter().map(|overlay| &overlay.y);
        for metric in panel.y.iter().chain(overlays) {
            let Some(backend) = backend.filter(|_| outcome.metric(metric).is_some()) else {
                continue;
            };
            let behind = at(&outcome.point, backend, &request.platform, shared, metric);
            found.extend(behind);
        }
    }
    each_once(found, &request.platform)
}

/// The guesses behind all outcomes of a figure.
pub(crate) fn of_figure<'a>(request: &'a Request, figure: &Figure) -> Vec<&'a Parameter> {
    let all = figure.outcomes.iter();
    let found = all.flat_map(|outcome| of_outcome(request, figure, outcome));
    each_once(found.collect(), &request.platform)
}

/// The guesses behind a figure, one line each.
pub fn lines(request: &Request, figure: &Figure) -> Vec<String> {
    of_figure(request, figure).into_iter().map(words).collect()
}

/// In the order of the platform's file.
fn each_once<'a>(found: Vec<&Parameter>, platform: &'a PlatformFile) -> Vec<&'a Parameter> {
    let among = |p: &&Parameter| found.iter().any(|known| known.name == p.name);
    platform.list().iter().filter(among).collect()
}

/// The guesses behind a metric of a point as `backend` ran it.
pub(crate) fn at<'a>(
    point: &Point,
    backend: Backend,
    platform: &'a PlatformFile,
    shared: bool,
    metric: &str,
) -> Vec<&'a Parameter> {
    let run = match backend {
        Backend::Measured => return Vec::new(),
        Backend::Model => Workload::from_point(point),
        Backend::Cpu => Workload::from_point(&point.with("kind", "software")),
    };
    run.map_or(Vec::new(), |w| behind(&w, platform, shared, metric))
}

/// A guess as people read it: name, value and what is possible.
pub(crate) fn words(p: &Parameter) -> String {
    let unit = match p.unit {
        Unit::Count | Unit::Ratio => String::new(),
        unit => format!(" {}", unit.name()),
    };
    format!(
        "{} = {}{unit} ({} to {})",
        p.name, p.value, p.range[0], p.range[1]
    )
}

/// The core time of an operation on the device, of which no experiment is made.
pub(crate) const CORE_TIME: &str = "core_time_ns";

/// Whether the first work queue of a profile is a shared one.
pub(crate) fn is_shared(profile: &Profile) -> bool {
    let devices = profile.devices().unwrap_or_default();
    let first = devices.first().and_then(|d| d.work_queues.first());
    first.is_some_and(|queue| queue.mode == WorkQueueMode::Shared)
}

/// Parameters of software that no experiment shares with another operation or place.
fn software(w: &Workload) -> Vec<&'static str> {
    let mut names = vec![match w.op {
        Op::Nop => "cpu_call",
        Op::Move => "cpu_copy_line",
        Op::Fill => "cpu_fill_line",
        Op::NtFill => "cpu_nt_fill_line",
        Op::Compare => "cpu_compare_line",
        Op::ComparePattern => "cpu_pattern_line",
        Op::Dualcast => "cpu_dualcast_line",
        Op::Crc | Op::CopyCrc => "cpu_crc_line",
        _ => "cpu_copy_line",
    }];
    if w.nodes.contains(&Distance::Remote) {
        names.push("cpu_scale_remote");
    }
    if w.nodes.contains(&Distance::Cxl) {
        names.push("cpu_scale_cxl");
    }
    if w.cache == Cache::Llc && !w.hot {
        names.push("cpu_scale_llc");
    }
    names
}

/// Parameters of the device, its memory and the core that drives it.
fn device(w: &Workload, platform: &PlatformFile, shared: bool) -> Vec<&'static str> {
    let mut names = vec!["port_read", "port_write", "engine_issue"];
    let tenants = &w.tenants;
    if w.nodes.contains(&Distance::Remote) {
        names.extend(["remote_extra", "socket_link"]);
    }
    if w.nodes.contains(&Distance::Cxl) {
        names.extend(["cxl_extra", "cxl_read", "cxl_write"]);
    }
    match w.wait {
        WaitMode::Poll => {}
        WaitMode::Pause => names.push("pause"),
        WaitMode::Umwait => names.push("umwait_wake"),
    }
    if w.portal_rotates {
        names.push("portal_lines_in_flight");
    }
    if w.cache == Cache::Llc {
        names.push("read_spread_llc");
    }
    if w.batch > 1 {
        names.push("batch_dispatch");
    }
    if w.read_buffers.is_some() {
        names.push("read_buffer_bytes");
    }
    // The device that resolves faults by itself reports none.
    if w.what == What::Fault && !w.block_on_fault {
        names.push("fault_detect");
    }
    if tenants.core_node == Distance::Remote {
        names.push("submit_remote");
    }
    let one_queue = tenants
        .neighbour
        .is_some_and(|b| b.sharing == Sharing::Queue);
    let submitters = tenants.cores().div_ceil(tenants.devices.max(1)) + u16::from(one_queue);
    if submitters > 1 && (one_queue || w.shared.unwrap_or(shared)) {
        names.push("enqcmd_accept");
    }
    if tenants.devices > 1 {
        names.extend(["node_read", "node_write"]);
    }
    // Devices of the second socket reach the memory of the first.
    if tenants.devices > platform.topology.devices_per_socket {
        names.extend(["remote_extra", "socket_link"]);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[(&str, &str)], metric: &str) -> Vec<String> {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let point = names
            .iter()
            .fold(Point::default(), |p, (n, v)| match v.parse::<u64>() {
                Ok(number) => p.with(n, number),
                Err(_) => p.with(n, *v),
            });
        let w = Workload::from_point(&point).unwrap();
        let found = behind(&w, &platform, false, metric);
        found.into_iter().map(|p| p.name.clone()).collect()
    }

    #[test]
    fn guesses_follow_the_mechanism() {
        let of = |names| of(names, "throughput_gbps");
        assert!(of(&[]).is_empty());
        assert_eq!(
            of(&[("dst_node", "cxl")]),
            ["cxl_extra", "cxl_read", "cxl_write"]
        );
        assert_eq!(of(&[("wait", "umwait")]), ["umwait_wake"]);
        assert_eq!(of(&[("kind", "software"), ("op", "crc")]), ["cpu_crc_line"]);
        assert!(of(&[("kind", "software"), ("op", "memmove")]).is_empty());
        assert_eq!(
            of(&[("kind", "software"), ("dst_node", "remote")]),
            ["cpu_scale_remote"]
        );
    }

    #[test]
    fn what_a_figure_is_about_is_marked() {
        let of = |names| of(names, "throughput_gbps");
        assert_eq!(of(&[("read_buffers", "32")]), ["read_buffer_bytes"]);
        assert_eq!(of(&[("batch", "4")]), ["batch_dispatch"]);
        assert_eq!(
            of(&[("pages", "8"), ("layout", "scattered")]),
            ["batch_dispatch"]
        );
        assert_eq!(
            of(&[("kind", "fault"), ("fault", "touch-write")]),
            ["fault_detect"]
        );
        assert!(of(&[("kind", "fault"), ("fault", "block")]).is_empty());
        assert_eq!(of(&[("devices", "4")]), ["node_read", "node_write"]);
        assert_eq!(
            of(&[("submit", "enqcmd"), ("cores", "4")]),
            ["enqcmd_accept"]
        );
        assert!(of(&[("submit", "enqcmd"), ("cores", "1")]).is_empty());
        assert!(of(&[("submit", "movdir64b"), ("cores", "4")]).is_empty());
    }

    #[test]
    fn a_guess_that_stands_alone_is_one() {
        assert_eq!(of(&[], "prepare_ns"), ["prepare"]);
        assert!(of(&[], "wait_ns").is_empty());
        let even = [("kind", "break-even"), ("op", "compare")];
        assert_eq!(of(&even, "break_even_bytes"), ["prepare"]);
        assert_eq!(
            of(&even, "core_break_even_bytes"),
            ["prepare", "umwait_wake"]
        );
    }
}
