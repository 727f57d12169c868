//! The idxd module: present, loaded, held back.

use super::kernel::Kernel;
use super::look::Look;
use crate::machine::Reading;

pub(crate) const LOADED: &str = "/sys/module/idxd";
const RULES: &[&str] = &[
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

/// The idxd module.
pub(crate) struct Module {
    /// Loaded, or built into the kernel.
    pub(crate) loaded: Reading<bool>,
    /// Whether the module's file is there, and where it was looked for.
    pub(crate) installed: Reading<bool>,
    pub(crate) directory: String,
    /// Lines of modprobe's configuration that name idxd: file, line.
    pub(crate) rules: Vec<(String, String)>,
    /// The parameter `sva` of the loaded module.
    pub(crate) sva: Reading<String>,
}

impl Module {
    pub(super) fn of(look: Look<'_>, kernel: &Kernel) -> Self {
        let release = kernel.release.as_deref().unwrap_or_default();
        let directory = format!("/lib/modules/{release}/kernel/drivers/dma/idxd");
        let names = look.names(&directory);
        let installed = names.map(|names| names.iter().any(|name| name.starts_with("idxd.ko")));
        let mut rules = Vec::new();
        for dir in RULES {
            for name in look.names(dir).unwrap_or_default() {
                let path = format!("{dir}/{name}");
                if !name.ends_with(".conf") {
                    continue;
                }
                let text = look.lines(&path).unwrap_or_default();
                let lines = text
                    .lines()
                    .filter(|line| !line.trim_start().starts_with('#'));
                let named = lines.filter(|line| line.contains("idxd"));
                rules.extend(named.map(|line| (path.clone(), line.trim().to_owned())));
            }
        }
        // /lib is a link to /usr/lib on merged systems: the same rules are seen twice there.
        rules.sort();
        rules.dedup_by(|a, b| {
            a.1 == b.1 && a.0.trim_start_matches("/usr") == b.0.trim_start_matches("/usr")
        });
        Self {
            loaded: look.exists(LOADED),
            installed,
            directory,
            rules,
            sva: look.text(&format!("{LOADED}/parameters/sva")),
        }
    }

    /// The rule that keeps the module from being loaded by itself, if there is one.
    pub(crate) fn blacklisted(&self) -> Option<&(String, String)> {
        self.rules.iter().find(|(_, line)| {
            let mut words = line.split_whitespace();
            match (words.next(), words.next(), words.next()) {
                (Some("blacklist"), Some("idxd"), _) => true,
                (Some("install"), Some("idxd"), Some(with)) => {
                    with.ends_with("/true") || with.ends_with("/false")
                }
                _ => false,
            }
        })
    }

    /// The rule that turns off SVA, if there is one.
    pub(crate) fn sva_off(&self) -> Option<&(String, String)> {
        self.rules.iter().find(|(_, line)| {
            let mut words = line.split_whitespace();
            words.next() == Some("options")
                && words.next() == Some("idxd")
                && words.any(|word| ["sva=0", "sva=n", "sva=N"].contains(&word))
        })
    }
}
