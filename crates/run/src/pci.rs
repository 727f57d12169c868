//! What the kernel shows of a PCI function, for those who look there for a DSA.

/// Bytes of the configuration space of a PCI Express function.
const CONFIG_BYTES: usize = 4096;
/// Bytes of BAR0 (registers) and of BAR2 (portals): four pages for each of eight work queues.
const BARS: [(usize, u64); 2] = [(0, 64 << 10), (2, 128 << 10)];
/// Where the BARs of the first function lie, above what a machine has of memory.
const WINDOW: u64 = 0x2000_0000_0000;
/// Memory, 64 bits wide, prefetchable (`IORESOURCE_*`).
const RESOURCE_FLAGS: u64 = 0x0014_220c;
/// Resources of a function: six BARs, a ROM, six of SR-IOV.
const RESOURCES: usize = 13;

const VENDOR: u16 = 0x8086;
const DEVICE: u16 = 0x0b25;
/// Base class 08 (system peripheral), sub-class 80 (other).
const CLASS: u32 = 0x0008_8000;

/// The bus of a function's address: `0000:6a` of `0000:6a:01.0`.
pub(crate) fn bus(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(bus, _)| bus)
}

/// A function's place in the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Function {
    /// How many functions were found before it.
    pub(crate) number: u64,
    pub(crate) numa_node: i32,
}

/// Names and permission bits of its files.
pub(crate) const FILES: [(&str, u32); 10] = [
    ("vendor", 0o444),
    ("device", 0o444),
    ("class", 0o444),
    ("subsystem_vendor", 0o444),
    ("subsystem_device", 0o444),
    ("enable", 0o644),
    ("irq", 0o444),
    ("numa_node", 0o644),
    ("resource", 0o444),
    ("config", 0o644),
];

impl Function {
    /// What a file holds; `None` if there is no such file.
    pub(crate) fn read(self, name: &str) -> Option<Vec<u8>> {
        let text = match name {
            "vendor" | "subsystem_vendor" => format!("{VENDOR:#06x}\n"),
            "device" => format!("{DEVICE:#06x}\n"),
            "class" => format!("{CLASS:#08x}\n"),
            "subsystem_device" => "0x0000\n".to_owned(),
            "enable" => "1\n".to_owned(),
            "irq" => "0\n".to_owned(),
            "numa_node" => format!("{}\n", self.numa_node),
            "resource" => self.resources(),
            "config" => return Some(self.config()),
            _ => return None,
        };
        Some(text.into_bytes())
    }

    /// Address of the BAR that is the pair of registers from `index` on.
    fn bar(self, index: usize) -> u64 {
        WINDOW + self.number * 0x100_0000 + index as u64 * 0x10_0000
    }

    fn resources(self) -> String {
        (0..RESOURCES)
            .map(|index| {
                let bar = BARS.iter().find(|(at, _)| *at == index);
                let [start, end, flags] = bar.map_or([0; 3], |(_, bytes)| {
                    let start = self.bar(index);
                    [start, start + bytes - 1, RESOURCE_FLAGS]
                });
                format!("{start:#018x} {end:#018x} {flags:#018x}\n")
            })
            .collect()
    }

    /// The header; no capability follows it.
    fn config(self) -> Vec<u8> {
        let mut bytes = vec![0; CONFIG_BYTES];
        let mut put = |at: usize, value: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + value.len()) {
                place.copy_from_slice(value);
            }
        };
        put(0x00, &VENDOR.to_le_bytes());
        put(0x02, &DEVICE.to_le_bytes());
        // Memory space and bus master are on.
        put(0x04, &6_u16.to_le_bytes());
        put(0x08, &(CLASS << 8).to_le_bytes());
        for (index, _) in BARS {
            // 64 bits wide, prefetchable.
            let register = self.bar(index) | 0xc;
            put(0x10 + 4 * index, &register.to_le_bytes());
        }
        put(0x2c, &VENDOR.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pci_files_can_be_read_and_agree_with_configuration_space() {
        let function = Function {
            number: 1,
            numa_node: 1,
        };
        for (name, _) in FILES {
            assert!(function.read(name).is_some_and(|bytes| !bytes.is_empty()));
        }
        let resource = String::from_utf8(function.read("resource").unwrap()).unwrap();
        assert_eq!(resource.lines().count(), RESOURCES);
        let first = resource.lines().next().unwrap();
        assert_eq!(
            first,
            "0x0000200001000000 0x000020000100ffff 0x000000000014220c"
        );
        let config = function.read("config").unwrap();
        assert_eq!(config.len(), CONFIG_BYTES);
        assert_eq!(config[..4], [0x86, 0x80, 0x25, 0x0b]);
        assert_eq!(config[0x10..0x18], 0x0000_2000_0100_000c_u64.to_le_bytes());
        assert_eq!(config[9..12], [0x00, 0x80, 0x08]);
        assert_eq!(function.read("rom"), None);
    }
}
