//! Modelled values do not change by accident: digests of what `dray figures` and the other commands print.
//!
//! Those of break-even, faults, fig3, fig4, fig7, knee, priorities, read-buffers, waits
//! are still those of commit 8c7db89; the others changed with the mechanisms that CHANGELOG.md names.
//! Where a value is meant to change, say so in CHANGELOG.md and put the digest that the test prints
//! here. A digest is FNV-1a over cells, row by row, as text with a newline each.

mod commands;

use std::collections::BTreeMap;

use assert_cmd::Command;

/// What a command prints as CSV.
struct Table {
    head: csv::StringRecord,
    rows: Vec<csv::StringRecord>,
}

impl Table {
    /// Runs `dray` on a machine without a DSA.
    fn of(arguments: &str) -> Table {
        let directory = tempfile::tempdir().expect("a directory");
        let output = Command::new(assert_cmd::cargo::cargo_bin("dray"))
            .current_dir(directory.path())
            .env("DRAY_SYSFS_PATH", directory.path())
            .args(arguments.split_whitespace())
            .args(["--format", "csv"])
            .output()
            .expect("dray runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {error}");
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .flexible(true)
            .from_reader(output.stdout.as_slice());
        let head = reader.headers().expect("a head").clone();
        let rows = reader.records().collect::<Result<_, _>>().expect("CSV");
        Table { head, rows }
    }

    fn column(&self, name: &str) -> usize {
        let found = self.head.iter().position(|column| column == name);
        found.unwrap_or_else(|| panic!("no column {name}: {:?}", self.head))
    }
}

/// FNV-1a.
#[derive(Clone, Copy)]
struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn add(&mut self, cell: &str) {
        for byte in cell.bytes().chain([b'\n']) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

/// Columns of the first digest of a figure, where it has them.
const COLUMNS: [&str; 6] = [
    "throughput_gbps",
    "latency_ns",
    "submit_ns",
    "rate_mops",
    "burst_ns",
    "list_ns",
];

/// Rows by figure, the digest of [`COLUMNS`], and that of the numbers in all other columns.
const EXPECTED: &[(&str, usize, u64, u64)] = &[
    (
        "break-even",
        224,
        0xed19_ea6c_1f5e_8925,
        0xea35_86d8_a215_a343,
    ),
    ("channels", 8, 0x92db_b295_2ddb_495a, 0x0585_fc26_e172_2ac5),
    ("devices", 32, 0x8215_4e6a_b35f_88cd, 0x386a_965c_86dc_40bf),
    ("enqcmd", 16, 0x684e_067c_023f_dbd9, 0xf942_e73d_79a1_49e2),
    ("faults", 20, 0xc478_08c3_dfe6_f165, 0x53f0_5dec_eaad_9313),
    ("fig2", 168, 0x6302_3c6e_a910_01e4, 0x87c0_0892_7096_ddcc),
    ("fig3", 56, 0x60f1_283f_d440_01ed, 0xed6b_157b_0f84_39cf),
    ("fig4", 56, 0x76b0_5c5c_a985_9731, 0xdfd7_6469_2714_8996),
    ("fig5", 21, 0x82c8_ee5d_c398_3acf, 0xf506_b806_b04e_c1cc),
    ("fig6a", 56, 0xa30e_c3f7_3075_245d, 0xf138_8f6b_421d_6eb3),
    ("fig6b", 56, 0xd18c_21fd_ee99_b361, 0x8703_ffd5_21fb_dd3f),
    ("fig7", 64, 0x0aa1_f2a2_941d_f743, 0x3435_56ac_bcee_8784),
    (
        "in-kernel",
        80,
        0x20ec_ae77_9d45_c090,
        0xbe8a_764b_20d8_6317,
    ),
    ("knee", 104, 0x1fac_e013_6895_c9b1, 0x7da3_974c_cfe6_b8e9),
    (
        "migrate-call",
        36,
        0x0eb1_4e5f_47ed_f46f,
        0xeed3_31a8_1fb5_489e,
    ),
    (
        "migration",
        64,
        0x7a47_56fa_8d71_c29a,
        0xa100_ddb3_fd55_9bfa,
    ),
    (
        "migration-volume",
        132,
        0xcc39_d37e_e3ef_0465,
        0x572a_c6f0_4575_070d,
    ),
    (
        "misalignment",
        30,
        0x4fda_e86c_9065_c3be,
        0xdd6a_7b67_bab3_3189,
    ),
    ("orders", 30, 0xe6de_3fbf_0934_2b91, 0x7fcd_0e78_0f3f_dc42),
    (
        "overtaking",
        12,
        0x81ba_2b17_7a20_2dd3,
        0xa283_94ce_039e_13b8,
    ),
    ("pages", 150, 0x5965_1a63_2f74_8126, 0xa7fb_f86a_2851_3150),
    (
        "priorities",
        5,
        0x23da_e74f_2991_a0a4,
        0xc823_91d8_a04a_eb53,
    ),
    (
        "read-buffers",
        28,
        0xf55b_8f5f_e8d0_8bcd,
        0x3a31_2b0a_d59e_b45e,
    ),
    ("split", 35, 0x48e8_b77f_4a4b_03be, 0x28e4_aa3d_25ee_f0eb),
    ("tenants", 9, 0x0685_7868_bb25_e55b, 0xd707_4c69_8d6b_7e4c),
    (
        "tier-copies",
        360,
        0xc21f_d81c_d9e8_caa9,
        0xd5d4_67b9_6d37_1766,
    ),
    ("tiering", 90, 0x1d36_44f0_48e9_2c45, 0xd206_d5c7_2477_8420),
    ("vhost", 12, 0xaa64_a2ac_a10a_859c, 0x03f2_941c_802f_4e60),
    (
        "vhost-batch",
        21,
        0x300e_ac06_ff2e_7a16,
        0x6316_9a51_24e4_c5ab,
    ),
    (
        "vhost-cores",
        24,
        0x8b98_2057_e030_5a57,
        0x4c73_d181_696e_fd50,
    ),
    (
        "vhost-threshold",
        30,
        0x7f37_30bd_823b_cbe3,
        0x497f_915e_0d3a_a03b,
    ),
    ("waits", 21, 0x9862_a91c_db4c_be5a, 0xac4f_04d8_d485_23ff),
];

#[test]
fn values_of_every_figure_equal_the_reference() {
    let table = Table::of("figures --out report");
    let figure = table.column("figure");
    let columns = COLUMNS.map(|name| table.column(name));
    let mut figures: BTreeMap<&str, (usize, Digest, Digest)> = BTreeMap::new();
    for row in &table.rows {
        let (rows, digest, others) = figures.entry(&row[figure]).or_default();
        *rows += 1;
        for column in columns {
            digest.add(&row[column]);
        }
        for (column, cell) in row.iter().enumerate() {
            if !columns.contains(&column) && cell.parse::<f64>().is_ok() {
                others.add(cell);
            }
        }
    }
    let found: Vec<(&str, usize, u64, u64)> = figures
        .into_iter()
        .map(|(figure, (rows, digest, others))| (figure, rows, digest.0, others.0))
        .collect();
    for (figure, rows, digest, others) in &found {
        println!("    (\"{figure}\", {rows}, {digest:#018x}, {others:#018x}),");
    }
    assert_eq!(found, EXPECTED);
}
