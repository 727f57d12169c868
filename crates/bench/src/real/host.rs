//! This machine, and what makes its numbers doubtful.

use std::collections::BTreeMap;
use std::time::SystemTime;

use dray_experiment::Provenance;
use dray_workload::{CAN_PLACE, available_cpus, caches, cpu_list, cpuinfo, memory_nodes, text};
use serde_json::json;

use crate::{BenchError, Context};

/// CPUs of a memory node that this process may use.
///
/// # Errors
/// A node that is not there, or has no such CPU.
pub(super) fn on_node(node: u16) -> Result<Vec<u16>, BenchError> {
    let list = text(&format!("/sys/devices/system/node/node{node}/cpulist"));
    let there = list.and_then(|list| cpu_list(&list).ok());
    let mut cpus = there.unwrap_or_default();
    let mine = available_cpus();
    cpus.retain(|cpu| mine.contains(cpu));
    match cpus.is_empty() {
        true => Err(BenchError::Value {
            flag: format!("--node={node}"),
            reason: "this machine has no such memory node, or it has no CPU to use".to_owned(),
            hint: format!("memory nodes are {}; --node=-1 takes all", memory_nodes()),
        }),
        false => Ok(cpus),
    }
}

/// Head of a result that a program measured, with a warning for each thing that makes it doubtful.
pub fn context(executable: &str) -> Context {
    let cpus = available_cpus();
    let first = cpus.first().copied().unwrap_or(0);
    let root = format!("/sys/devices/system/cpu/cpu{first}/cpufreq");
    let governor = text(&format!("{root}/scaling_governor"));
    let uname = rustix::system::uname();
    let load: Vec<f64> = text("/proc/loadavg")
        .map(|line| {
            line.split(' ')
                .take(3)
                .filter_map(|n| n.parse().ok())
                .collect()
        })
        .unwrap_or_default();
    let turbo = turbo();
    let flags = cpuinfo("flags").unwrap_or_default();
    let guest = flags.split(' ').any(|flag| flag == "hypervisor");
    let huge = text("/sys/kernel/mm/transparent_hugepage/enabled");
    let mut warnings = Vec::new();
    match governor.as_deref() {
        Some("performance") => {}
        Some(other) => warnings.push(format!(
            "the frequency governor is {other}: cpupower frequency-set -g performance"
        )),
        None if guest => {}
        None => warnings.push("the frequency governor cannot be read".to_owned()),
    }
    if turbo == Some(true) {
        warnings.push("turbo is on: the frequency depends on what other cores do".to_owned());
    }
    if guest {
        warnings.push(
            "this is a virtual machine: its host's frequency, caches and neighbours are not known"
                .to_owned(),
        );
    }
    if load.first().is_some_and(|load| *load > 0.5) {
        warnings.push(format!(
            "other programs are running: the load is {}",
            load[0]
        ));
    }
    if huge.as_deref().is_some_and(|text| text.contains("[never]")) {
        warnings.push("there are no huge pages: translations are part of the numbers".to_owned());
    }
    if !CAN_PLACE {
        warnings.push("this processor's caches cannot be controlled from a program".to_owned());
    }
    let mut extra = BTreeMap::from([
        ("load_avg".to_owned(), json!(load)),
        (
            "dray_kernel".to_owned(),
            json!(uname.release().to_string_lossy()),
        ),
        ("dray_cpus".to_owned(), json!(cpus)),
        ("dray_virtual_machine".to_owned(), json!(guest)),
    ]);
    let list: Vec<_> = caches(first)
        .into_iter()
        .map(|c| json!({"type": c.kind, "level": c.level, "size": c.size, "num_sharing": c.shared_by}))
        .collect();
    extra.insert("caches".to_owned(), json!(list));
    for (key, value) in [
        (
            "dray_microcode",
            cpuinfo("microcode").or(cpuinfo("stepping")),
        ),
        ("dray_governor", governor.clone()),
        ("dray_huge_pages", huge),
    ] {
        extra.insert(key.to_owned(), json!(value));
    }
    extra.insert("dray_turbo".to_owned(), json!(turbo));
    Context {
        date: Some(humantime::format_rfc3339_seconds(SystemTime::now()).to_string()),
        host_name: Some(uname.nodename().to_string_lossy().into_owned()),
        executable: executable.to_owned(),
        num_cpus: cpus.len() as u32,
        mhz_per_cpu: cpuinfo("cpu MHz").and_then(|mhz| Some(mhz.parse::<f64>().ok()? as u32)),
        cpu_scaling_enabled: Some(governor.is_some_and(|g| g != "performance")),
        library_build_type: if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        }
        .to_owned(),
        dray_time: Provenance::Measured,
        dray_version: env!("CARGO_PKG_VERSION").to_owned(),
        dray_platform: cpuinfo("model name").unwrap_or_else(|| "unknown processor".to_owned()),
        dray_profile: None,
        dray_warnings: warnings,
        extra,
    }
}

fn turbo() -> Option<bool> {
    let off = text("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|t| t == "0");
    off.or(text("/sys/devices/system/cpu/cpufreq/boost").map(|t| t == "1"))
}
