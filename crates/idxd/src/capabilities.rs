//! What a device can do: what the profile says, and what a known device has where it says nothing.

use dray_device::Capabilities;
use dray_spec::GenCap;

use crate::DeviceProfile;
use crate::finding::{Finding, Findings};

/// The known device of a version: 0x100 as a published `accel-config list` prints it, 0x200 a preset.
/// `None` for versions whose rules are not known.
pub fn known(version: u32) -> Option<Capabilities> {
    match KNOWN_VERSIONS.contains(&version.into()) {
        false => None,
        true if version >= 0x200 => Some(Capabilities::version_2()),
        true => Some(Capabilities::sapphire_rapids()),
    }
}

/// The largest version whose rules are known; 3.0 has other fields in GRPCFG and WQCFG.
const KNOWN_VERSIONS: std::ops::RangeInclusive<u64> = 0x100..=0x2ff;

/// What the device can do. A field that cannot be is reported, and the known device's used.
pub(crate) fn resolve(device: &DeviceProfile, list: &mut Vec<Finding>) -> Capabilities {
    let mut findings = Findings::at(&device.dev, list);
    let version = device.version.unwrap_or(0x100);
    let base = match version {
        0x200.. => Capabilities::version_2(),
        _ => Capabilities::sapphire_rapids(),
    };
    if !KNOWN_VERSIONS.contains(&version) {
        findings.add(
            "version",
            format!("{version:#x}"),
            "the rules of versions 1 and 2 are known, 0x100 to 0x2ff",
            "\"version\":\"0x100\" or \"version\":\"0x200\"",
        );
    }
    let max_groups = in_range(
        &mut findings,
        "max_groups",
        device.max_groups,
        base.max_groups,
        255,
    );
    let max_work_queues = in_range(
        &mut findings,
        "max_work_queues",
        device.max_work_queues,
        base.max_work_queues,
        255,
    );
    let max_engines = in_range(
        &mut findings,
        "max_engines",
        device.max_engines,
        base.max_engines,
        255,
    );
    let work_queue_size = in_range(
        &mut findings,
        "work_queue_size",
        device.work_queue_size,
        base.work_queue_size,
        u16::MAX,
    );
    let max_read_buffers = in_range(
        &mut findings,
        "max_read_buffers",
        device.max_read_buffers,
        base.max_read_buffers,
        255,
    );
    let said = GenCap::from_bits(device.gen_cap.unwrap_or(base.gen_cap));
    let given = device.gen_cap.is_some();
    let batch = Shift {
        field: "max_batch_size",
        value: device.max_batch_size,
        gen_cap: said.max_batch_shift(),
        bits: "24:21",
        most: 15,
        given,
    }
    .resolve(&mut findings);
    let transfer = Shift {
        field: "max_transfer_size",
        value: device.max_transfer_size,
        gen_cap: said.max_transfer_shift(),
        bits: "20:16",
        most: 31,
        given,
    }
    .resolve(&mut findings);
    Capabilities {
        version: u32::try_from(version).unwrap_or(base.version),
        gen_cap: said
            .with_max_batch_shift(batch)
            .with_max_transfer_shift(transfer)
            .into_bits(),
        op_cap: device.op_cap.map_or(base.op_cap, |bits| bits.0),
        id_cap: base.id_cap,
        max_groups,
        max_work_queues,
        max_engines,
        work_queue_size,
        max_read_buffers,
        max_batch_size: 1 << batch,
        max_transfer_size: 1 << transfer,
    }
}

fn in_range(
    findings: &mut Findings<'_>,
    field: &str,
    value: Option<i64>,
    known: u16,
    most: u16,
) -> u16 {
    let Some(value) = value else {
        return known;
    };
    match u16::try_from(value) {
        Ok(value) if (1..=most).contains(&value) => value,
        _ => {
            findings.add(
                field,
                value,
                format!("the capability register holds 1 to {most}"),
                format!("\"{field}\":{known}, or leave it out"),
            );
            known
        }
    }
}

/// A limit that GENCAP holds as a logarithm (spec 9.2.2).
struct Shift {
    field: &'static str,
    value: Option<i64>,
    gen_cap: u8,
    bits: &'static str,
    most: u8,
    given: bool,
}

