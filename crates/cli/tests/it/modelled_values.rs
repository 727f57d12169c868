//! Modelled values do not change by accident: digests of what `dray figures` gives.
//!
//! Those of break-even, faults, fig3, fig4, fig7, knee, priorities, read-buffers, waits
//! are still those of commit 8c7db89; the others changed with the mechanisms that CHANGELOG.md names.
//! Where a value is meant to change, say so in CHANGELOG.md and put the digest that the test prints
//! here. A digest is FNV-1a over the cells of a column, row by row, as text with a newline each.

use std::collections::BTreeMap;

use assert_cmd::Command;

/// Columns whose cells are digested, where a figure has them.
const COLUMNS: [&str; 6] = [
    "throughput_gbps",
    "latency_ns",
    "submit_ns",
    "rate_mops",
    "burst_ns",
    "list_ns",
];

/// Rows and digest by figure.
const EXPECTED: &[(&str, usize, u64)] = &[
    ("break-even", 224, 0xed19_ea6c_1f5e_8925),
    ("channels", 8, 0x92db_b295_2ddb_495a),
    ("devices", 32, 0x8215_4e6a_b35f_88cd),
    ("enqcmd", 16, 0x684e_067c_023f_dbd9),
    ("faults", 20, 0xc478_08c3_dfe6_f165),
    ("fig2", 168, 0x1dff_ab01_bc40_79d7),
    ("fig3", 56, 0x60f1_283f_d440_01ed),
    ("fig4", 56, 0x76b0_5c5c_a985_9731),
    ("fig5", 21, 0x7ab0_1273_fde7_61c6),
    ("fig6a", 56, 0xef13_0e58_a3e5_8f0d),
    ("fig6b", 56, 0x771f_e81b_deaa_31c7),
    ("fig7", 64, 0x0aa1_f2a2_941d_f743),
    ("in-kernel", 80, 0x20ec_ae77_9d45_c090),
    ("knee", 104, 0x1fac_e013_6895_c9b1),
    ("migrate-call", 36, 0x3681_8094_0cf8_b0cc),
    ("migration", 64, 0x7a47_56fa_8d71_c29a),
    ("migration-volume", 132, 0xcc39_d37e_e3ef_0465),
    ("misalignment", 30, 0xe25e_af41_3580_6a47),
    ("orders", 30, 0xd1b6_4748_f46d_2816),
    ("overtaking", 12, 0xea3d_35d1_1565_bf68),
    ("pages", 150, 0x165c_c998_dd3b_96c1),
    ("priorities", 5, 0x23da_e74f_2991_a0a4),
    ("read-buffers", 28, 0xf55b_8f5f_e8d0_8bcd),
    ("split", 35, 0x7ad2_b12d_0477_775e),
    ("tenants", 9, 0xbac2_b571_fea5_9478),
    ("tier-copies", 360, 0xc21f_d81c_d9e8_caa9),
    ("tiering", 90, 0x1d36_44f0_48e9_2c45),
    ("vhost", 12, 0xaa64_a2ac_a10a_859c),
    ("vhost-batch", 21, 0x300e_ac06_ff2e_7a16),
    ("vhost-cores", 24, 0x7de7_e4fa_7904_9387),
    ("vhost-threshold", 30, 0x7f37_30bd_823b_cbe3),
    ("waits", 21, 0x9862_a91c_db4c_be5a),
];

#[test]
fn the_values_of_every_figure_are_those_of_the_reference() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = Command::new(assert_cmd::cargo::cargo_bin("dray"))
        .args(["figures", "--format", "csv", "--out"])
        .arg(directory.path())
        .output()
        .expect("dray runs");
    let csv = String::from_utf8(output.stdout).expect("text");
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let figure = header.iter().position(|name| *name == "figure");
    let figure = figure.expect("a column of figures");
    let columns = COLUMNS.map(|name| {
        let found = header.iter().position(|column| *column == name);
        found.unwrap_or_else(|| panic!("no column {name}: {header:?}"))
    });
    let mut digests: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), header.len(), "no cell has a comma: {line}");
        let (rows, digest) = digests
            .entry(cells[figure])
            .or_insert((0, 0xcbf2_9ce4_8422_2325));
        *rows += 1;
        for column in columns {
            for byte in cells[column].bytes().chain([b'\n']) {
                *digest = (*digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
    }
    let found: Vec<(&str, usize, u64)> = digests
        .into_iter()
        .map(|(figure, (rows, digest))| (figure, rows, digest))
        .collect();
    for (figure, rows, digest) in &found {
        println!("    (\"{figure}\", {rows}, {digest:#018x}),");
    }
    assert_eq!(found, EXPECTED);
}
