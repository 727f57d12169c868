//! Which results rest on parameters that no source gives.

use dray_platform::{Cache, Distance, PlatformFile, WaitMode};

use crate::workload::{Op, What, Workload};

/// The guessed parameters that a result rests on: those of the mechanisms that its workload singles
/// out, not those which shift all results alike.
pub(crate) fn behind(w: &Workload, platform: &PlatformFile) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    let software = w.what == What::Software;
    let has = |distance| w.nodes.contains(&distance);
    if software {
        names.push(match w.op {
            Op::Noop => "cpu_call",
            Op::Memmove => "cpu_copy_line",
            Op::Fill => "cpu_fill_line",
            Op::NtFill => "cpu_nt_fill_line",
            Op::Compare => "cpu_compare_line",
            Op::ComparePattern => "cpu_pattern_line",
            Op::Dualcast => "cpu_dualcast_line",
            Op::Crc | Op::CopyCrc => "cpu_crc_line",
        });
        if has(Distance::Remote) {
            names.push("cpu_scale_remote");
        }
        if has(Distance::Cxl) {
            names.push("cpu_scale_cxl");
        }
        if w.cache == Cache::Llc && !w.hot {
            names.push("cpu_scale_llc");
        }
    } else {
        names.extend(["port_read", "port_write", "engine_issue"]);
        if has(Distance::Remote) {
            names.extend(["remote_extra", "socket_link"]);
        }
        if has(Distance::Cxl) {
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
        if w.company.core_node == Distance::Remote {
            names.push("submit_remote");
        }
        // Devices of the second socket reach the memory of the first.
        if w.company.devices > platform.topology.devices_per_socket {
            names.extend(["remote_extra", "socket_link"]);
        }
    }
    if w.what == What::BreakEven {
        let software = Workload {
            what: What::Software,
            ..*w
        };
        return behind(
            &Workload {
                what: What::Offload,
                ..*w
            },
            platform,
        )
        .into_iter()
        .chain(behind(&software, platform))
        .collect();
    }
    let guessed = platform.list().iter().filter(|p| p.guess);
    let guessed = guessed.filter(|p| names.contains(&p.name.as_str()));
    guessed.map(|p| p.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;

    use super::*;

    #[test]
    fn guesses_follow_the_mechanism() {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let of = |names: &[(&str, &str)]| {
            let point = names
                .iter()
                .fold(Point::default(), |p, (n, v)| p.with(n, *v));
            behind(&Workload::from_point(&point).unwrap(), &platform)
        };
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
}
