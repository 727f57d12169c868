//! Digests of what the other commands print in modelled time.

use super::{Digest, Table};

/// Command lines, and rows and digest of the numbers in their CSV.
const EXPECTED: &[(&str, usize, u64)] = &[
    ("figures --check", 315, 0xe59d_17a9_d251_543d),
    (
        "figures --check --platform emr-2s",
        315,
        0x08fa_f663_3654_5a9b,
    ),
    (
        "figures --check --platform dsa2-2s",
        315,
        0x8d2a_43ce_be3c_7f95,
    ),
    ("figures --protocol seed", 277, 0xee77_c283_70e5_14d2),
    (
        "advise --size 16k --depth 1 --config 1e1w-d",
        5,
        0x058e_a7fe_b948_69ba,
    ),
    (
        "advise --size 1k --batch 16 --depth 8 --config 4e1w-s",
        5,
        0x692d_98ad_a70d_0110,
    ),
    (
        "advise --op crc --size 4k --depth 32 --placement llc --config 1e1w-d",
        5,
        0xa5bf_5e9b_f6c4_5343,
    ),
    (
        "advise --op compare --size 64k --placement l1 --depth 1 --config 1e1w-d",
        5,
        0x1602_8cc5_e254_075a,
    ),
    (
        "advise --op fill --size 4k --access random --dst-node remote --depth 1 --config 1e1w-d",
        5,
        0xa1f1_3d7b_63c1_23a7,
    ),
    (
        "advise --op dualcast --size 4k --depth 1 --config 1e1w-d",
        5,
        0xe695_03eb_3186_17e7,
    ),
    (
        "advise --size 4k --core kernel --src-node cxl --platform dsa2-2s --depth 1 --config 1e1w-d",
        5,
        0xa347_fffb_ae29_400d,
    ),
    (
        "bench --block_size=4k --queue_size=16 --benchmark_min_time=10x",
        2206,
        0xce03_abff_b0c3_1f60,
    ),
    (
        "bench --block_size=64,1M --queue_size=16 --batch_size=0,8 --in_mem=ram --out_mem=ram --benchmark_filter=api:c/ --benchmark_min_time=10x",
        650,
        0xdc51_ecc9_41ab_88bc,
    ),
    (
        "bench --block_size=16k --queue_size=32 --threads=4 --benchmark_filter=api:c/ --benchmark_min_time=10x --config 4e1w-d --platform emr-2s",
        288,
        0xd4a2_99eb_1cc9_69d5,
    ),
    (
        "micros -n128 -s4k -j -c -f -i1000 -k5 -w0 -zF,F -o3 --config 1e1w-d",
        1,
        0xa616_6949_e603_abbf,
    ),
    (
        "micros -n512 -b4 -s4k -j -f -i1000 -k5 -w1 -zF,F -o3 --config 1e1w-s",
        1,
        0x57cf_8b5f_3e6c_edd9,
    ),
    (
        "micros -jcf -K[0-3]@dsa0,0 -K[4-7]@dsa2,0 -n32 -o3 -zF,F",
        1,
        0xa921_3f97_7541_36e3,
    ),
    (
        "micros -n1 -q1 -s4k -i100 -x80 --config 1e1w-d",
        1,
        0x2d38_17e5_60c9_5e28,
    ),
    (
        "micros -n16 -s64k -o9 -S0,1 -i100 --config 4e1w-d --platform emr-2s",
        1,
        0x88bc_4017_417a_c9bc,
    ),
    (
        "micros -i1000 -w0 -x8000000 --config 1e1w-d",
        1,
        0x892c_edae_b86f_c48f,
    ),
    (
        "micros -i1000 -w1 -x40000000 --config 1e1w-s",
        1,
        0xa8bd_69c8_0f3e_9339,
    ),
    (
        "micros -m -s4k -n16 -i4 --platform spr-2s -S0,1 -zF,F -o3",
        1,
        0xad28_23d1_e26e_a3e6,
    ),
    ("fabric bench --check", 212, 0x2d49_3eec_0fd1_7c1d),
    (
        "fabric bench --only mmio,arrival",
        35,
        0xdc6c_7eab_9461_5e3d,
    ),
    ("fabric collective all-reduce", 5, 0x14c1_b226_4d92_ad32),
    ("fabric collective all-to-all", 5, 0xe37e_cbe6_c7e7_d89a),
    (
        "fabric collective parameter-server",
        5,
        0xc2e6_5e68_07db_e46e,
    ),
];

#[test]
fn numbers_of_every_command_equal_the_reference() {
    let found: Vec<(&str, usize, u64)> = EXPECTED
        .iter()
        .map(|(line, ..)| {
            let table = Table::of(line);
            let mut digest = Digest::default();
            for cell in table.rows.iter().flatten() {
                if cell.parse::<f64>().is_ok() {
                    digest.add(cell);
                }
            }
            (*line, table.rows.len(), digest.0)
        })
        .collect();
    for (line, rows, digest) in &found {
        println!("    (\"{line}\", {rows}, {digest:#018x}),");
    }
    assert_eq!(found, EXPECTED);
}
