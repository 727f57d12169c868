//! The processor, as the kernel shows it and as CPUID does.

use super::look::Look;
use crate::machine::{CPUID_7, Reading};

pub(crate) const CPUINFO: &str = "/proc/cpuinfo";

/// The processor.
pub(crate) struct Cpu {
    /// What /proc/cpuinfo holds of the first one.
    info: Reading<String>,
    /// ECX of CPUID leaf 7, what the hardware (or the hypervisor) says.
    leaf_7_ecx: Reading<u32>,
}

/// Instructions that bear on data movers: the kernel's name, the bit of CPUID.7.0:ECX.
pub(crate) const MOVDIR64B: (&str, u32) = ("movdir64b", 28);
pub(crate) const ENQCMD: (&str, u32) = ("enqcmd", 29);
pub(crate) const WAITPKG: (&str, u32) = ("waitpkg", 5);

/// Processors with a DSA: family, model, name (arch/x86/include/asm/intel-family.h for the
/// numbers; Intel's Data Streaming Accelerator user guide and the idxd driver's PCI table for
/// which have one).
pub(crate) const WITH_DSA: &[(u32, u32, &str)] = &[
    (6, 0x8F, "Sapphire Rapids (4th generation Xeon)"),
    (6, 0xCF, "Emerald Rapids (5th generation Xeon)"),
    (6, 0xAD, "Granite Rapids (Xeon 6, performance cores)"),
    (6, 0xAE, "Granite Rapids-D (Xeon 6 SoC)"),
    (6, 0xAF, "Sierra Forest (Xeon 6, efficient cores)"),
    (6, 0xDD, "Clearwater Forest (Xeon 6+, efficient cores)"),
    (19, 0x01, "Diamond Rapids"),
];

impl Cpu {
    pub(super) fn of(look: Look<'_>) -> Self {
        let ecx = |text: &str| u32::from_str_radix(text.split(' ').nth(2)?, 16).ok();
        Self {
            info: look.lines(CPUINFO),
            leaf_7_ecx: look
                .text(CPUID_7)
                .and_then(|text| ecx(&text).ok_or(crate::machine::Unreadable::Garbage(text))),
        }
    }

    /// The value of a line of /proc/cpuinfo.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let info = self.info.as_deref().ok()?;
        info.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then_some(value.trim())
        })
    }

    /// Why /proc/cpuinfo cannot be read, if so.
    pub(crate) fn unreadable(&self) -> Option<String> {
        self.info.as_ref().err().map(ToString::to_string)
    }

    pub(crate) fn has(&self, flag: &str) -> bool {
        let flags = self.field("flags").unwrap_or_default();
        flags.split(' ').any(|known| known == flag)
    }

    /// Whether CPUID shows an instruction, if it was asked.
    pub(crate) fn cpuid_has(&self, (_, bit): (&str, u32)) -> Option<bool> {
        let ecx = self.leaf_7_ecx.as_ref().ok()?;
        Some(ecx & (1 << bit) != 0)
    }

    /// Family and model.
    pub(crate) fn model(&self) -> Option<(u32, u32)> {
        let family = self.field("cpu family")?.parse().ok()?;
        Some((family, self.field("model")?.parse().ok()?))
    }

    /// The name of a generation that has a DSA, if it is one.
    pub(crate) fn with_dsa(&self) -> Option<&'static str> {
        let (family, model) = self.model()?;
        let found = WITH_DSA
            .iter()
            .find(|&&(f, m, _)| (f, m) == (family, model));
        found.map(|&(_, _, name)| name)
    }

    /// What it calls itself, with family and model.
    pub(crate) fn name(&self) -> String {
        let name = self.field("model name").unwrap_or("unknown processor");
        match self.model() {
            Some((family, model)) => format!("{name} (family {family}, model {model:#x})"),
            None => name.to_owned(),
        }
    }
}
