//! How fast the links of a tree are: generation, lanes, and what their devices can use.

use super::{PciLink, PciNode, Writer};
use crate::rate::GIB;
use crate::{LinkEntry, LinkRate};

/// What RDMA leaves of a port's bits: of packets of 4 KiB all but 66 bytes of headers.
const WIRE_PAYLOAD: f64 = 4096.0 / (4096.0 + 66.0);
/// Lanes of a drive: U.2, U.3, M.2 and EDSFF connectors have so many, but for few.
const NVME_LANES: u32 = 4;

impl Writer {
    /// Has the link of a NIC carry no more than its ports.
    fn wire(&mut self, node: &PciNode, entry: &mut LinkEntry) {
        let gib_s = node.wire_mbit_s * 1e6 / 8.0 * WIRE_PAYLOAD / GIB;
        let mps = entry.mps.unwrap_or(256);
        let (generation, width) = (entry.generation.unwrap_or(3), entry.width.unwrap_or(16));
        let link = LinkRate::of(generation, width, mps).payload_gib_s(mps);
        let gib_s = (gib_s * 1000.0).round() / 1000.0;
        if gib_s > 0.0 && gib_s < link {
            entry.down_gib_s = Some(gib_s);
            entry.up_gib_s = Some(gib_s);
            self.wires += 1;
        }
    }

    /// Generation of a link: what both ends can do, if it only runs slower because the device is idle.
    fn generation(&mut self, node: &PciNode, port: Option<&PciLink>) -> Option<u32> {
        let own = &node.link;
        let now = own.generation.or(port.and_then(|link| link.generation));
        let ends = [
            own.max_generation,
            port.and_then(|link| link.max_generation),
        ];
        let most = ends.into_iter().flatten().min();
        let (Some(now), Some(most)) = (now, most) else {
            return now.or(most);
        };
        if now >= most {
            return Some(now);
        }
        let name = &node.address;
        if node.slows_down() {
            let note = format!(
                "{name} runs at Gen{now} now, as idle devices do; its link can do Gen{most}, which the file has"
            );
            self.idle.push(note);
            return Some(most);
        }
        let note =
            format!("{name} runs at Gen{now}, which the file has; its link can do Gen{most}");
        self.slow.push(note);
        Some(now)
    }

    /// Lanes of a link: those in use, with a note where both ends have more.
    fn width(&mut self, node: &PciNode, port: Option<&PciLink>) -> Option<u32> {
        let own = &node.link;
        let now = own.width.or(port.and_then(|link| link.width));
        let ends = [own.max_width, port.and_then(|link| link.max_width)];
        let most = ends.into_iter().flatten().min();
        let (Some(now), Some(most)) = (now, most) else {
            // A link that is down has none.
            return now.or(most);
        };
        if now < most {
            let name = &node.address;
            self.slow.push(format!(
                "{name} runs with x{now}, which the file has; its link can do x{most}"
            ));
        }
        Some(now)
    }

    /// Speed of a link of which hwloc has the product of lanes and raw rate only: the lowest generation that gives it with the
    /// lanes that such a device has. What gives none is a rate; payload is less of it, as of Gen3 x16.
    fn product(&mut self, node: &PciNode, gb_s: f64, entry: &mut LinkEntry) {
        let most = match node.word() {
            Some("nvme") => NVME_LANES,
            _ => 16,
        };
        let lanes = [1, 2, 4, 8, 16].into_iter().filter(|lanes| *lanes <= most);
        let pairs =
            (1..=7).flat_map(|generation| lanes.clone().map(move |lanes| (generation, lanes)));
        // hwloc writes single precision; Gen1 x16 and Gen3 x4 are 1.5 % apart.
        let same = |&(generation, lanes): &(u32, u32)| {
            (LinkRate::raw_gb_s(generation, lanes) / gb_s - 1.0).abs() < 0.005
        };
        let mut pairs = pairs.filter(same);
        if let Some((generation, lanes)) = pairs.next() {
            entry.generation = Some(generation);
            entry.width = Some(lanes);
            self.products += 1;
        } else {
            let payload = LinkRate::of(3, 16, 256).payload_gib_s(256) / LinkRate::raw_gb_s(3, 16);
            let gib_s = (gb_s * payload * 1000.0).round() / 1000.0;
            entry.down_gib_s = Some(gib_s);
            entry.up_gib_s = Some(gib_s);
        }
        if node.slows_down() && entry.generation.is_some_and(|generation| generation <= 2) {
            self.idle.push(format!(
                "{} runs at {gb_s:.1} GB/s now, perhaps as it is idle: hwloc does not say what its link can do",
                node.address
            ));
        }
    }

    pub(super) fn link(&mut self, upper: &str, node: &PciNode, port: Option<&PciLink>) {
        let own = &node.link;
        let lower = &node.address;
        let from_port = |get: fn(&PciLink) -> Option<u32>| port.and_then(get);
        let generation = self.generation(node, port);
        let width = self.width(node, port);
        let mps = match (own.mps, from_port(|link| link.mps)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let mut entry = LinkEntry {
            ends: vec![upper.to_owned(), lower.clone()],
            generation,
            width,
            mps,
            mrrs: own.mrrs,
            ..LinkEntry::default()
        };
        if let (None, None, Some(gb_s)) = (generation, width, own.gb_s) {
            self.product(node, gb_s, &mut entry);
        }
        self.wire(node, &mut entry);
        for (key, missing) in [
            ("generation", entry.generation.is_none()),
            ("width", entry.width.is_none()),
            ("mps", mps.is_none()),
            ("mrrs", own.mrrs.is_none()),
        ] {
            if missing {
                entry.unread.push(key.to_owned());
                *self.unread.entry(key.to_owned()).or_default() += 1;
            }
        }
        if entry.width.is_none() && entry.down_gib_s.is_none() && node.word() == Some("nvme") {
            entry.width = Some(NVME_LANES);
        }
        self.file.links.push(entry);
    }
}
