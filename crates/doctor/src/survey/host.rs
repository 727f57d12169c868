//! What bears on speed and on libraries: memory nodes, huge pages, power, files.

use super::look::Look;
use crate::machine::Reading;

pub(crate) const NODES: &str = "/sys/devices/system/node";
pub(crate) const MEMORY: &str = "/proc/meminfo";
pub(crate) const EVENT_SOURCES: &str = "/sys/bus/event_source/devices";
pub(crate) const GOVERNOR: &str = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
pub(crate) const IDLE: &str = "/sys/devices/system/cpu/cpu0/cpuidle";
pub(crate) const LIBRARY: &str = "libaccel-config.so.1";

/// Where ld.so looks by default (ld.so(8)), with the directories of Debian's and of
/// Red Hat's 64-bit libraries.
const LOADER_DIRS: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];
/// Where `make install` may have left it.
const OTHER_DIRS: &[&str] = &["/usr/local/lib", "/usr/local/lib64", "/opt/lib"];
const LOADER_CONFIG: &str = "/etc/ld.so.conf.d";

/// The rest of the machine.
pub(crate) struct Host {
    /// Memory nodes that have processors.
    pub(crate) nodes_with_cpus: Vec<i64>,
    /// The line of /proc/meminfo that counts huge pages of the default size.
    pub(crate) huge_pages: Option<u64>,
    /// Huge pages of 1 GiB.
    pub(crate) gigantic_pages: Reading<i64>,
    /// Names of event sources, such as `dsa0`.
    pub(crate) event_sources: Reading<Vec<String>>,
    pub(crate) governor: Reading<String>,
    pub(crate) idle_states: Vec<IdleState>,
    /// Where the library is.
    pub(crate) library: Option<Library>,
    /// Vendor and product of the machine.
    pub(crate) product: String,
}

/// An idle state of the first processor.
pub(crate) struct IdleState {
    pub(crate) name: String,
    pub(crate) enabled: bool,
    pub(crate) latency_us: i64,
}

/// Where the library of accel-config is.
pub(crate) struct Library {
    pub(crate) path: String,
    /// Whether ld.so looks there.
    pub(crate) found_by_loader: bool,
}

impl Host {
    pub(super) fn of(look: Look<'_>) -> Self {
        let memory = look.lines(MEMORY).unwrap_or_default();
        let total = memory
            .lines()
            .find_map(|l| l.strip_prefix("HugePages_Total:"));
        let dmi = |name: &str| look.text(&format!("/sys/class/dmi/id/{name}"));
        let product = [dmi("sys_vendor"), dmi("product_name")];
        let product: Vec<String> = product.into_iter().flatten().collect();
        Self {
            nodes_with_cpus: nodes_with_cpus(look),
            huge_pages: total.and_then(|total| total.trim().parse().ok()),
            gigantic_pages: look
                .number("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"),
            event_sources: look.0.list(EVENT_SOURCES),
            governor: look.text(GOVERNOR),
            idle_states: idle_states(look),
            library: library(look),
            product: product.join(" "),
        }
    }
}

fn nodes_with_cpus(look: Look<'_>) -> Vec<i64> {
    let names = look.names(NODES).unwrap_or_default();
    let mut nodes: Vec<i64> = Vec::new();
    for name in names {
        let Some(node) = name.strip_prefix("node").and_then(|n| n.parse().ok()) else {
            continue;
        };
        // Memory without processors has an empty list.
        let cpus = look.text(&format!("{NODES}/{name}/cpulist"));
        if cpus.is_ok_and(|cpus| !cpus.is_empty()) {
            nodes.push(node);
        }
    }
    nodes.sort_unstable();
    nodes
}

fn idle_states(look: Look<'_>) -> Vec<IdleState> {
    let names = look.names(IDLE).unwrap_or_default();
    let states = names.iter().filter(|name| name.starts_with("state"));
    let states = states.filter_map(|name| {
        let path = format!("{IDLE}/{name}");
        Some(IdleState {
            name: look.text(&format!("{path}/name")).ok()?,
            enabled: look.number(&format!("{path}/disable")).ok()? == 0,
            latency_us: look.number(&format!("{path}/latency")).ok()?,
        })
    });
    states.collect()
}

fn library(look: Look<'_>) -> Option<Library> {
    let in_dir = |dir: &str| {
        let path = format!("{dir}/{LIBRARY}");
        (look.exists(&path) == Ok(true)).then_some(path)
    };
    if let Some(path) = LOADER_DIRS.iter().find_map(|dir| in_dir(dir)) {
        return Some(Library {
            path,
            found_by_loader: true,
        });
    }
    let mut configured = Vec::new();
    for name in look.names(LOADER_CONFIG).unwrap_or_default() {
        let text = look.lines(&format!("{LOADER_CONFIG}/{name}"));
        let text = text.unwrap_or_default();
        configured.extend(text.lines().map(|line| line.trim().to_owned()));
    }
    let configured = configured.iter().filter(|dir| dir.starts_with('/'));
    if let Some(path) = configured.clone().find_map(|dir| in_dir(dir)) {
        return Some(Library {
            path,
            found_by_loader: true,
        });
    }
    let path = OTHER_DIRS.iter().find_map(|dir| in_dir(dir))?;
    Some(Library {
        path,
        found_by_loader: false,
    })
}
