//! Who a line is of, by how it begins.
//!
//! Many drivers fail in the same words. A line that names its driver and device is the kernel's,
//! and says whether it is of the driver that is meant.

/// Who a line is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// It does not say: a program, or a quotation.
    Unknown,
    /// The kernel, and no part of it that has nothing to do with a DSA.
    Kernel,
    /// Another driver, about its device: the remapping unit speaks in its name.
    Driver,
    /// Another part of the kernel.
    Module,
}

/// Parts of the kernel that speak of a DSA under their own name.
const OWN: [&str; 17] = [
    "acpi",
    "crypto",
    "dmaengine",
    "dmar",
    "dmar-ir",
    "dmatest",
    "dsa",
    "iaa_crypto",
    "idxd",
    "intel-iommu",
    "iommu",
    "pci",
    "pcieport",
    "tboot",
    "user",
    "vfio-pci",
    "vfio_pci",
];

/// Drivers that a PCI function of a DSA may have.
const FUNCTION_DRIVERS: [&str; 4] = ["idxd", "pci", "pcieport", "vfio-pci"];

/// Who a plain line is of.
pub(super) fn origin(line: &str) -> Origin {
    if line.contains("amd-vi: ") {
        return Origin::Module;
    }
    let (message, is_kernel) = message(line);
    if let Some((driver, device)) = head(message) {
        let own = match is_function(device) {
            true => Some(FUNCTION_DRIVERS.contains(&driver)),
            false => {
                let numbered = device.contains(|c: char| c.is_ascii_digit());
                (is_kernel && numbered).then(|| is_own(driver))
            }
        };
        match own {
            Some(true) => return Origin::Kernel,
            Some(false) => return Origin::Driver,
            None => {}
        }
    }
    let first = message.split(' ').next().unwrap_or_default();
    let module = first.strip_suffix(':').filter(|name| is_name(name));
    match module {
        _ if !is_kernel => Origin::Unknown,
        Some("idxd_pmd" | "dmadev" | "eal") => Origin::Unknown,
        Some(module) if !is_own(module) => Origin::Module,
        _ => Origin::Kernel,
    }
}

/// Whether a line begins with a driver and a PCI function: it continues no line before.
pub(crate) fn begins_with_function(line: &str) -> bool {
    head(line).is_some_and(|(_, device)| is_function(device))
}

/// The driver and the device of `idxd 0000:6a:01.0: ...`.
fn head(message: &str) -> Option<(&str, &str)> {
    let (driver, rest) = message.split_once(' ')?;
    let device = rest.split(' ').next()?.strip_suffix(':')?;
    is_name(driver).then_some((driver, device))
}

/// The message behind the time of the kernel's log, and whether there was one.
fn message(line: &str) -> (&str, bool) {
    let mut rest = line;
    let mut is_kernel = false;
    if let Some(after) = rest.strip_prefix("kernel: ") {
        (rest, is_kernel) = (after, true);
    } else if let Some((head, after)) = rest.split_once(" kernel: ")
        && head.matches(':').count() >= 2
    {
        (rest, is_kernel) = (after, true);
    }
    if rest.starts_with('<')
        && let Some((level, after)) = rest[1..].split_once('>')
        && level.bytes().all(|digit| digit.is_ascii_digit())
    {
        rest = after;
    }
    while let Some((stamp, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        if !is_stamp(stamp.trim()) {
            break;
        }
        (rest, is_kernel) = (after.trim_start(), true);
    }
    (rest, is_kernel)
}

/// Seconds, the time that dmesg -T writes, or a task's or processor's number.
fn is_stamp(text: &str) -> bool {
    let seconds = text.contains('.') && text.parse::<f64>().is_ok();
    let days = ["mon ", "tue ", "wed ", "thu ", "fri ", "sat ", "sun "];
    let task = text.strip_prefix(['t', 'c']).unwrap_or_default();
    let is_task = !task.is_empty() && task.bytes().all(|digit| digit.is_ascii_digit());
    seconds || is_task || days.iter().any(|day| text.starts_with(day))
}

fn is_name(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.chars().all(letter)
}

/// `0000:6a:01.0` or `6a:01.0`.
fn is_function(text: &str) -> bool {
    let digits = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    let (bus, function) = text.rsplit_once('.').unwrap_or_default();
    bus.contains(':') && function.len() == 1 && text.chars().all(digits)
}

fn is_own(name: &str) -> bool {
    let numbered = ["dmar", "dma", "dsa", "iax", "wq"].iter().any(|kind| {
        let number = name.strip_prefix(kind).unwrap_or_default();
        number.starts_with(|c: char| c.is_ascii_digit())
    });
    numbered || OWN.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_by_how_they_begin() {
        for (line, expected) in [
            ("idxd 0000:6a:01.0: x", Origin::Kernel),
            ("[ 5.1] user wq0.0: x", Origin::Kernel),
            ("[ 5.1] dmar: x", Origin::Kernel),
            ("[ 5.1] err[0]: 0x1", Origin::Kernel),
            ("[ 5.1] bios vendor: x; ver: 1", Origin::Kernel),
            ("nvme 0000:01:00.0: x", Origin::Driver),
            ("crypto 0000:01:00.0: x", Origin::Driver),
            ("<4>[ 5.1][ t123] nvme 01:00.0: x", Origin::Driver),
            (
                "[mon nov 20 10:00:01 2023] nvme 0000:01:00.0: x",
                Origin::Driver,
            ),
            (
                "nov 20 10:00:01 spr kernel: nvme 0000:01:00.0: x",
                Origin::Driver,
            ),
            ("[ 5.1] spi-nor spi0.1: x", Origin::Driver),
            ("[ 5.1] eth0: x", Origin::Module),
            // DPDK with --log-timestamp.
            ("[ 5.1] idxd_pmd: x", Origin::Unknown),
            ("amd-vi: x", Origin::Module),
            ("eth0: x", Origin::Unknown),
            ("failed to request irq 3.", Origin::Unknown),
            ("accfg_wq_set_mode: wq0.0: x", Origin::Unknown),
            (
                "[2022-05-12 10:11:12.1] idxd_kernel.c: 114:x",
                Origin::Unknown,
            ),
            ("at 10:00 the kernel: x", Origin::Unknown),
        ] {
            assert_eq!(origin(line), expected, "{line}");
        }
    }
}
