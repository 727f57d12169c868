//! Modelled values do not change by accident: digests of what `dray figures` gave at commit 8c7db89.
//!
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
    ("devices", 32, 0xcb47_5c2f_f642_475f),
    ("enqcmd", 16, 0xc75b_cc42_da6a_6391),
    ("faults", 20, 0xc478_08c3_dfe6_f165),
    ("fig2", 168, 0x2cb9_55b9_d52a_d81e),
    ("fig3", 56, 0x60f1_283f_d440_01ed),
    ("fig4", 56, 0x76b0_5c5c_a985_9731),
    ("fig5", 21, 0xbda8_1acb_64b0_85b6),
    ("fig6a", 56, 0x1647_01da_6c28_3803),
    ("fig6b", 56, 0xd42d_7ccb_51fe_f0e5),
    ("fig7", 64, 0x0aa1_f2a2_941d_f743),
    ("knee", 104, 0x1fac_e013_6895_c9b1),
    ("misalignment", 30, 0x5791_123a_2109_c7b1),
    ("orders", 30, 0xf57a_616e_83ad_8bf2),
    ("overtaking", 12, 0xe123_21cf_910e_caf0),
    ("pages", 150, 0x7aa2_4b2d_74aa_e622),
    ("priorities", 5, 0x23da_e74f_2991_a0a4),
    ("read-buffers", 28, 0xf55b_8f5f_e8d0_8bcd),
    ("split", 35, 0x28eb_018d_c82c_f287),
    ("tenants", 9, 0x0824_8581_842f_c08b),
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
