//! Pages that are copied together, as page migration copies them.

use dray_platform::PAGE_BYTES;

use crate::workload::{What, Workload};

/// How the pages of a list lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// One range: a huge page, or a folio of some order.
    Contiguous,
    /// Each page for itself.
    Scattered,
    /// Half of the bytes in one range, the rest in single pages.
    Mixed,
}

/// A list of 4 KiB pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct List {
    /// Number of pages.
    pub pages: u32,
    /// How they lie.
    pub layout: Layout,
    /// Channels that take a share each, in turn on the devices; `None`: one for each device.
    pub channels: Option<u16>,
}

impl List {
    /// The workload that copies the list once with each batch, spread over its devices. Software
    /// copies page after page, or the range as a whole.
    pub(crate) fn fill(self, w: Workload) -> Workload {
        let page = PAGE_BYTES as u32;
        // A device without a page has nothing to do.
        let mut tenants = w.tenants;
        if let Some(channels) = self.channels {
            let channels = channels.min(self.pages.max(1) as u16);
            tenants.devices = tenants.devices.min(channels);
            tenants.cores = Some(channels);
        }
        tenants.devices = tenants.devices.min(self.pages.max(1) as u16);
        let w = Workload { tenants, ..w };
        let batch = self.members(&w);
        let size = match self.layout {
            Layout::Contiguous => self.share(&w) * page,
            Layout::Scattered | Layout::Mixed => page,
        };
        Workload {
            size,
            batch: match w.what {
                What::Software => 1,
                _ => batch,
            },
            list: Some(self),
            ..w
        }
    }

    /// Bytes of the largest operation, which is the first of a list.
    pub(crate) fn largest(self, w: &Workload) -> u32 {
        match self.layout {
            Layout::Mixed => self.range(w),
            _ => w.size,
        }
    }

    /// Operations of one list on one device.
    pub(crate) fn members(self, w: &Workload) -> u32 {
        let share = self.share(w);
        match self.layout {
            Layout::Contiguous => 1,
            Layout::Scattered => share,
            Layout::Mixed if share < 2 => 1,
            Layout::Mixed => 1 + share - share / 2,
        }
    }

    fn range(self, w: &Workload) -> u32 {
        (self.share(w) / 2).max(1) * PAGE_BYTES as u32
    }

    fn share(self, w: &Workload) -> u32 {
        match w.what {
            What::Software => self.pages,
            _ => {
                let parts = match self.channels {
                    Some(_) => w.tenants.cores(),
                    None => w.tenants.devices,
                };
                self.pages.div_ceil(u32::from(parts))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dray_experiment::Point;

    use super::*;

    fn workload(pages: u64, layout: &str, devices: u64, kind: &str) -> Workload {
        let point = Point::default()
            .with("pages", pages)
            .with("layout", layout)
            .with("devices", devices)
            .with("kind", kind);
        Workload::from_point(&point).unwrap()
    }

    #[test]
    fn every_layout_copies_the_same_bytes() {
        for layout in ["contiguous", "scattered", "mixed"] {
            for kind in ["offload", "software"] {
                for (pages, devices) in [(1, 1), (1, 8), (2, 1), (4, 8), (64, 1), (64, 4), (512, 8)]
                {
                    let w = workload(pages, layout, devices, kind);
                    let list = w.list.unwrap();
                    let members = u64::from(list.members(&w));
                    let first = u64::from(list.largest(&w));
                    let bytes = first + (members - 1) * u64::from(w.size);
                    let parts = if kind == "software" {
                        1
                    } else {
                        devices.min(pages)
                    };
                    assert_eq!(bytes * parts, pages * PAGE_BYTES, "{layout} {kind} {pages}");
                }
            }
        }
    }

    #[test]
    fn one_batch_is_one_list() {
        assert_eq!(workload(64, "scattered", 2, "offload").batch, 32);
        assert_eq!(workload(64, "mixed", 2, "offload").batch, 17);
        assert_eq!(workload(64, "contiguous", 2, "offload").batch, 1);
        assert_eq!(workload(64, "scattered", 2, "software").batch, 1);
    }
}
