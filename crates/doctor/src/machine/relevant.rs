//! What of long or private files matters here: the rest is neither judged nor captured.

/// Parameters of the kernel's command line that bear on a data mover or on measuring it.
///
/// Others may hold passwords and host names; a capture is made to be mailed.
const PARAMETERS: &[&str] = &[
    "clearcpuid",
    "default_hugepagesz",
    "dma_debug",
    "hugepages",
    "hugepagesz",
    "idle",
    "idxd.",
    "initcall_blacklist",
    "intel_idle.",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "isolcpus",
    "modprobe.blacklist",
    "module_blacklist",
    "no5lvl",
    "noats",
    "nohz_full",
    "nomodule",
    "numa_balancing",
    "pci",
    "processor.max_cstate",
    "swiotlb",
    "vfio",
];

/// Words by which a kernel message is kept.
const WORDS: &[&str] = &[
    "linux version",
    "dmar",
    "iommu",
    "idxd",
    "enqcmd",
    "movdir64b",
    "pasid",
    "svm",
    "la57",
    "5-level",
    "hypervisor detected",
];

/// Kernel options that are kept, without `CONFIG_`.
const OPTIONS: &[&str] = &[
    "DMADEVICES",
    "DMATEST",
    "INTEL_IDXD",
    "INTEL_IDXD_BUS",
    "INTEL_IDXD_COMPAT",
    "INTEL_IDXD_PERFMON",
    "INTEL_IDXD_SVM",
    "INTEL_IOMMU",
    "INTEL_IOMMU_DEFAULT_ON",
    "INTEL_IOMMU_SCALABLE_MODE_DEFAULT_ON",
    "INTEL_IOMMU_SVM",
    "MODULES",
    "PCI_ATS",
    "PCI_PASID",
    "PCI_PRI",
    "X86_5LEVEL",
];

/// The parameters of a command line that matter; each that is left out leaves an ellipsis.
pub(super) fn command_line(text: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        // What follows belongs to init, not to the kernel.
        if word == "--" {
            break;
        }
        let name = word.split('=').next().unwrap_or(word);
        let known = PARAMETERS.iter().any(|parameter| {
            let prefix = parameter.ends_with('.') || *parameter == "vfio";
            name == *parameter
                || (prefix && name.starts_with(parameter))
                || (*parameter == "iommu" && name.starts_with("iommu."))
        });
        if known {
            kept.push(word);
        } else if kept.last() != Some(&"...") {
            kept.push("...");
        }
    }
    kept.join(" ") + "\n"
}

/// Whether a kernel message matters.
pub(super) fn message(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    // The command line is echoed there, with all that was left out above.
    !line.contains("command line:") && WORDS.iter().any(|word| line.contains(word))
}

/// The options of a kernel configuration that matter, set or not.
pub(super) fn options(text: &str) -> String {
    let mut kept = String::new();
    for line in text.lines() {
        let option = line.strip_prefix("# ").unwrap_or(line);
        let Some(option) = option.strip_prefix("CONFIG_") else {
            continue;
        };
        let name = option.split(['=', ' ']).next().unwrap_or(option);
        if OPTIONS.contains(&name) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The first processor of /proc/cpuinfo, and how many there are.
pub(super) fn processors(text: &str) -> String {
    let first = text.split("\n\n").next().unwrap_or_default();
    format!("{}\n", first.trim_end())
}

/// The lines of /proc/self/status that say what this process may do.
pub(super) fn status(text: &str) -> String {
    let names = ["Uid:", "Gid:", "Groups:", "CapEff:", "CapBnd:"];
    let kept = text
        .lines()
        .filter(|line| names.iter().any(|name| line.starts_with(name)));
    kept.map(|line| format!("{line}\n")).collect()
}

/// The lines of /proc/meminfo about huge pages.
pub(super) fn memory(text: &str) -> String {
    let kept = text.lines().filter(|line| line.starts_with("Huge"));
    kept.map(|line| format!("{line}\n")).collect()
}

/// The lines of a file of modprobe.d that name idxd.
pub(super) fn modprobe(text: &str) -> String {
    let kept = text.lines().filter(|line| line.contains("idxd"));
    kept.map(|line| format!("{line}\n")).collect()
}

/// The mounts of /proc/self/mounts under which devices and their attributes stand.
pub(super) fn mounts(text: &str) -> String {
    let kept = text.lines().filter(|line| {
        let point = line.split(' ').nth(1).unwrap_or_default();
        ["/", "/sys", "/dev", "/dev/dsa"].contains(&point) || point.starts_with("/sys/bus")
    });
    kept.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_parts_of_a_command_line_are_removed() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=1 intel_iommu=on,sm_on iommu=pt no5lvl \
                    idxd.sva=0 ip=10.0.0.1 rd.luks.key=secret iommufd.x=1 -- --token=secret\n";
        assert_eq!(
            command_line(line),
            "... intel_iommu=on,sm_on iommu=pt no5lvl idxd.sva=0 ...\n"
        );
    }

    #[test]
    fn log_lines_with_the_command_line_are_dropped() {
        assert!(message("[    0.1] DMAR: IOMMU enabled"));
        assert!(!message(
            "[    0.0] Command line: intel_iommu=on ip=10.0.0.1"
        ));
        assert!(!message("[    0.0] Kernel command line: intel_iommu=on"));
        assert!(!message("[    0.2] eth0: link up"));
    }

    #[test]
    fn kernel_options_are_kept_set_or_not_set() {
        let config =
            "CONFIG_INTEL_IDXD=m\n# CONFIG_X86_5LEVEL is not set\nCONFIG_LOCALVERSION=\"-me\"\n";
        assert_eq!(
            options(config),
            "CONFIG_INTEL_IDXD=m\n# CONFIG_X86_5LEVEL is not set\n"
        );
    }
}
