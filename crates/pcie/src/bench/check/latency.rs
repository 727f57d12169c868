//! Latencies of single transfers.

use super::{Bed, Check, CheckRow};
use crate::PcieError;
use crate::sim::{Memory, Operation};

impl Bed {
    pub(super) fn latencies(&self) -> Result<Vec<Check>, PcieError> {
        use Memory::{Main, OnChip};
        use Operation::{D2h, DeviceRead, DeviceWrite, H2d, MmioRead, MmioWrite};
        let total = |operation, host: &str, device: &str, bytes| {
            self.total(operation, host, device, bytes, Main)
        };
        let one_way = vec![
            CheckRow::new(
                "local one way",
                "ns",
                379.0,
                total(MmioWrite, "host1", "L", 64)?,
                1.0,
            ),
            CheckRow::new(
                "remote one way",
                "ns",
                868.6,
                total(MmioWrite, "host1", "A", 64)?,
                1.0,
            ),
        ];
        let mmio = vec![
            CheckRow::new(
                "local",
                "ns",
                766.0,
                total(MmioRead, "host1", "L", 64)?,
                2.0,
            ),
            CheckRow::new(
                "remote",
                "ns",
                1751.0,
                total(MmioRead, "host1", "A", 64)?,
                2.0,
            ),
            CheckRow::new(
                "local, other socket",
                "ns",
                833.0,
                total(MmioRead, "host1.1", "L", 64)?,
                2.0,
            ),
            CheckRow::new(
                "remote, other socket",
                "ns",
                1803.0,
                total(MmioRead, "host1.1", "A", 64)?,
                2.0,
            ),
        ];
        let mut sizes = Vec::new();
        for (memory, name, published) in [
            (
                Main,
                "HBM",
                [
                    (8, 762.0),
                    (16, 763.0),
                    (32, 768.0),
                    (64, 766.0),
                    (128, 1551.0),
                    (256, 3091.0),
                    (512, 6055.0),
                    (1024, 11961.0),
                ],
            ),
            (
                OnChip,
                "BRAM",
                [
                    (8, 627.0),
                    (16, 632.0),
                    (32, 640.0),
                    (64, 644.0),
                    (128, 1264.0),
                    (256, 2511.0),
                    (512, 4993.0),
                    (1024, 9992.0),
                ],
            ),
        ] {
            for (bytes, target) in published {
                let result = self.total(MmioRead, "host1", "L", bytes, memory)?;
                sizes.push(CheckRow::new(
                    format!("{name}, {bytes} B"),
                    "ns",
                    target,
                    result,
                    5.0,
                ));
            }
        }
        sizes.push(CheckRow::new(
            "remote HBM, 1024 B",
            "ns",
            27_800.0,
            total(MmioRead, "host1", "A", 1024)?,
            5.0,
        ));
        // From the start of the call, but with the command in the device already: without the
        // doorbell's way.
        let dma_write = |device: &str| -> Result<f64, PcieError> {
            let parts = self.latency((D2h, "host1", device, None, 4096), 64, Main)?;
            let doorbell = self.total(MmioWrite, "host1", device, 8, Main)?;
            let word = 84.0 / 14.21;
            Ok(parts[3] - doorbell - word)
        };
        let dma = vec![
            CheckRow::new("local", "ns", 946.0, dma_write("L")?, 2.0),
            CheckRow::new("remote", "ns", 1421.4, dma_write("A")?, 2.0),
        ];
        let (d2h, h2d) = (total(D2h, "host1", "L", 64)?, total(H2d, "host1", "L", 64)?);
        let (d2h_far, h2d_far) = (total(D2h, "host1", "A", 64)?, total(H2d, "host1", "A", 64)?);
        let small = vec![
            CheckRow::new("D2H local", "ns", 1300.0, d2h, 5.0),
            CheckRow::new("H2D local", "ns", 2000.0, h2d, 5.0),
            CheckRow::new(
                "D2H remote penalty",
                "%",
                69.3,
                (d2h_far / d2h - 1.0) * 100.0,
                0.0,
            )
            .absolute(8.0),
            CheckRow::new(
                "H2D remote penalty",
                "%",
                91.5,
                (h2d_far / h2d - 1.0) * 100.0,
                0.0,
            )
            .absolute(8.0),
        ];
        let between = |operation, peer| {
            self.latency(
                (operation, "host1", "A", Some(peer), 32 << 10),
                64 << 10,
                Main,
            )
        };
        let large = vec![
            CheckRow::new(
                "D2H local",
                "ns",
                6800.0,
                total(D2h, "host1", "L", 64 << 10)?,
                10.0,
            ),
            CheckRow::new(
                "D2H remote",
                "ns",
                8000.0,
                total(D2h, "host1", "A", 64 << 10)?,
                10.0,
            ),
            CheckRow::new(
                "H2D local",
                "ns",
                7500.0,
                total(H2d, "host1", "L", 64 << 10)?,
                10.0,
            ),
            CheckRow::new(
                "H2D remote",
                "ns",
                11_100.0,
                total(H2d, "host1", "A", 64 << 10)?,
                10.0,
            ),
            CheckRow::new(
                "device read within a chassis",
                "ns",
                10_000.0,
                between(DeviceRead, "B")?[3],
                10.0,
            ),
            CheckRow::new(
                "device write within a chassis",
                "ns",
                10_800.0,
                between(DeviceWrite, "B")?[3],
                10.0,
            ),
        ];
        Ok(vec![
            self.check(
                1,
                "one-way latency, assembled from its parts",
                "section 4.2",
                one_way,
            ),
            self.check(2, "MMIO read of 64 B", "section 4.2", mmio),
            self.check(3, "MMIO read by size", "table 4", sizes),
            self.check(4, "write of 64 B by the DMA engine", "section 4.2", dma),
            self.check(5, "transfers of 64 B", "section 4.2, figure 3", small),
            self.check(
                6,
                "transfers of 64 KiB",
                "section 4.2, figures 3 and 4",
                large,
            ),
        ])
    }
}