impl Shift {
    fn resolve(&self, findings: &mut Findings<'_>) -> u8 {
        let Some(value) = self.value else {
            return self.gen_cap;
        };
        let field = self.field;
        let said = 1_u64 << self.gen_cap;
        let shift = u64::try_from(value)
            .ok()
            .filter(|value| value.is_power_of_two() && value.ilog2() <= u32::from(self.most))
            .map(|value| value.trailing_zeros() as u8);
        let Some(shift) = shift else {
            findings.add(
                field,
                value,
                format!(
                    "a device's limit is a power of two, 1 to {}",
                    1_u64 << self.most
                ),
                format!("\"{field}\":{said}"),
            );
            return self.gen_cap;
        };
        if self.given && shift != self.gen_cap {
            findings.add(
                field,
                value,
                format!("gen_cap says {said} in its bits {}", self.bits),
                format!("\"{field}\":{said}, or leave gen_cap out"),
            );
            return self.gen_cap;
        }
        shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_of(device: &DeviceProfile) -> Vec<String> {
        let mut list = Vec::new();
        resolve(device, &mut list);
        list.into_iter().map(|finding| finding.field).collect()
    }

    #[test]
    fn nothing_said_is_version_1() {
        let mut list = Vec::new();
        let resolved = resolve(&DeviceProfile::default(), &mut list);
        assert_eq!(resolved, Capabilities::sapphire_rapids());
        assert_eq!(list, []);
    }

    #[test]
    fn version_2_has_twice_the_entries() {
        let device = DeviceProfile {
            version: Some(0x200),
            ..DeviceProfile::default()
        };
        let resolved = resolve(&device, &mut Vec::new());
        assert_eq!(resolved, Capabilities::version_2());
        assert_eq!(resolved.work_queue_size, 256);
        assert!(GenCap::from_bits(resolved.gen_cap).crc64());
        assert!(dray_spec::OpCap(resolved.op_cap).supports(0x0a));
    }

    #[test]
    fn versions_1_and_2_are_known() {
        let version_1 = Some(Capabilities::sapphire_rapids());
        let version_2 = Some(Capabilities::version_2());
        for (version, expected) in [
            (0, None),
            (0xff, None),
            (0x100, version_1.clone()),
            (0x1ff, version_1),
            (0x200, version_2.clone()),
            (0x2ff, version_2),
            (0x300, None),
            (u32::MAX, None),
        ] {
            assert_eq!(known(version), expected, "{version:#x}");
        }
    }

    #[test]
    fn limits_are_powers_of_two_that_gencap_holds() {
        for (batch, expected) in [
            (i64::MIN, None),
            (-1, None),
            (0, None),
            (1, Some(1)),
            (2, Some(2)),
            (3, None),
            (1 << 15, Some(1 << 15)),
            (1 << 16, None),
            (i64::MAX, None),
        ] {
            let device = DeviceProfile {
                max_batch_size: Some(batch),
                ..DeviceProfile::default()
            };
            let mut list = Vec::new();
            let resolved = resolve(&device, &mut list);
            let known = Capabilities::sapphire_rapids().max_batch_size;
            assert_eq!(resolved.max_batch_size, expected.unwrap_or(known));
            assert_eq!(list.is_empty(), expected.is_some(), "{batch}");
        }
        for (transfer, expected) in [(1 << 31, Some(1_u64 << 31)), (1 << 32, None)] {
            let device = DeviceProfile {
                max_transfer_size: Some(transfer),
                ..DeviceProfile::default()
            };
            let mut list = Vec::new();
            let resolved = resolve(&device, &mut list);
            let known = Capabilities::sapphire_rapids().max_transfer_size;
            assert_eq!(resolved.max_transfer_size, expected.unwrap_or(known));
            assert_eq!(list.is_empty(), expected.is_some(), "{transfer}");
        }
    }

    #[test]
    fn a_limit_without_gen_cap_changes_gen_cap() {
        let device = DeviceProfile {
            max_batch_size: Some(64),
            ..DeviceProfile::default()
        };
        let resolved = resolve(&device, &mut Vec::new());
        assert_eq!(resolved.max_batch_size, 64);
        assert_eq!(GenCap::from_bits(resolved.gen_cap).max_batch(), 64);
    }

    #[test]
    fn limits_must_agree_with_gen_cap() {
        let mut device = DeviceProfile {
            gen_cap: Some(Capabilities::sapphire_rapids().gen_cap),
            max_batch_size: Some(1024),
            max_transfer_size: Some(1 << 31),
            ..DeviceProfile::default()
        };
        assert_eq!(findings_of(&device), [""; 0]);
        device.max_batch_size = Some(512);
        device.max_transfer_size = Some(3);
        assert_eq!(
            findings_of(&device),
            ["max_batch_size", "max_transfer_size"]
        );
    }

    #[test]
    fn counts_fit_the_registers() {
        for (value, expected) in [(0, 1), (1, 0), (255, 0), (256, 1), (-1, 1), (i64::MAX, 1)] {
            let device = DeviceProfile {
                max_groups: Some(value),
                ..DeviceProfile::default()
            };
            assert_eq!(findings_of(&device).len(), expected, "{value}");
        }
        for (version, expected) in [(0xff, 1), (0x100, 0), (0x201, 0), (0x300, 1), (u64::MAX, 1)] {
            let device = DeviceProfile {
                version: Some(version),
                ..DeviceProfile::default()
            };
            assert_eq!(findings_of(&device).len(), expected, "{version:#x}");
        }
    }
}
