//! Digests of what the other commands print in modelled time.

use super::{Digest, Table};

/// Command lines, and rows and digest of the numbers in their CSV.
const EXPECTED: &[(&str, usize, u64)] = &[
    ("figures --check", 315, 0xaa27_7eac_1aa7_f245),
    (
        "figures --check --platform emr-2s",
        315,
        0x08ac_2794_04ab_7de3,
    ),
    (
        "figures --check --platform dsa2-2s",
        315,
        0xdb1c_7db6_de0f_9b3f,
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
        0xcc12_c07d_5caf_d7a8,
    ),
    (
        "advise --op crc --size 4k --depth 32 --placement llc --config 1e1w-d",
        5,
        0xd6f5_b2f4_3ba3_e50e,
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
        0xd1ab_790e_18c5_f195,
    ),
    (
        "bench --block_size=4k --queue_size=16 --benchmark_min_time=10x",
        2206,
        0x6ba2_d62e_0db6_eace,
    ),
    (
        "bench --block_size=64,1M --queue_size=16 --batch_size=0,8 --in_mem=ram --out_mem=ram --benchmark_filter=api:c/ --benchmark_min_time=10x",
        650,
        0x7226_5344_f406_4788,
    ),
    (
        "bench --block_size=16k --queue_size=32 --threads=4 --benchmark_filter=api:c/ --benchmark_min_time=10x --config 4e1w-d --platform emr-2s",
        288,
        0xa80b_bbe1_58f8_9ebf,
    ),
    (
        "micros -n128 -s4k -j -c -f -i1000 -k5 -w0 -zF,F -o3 --config 1e1w-d",
        1,
        0x9bfa_2cee_20d5_f910,
    ),
    (
        "micros -n512 -b4 -s4k -j -f -i1000 -k5 -w1 -zF,F -o3 --config 1e1w-s",
        1,
        0xf1df_9728_cd8c_5dbf,
    ),
    (
        "micros -jcf -K[0-3]@dsa0,0 -K[4-7]@dsa2,0 -n32 -o3 -zF,F",
        1,
        0x4e6c_4c31_5bcb_ca59,
    ),
    (
        "micros -n1 -q1 -s4k -i100 -x80 --config 1e1w-d",
        1,
        0x26cd_f08e_35d8_bbc8,
    ),
    (
        "micros -n16 -s64k -o9 -S0,1 -i100 --config 4e1w-d --platform emr-2s",
        1,
        0x2164_2011_2edf_972c,
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
