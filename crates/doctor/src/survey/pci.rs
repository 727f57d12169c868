//! PCI functions that are data movers.

use super::kernel::Version;
use super::look::Look;
use crate::machine::Reading;

pub(crate) const DEVICES: &str = "/sys/bus/pci/devices";
const INTEL: u64 = 0x8086;

/// DSA functions that the idxd driver knows (drivers/dma/idxd/init.c, `idxd_pci_tbl`).
pub(crate) const DSA_IDS: &[(u64, &str)] = &[
    (
        0x0b25,
        "Sapphire, Emerald and Granite Rapids, Sierra Forest",
    ),
    (0x11fb, "Granite Rapids-D"),
    (0x1212, "Diamond Rapids"),
];
/// IAA functions that it knows.
const IAA_IDS: [u64; 4] = [0x0cfe, 0x1216, 0xb02d, 0xfd2d];

/// Whether a line of lspci is of a function that the driver knows: it has vendor and device.
pub(crate) fn is_listed(line: &str) -> bool {
    line.match_indices("8086:").any(|(start, vendor)| {
        let digits = line.get(start + vendor.len()..start + vendor.len() + 4);
        let id = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        id.is_some_and(|id| DSA_IDS.iter().any(|known| known.0 == id) || IAA_IDS.contains(&id))
    })
}

/// On these a process that maps the portal can break the host (INTEL-SA-01084).
pub(crate) const UNSAFE_ID: u64 = 0x0b25;

const ATS: u16 = 0x0f;
const PRI: u16 = 0x13;
const PASID: u16 = 0x1b;

/// The DSA functions, in the order of their addresses.
pub(crate) struct Pci {
    pub(crate) functions: Reading<Vec<Function>>,
}

/// One DSA function.
pub(crate) struct Function {
    /// Domain, bus, device and function, as in `0000:6a:01.0`.
    pub(crate) address: String,
    pub(crate) id: u64,
    /// The driver that is bound to it; none if it is missing.
    pub(crate) driver: Reading<String>,
    /// The DMA remapping unit that serves it.
    pub(crate) iommu: Reading<String>,
    config: Reading<Vec<u8>>,
}

impl Pci {
    pub(super) fn of(look: Look<'_>) -> Self {
        let functions = look.0.list(DEVICES).map(|names| {
            let functions = names
                .into_iter()
                .filter_map(|name| Function::of(look, name));
            functions.collect()
        });
        Self { functions }
    }

    /// The functions, none if they cannot be read.
    pub(crate) fn functions(&self) -> &[Function] {
        self.functions.as_deref().unwrap_or_default()
    }
}

impl Function {
    fn of(look: Look<'_>, address: String) -> Option<Self> {
        if !is_address(&address) {
            return None;
        }
        let path = format!("{DEVICES}/{address}");
        if look.hex(&format!("{path}/vendor")) != Ok(INTEL) {
            return None;
        }
        let id = look.hex(&format!("{path}/device")).ok()?;
        DSA_IDS.iter().find(|&&(known, _)| known == id)?;
        Some(Self {
            id,
            driver: look.link_name(&format!("{path}/driver")),
            iommu: look.link_name(&format!("{path}/iommu")),
            config: look.0.read(&format!("{path}/config")),
            address,
        })
    }

    pub(crate) fn path(&self) -> String {
        format!("{DEVICES}/{}", self.address)
    }

    /// Which of the capabilities that SVA needs under a kernel the function lacks.
    ///
    /// None if they cannot be read: without CAP_SYS_ADMIN the kernel shows 64 bytes only.
    pub(crate) fn lacks(&self, kernel: Option<Version>) -> Option<Vec<&'static str>> {
        let config = self.config.as_ref().ok().filter(|c| c.len() >= 4096)?;
        let found = extended_capabilities(config);
        // I/O page faults were turned on together with SVA before 6.16.
        let with_requests = kernel.is_none_or(|kernel| kernel < (6, 16));
        let needed = [(PASID, "PASID"), (ATS, "ATS"), (PRI, "PRI")];
        let lacking = needed
            .iter()
            .filter(|(id, _)| !found.contains(id) && (*id != PRI || with_requests));
        Some(lacking.map(|&(_, name)| name).collect())
    }
}

/// Whether a name is a domain, bus, device and function, and nothing that means something to a shell.
pub(super) fn is_address(name: &str) -> bool {
    name.len() <= 16
        && name.contains(':')
        && name
            .chars()
            .all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.')
}

/// The list of extended capabilities, from offset 0x100 on: identifier in bits 15:0, next offset
/// in bits 31:20 (PCI Express base specification, 7.6).
fn extended_capabilities(config: &[u8]) -> Vec<u16> {
    let mut found = Vec::new();
    let mut offset = 0x100;
    // As many as fit: a list that goes round ends here.
    for _ in 0..(4096 - 0x100) / 8 {
        let Some(&[a, b, c, d]) = config.get(offset..offset + 4) else {
            break;
        };
        let header = u32::from_le_bytes([a, b, c, d]);
        if header == 0 || header == u32::MAX {
            break;
        }
        found.push(u16::from_le_bytes([a, b]));
        offset = (header >> 20) as usize & !3;
        if offset < 0x100 {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_walked_and_a_loop_ends() {
        let mut config = vec![0; 4096];
        config[0x100..0x104].copy_from_slice(&(0x1500_0000_u32 | 1 << 16 | 0x0f).to_le_bytes());
        config[0x150..0x154].copy_from_slice(&(0x1000_0000_u32 | 1 << 16 | 0x1b).to_le_bytes());
        let found = extended_capabilities(&config);
        assert_eq!(found[..3], [ATS, PASID, ATS]);
        assert_eq!(found.len(), 480);
        assert!(extended_capabilities(&[0; 64]).is_empty());
        assert!(extended_capabilities(&[0xff; 4096]).is_empty());
    }
}
