//! Each fast operation on buffers that are in the cache: bytes of source a second.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use dray_ops::{
    BlockSize, CrcOptions, DestinationDifFlags, DifFlags, Pattern, SourceDifFlags, Tags, UpdateTags,
};

const SIZES: [(usize, &str); 3] = [(4 << 10, "4 KiB"), (64 << 10, "64 KiB"), (1 << 20, "1 MiB")];

/// Bytes without a pattern, the same in every run.
fn content(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(step).collect()
}

fn each_size(
    c: &mut Criterion,
    name: &str,
    mut run: impl FnMut(&mut BenchmarkGroup<'_, WallTime>, &str, usize),
) {
    let mut group = c.benchmark_group(name);
    group
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .sample_size(20);
    for (bytes, label) in SIZES {
        group.throughput(Throughput::Bytes(bytes as u64));
        run(&mut group, label, bytes);
    }
    group.finish();
}

fn moves(c: &mut Criterion) {
    each_size(c, "copy", |group, label, bytes| {
        let (src, mut dst) = (content(bytes), vec![0; bytes]);
        group.bench_function(label, |b| {
            b.iter(|| dray_ops::copy(black_box(&src), black_box(&mut dst)));
        });
    });
    each_size(c, "dualcast", |group, label, bytes| {
        let (src, mut first, mut second) = (content(bytes), vec![0; bytes], vec![0; bytes]);
        group.bench_function(label, |b| {
            b.iter(|| dray_ops::dualcast(black_box(&src), &mut first, &mut second));
        });
    });
    let patterns = [
        ("fill with one byte", Pattern::Eight([7; 8])),
        ("fill with 8 bytes", Pattern::Eight(*b"ABCDEFGH")),
        ("fill with 16 bytes", Pattern::Sixteen(*b"0123456789abcdef")),
    ];
    for (name, pattern) in patterns {
        each_size(c, name, |group, label, bytes| {
            let mut dst = vec![0; bytes];
            group.bench_function(label, |b| {
                b.iter(|| dray_ops::fill(black_box(&mut dst), black_box(pattern)));
            });
        });
    }
}

fn compares(c: &mut Criterion) {
    each_size(c, "compare", |group, label, bytes| {
        let (src1, src2) = (content(bytes), content(bytes));
        group.bench_function(label, |b| {
            b.iter(|| dray_ops::compare(black_box(&src1), black_box(&src2)));
        });
    });
    each_size(c, "compare pattern", |group, label, bytes| {
        let src = vec![7; bytes];
        group.bench_function(label, |b| {
            b.iter(|| dray_ops::compare_pattern(black_box(&src), black_box([7; 8])));
        });
    });
}

fn crcs(c: &mut Criterion) {
    for (name, bypass_data_reflection) in [("", false), (", data reflection bypassed", true)] {
        let options = CrcOptions {
            bypass_data_reflection,
            ..CrcOptions::default()
        };
        each_size(c, &format!("crc32c{name}"), |group, label, bytes| {
            let src = content(bytes);
            group.bench_function(label, |b| {
                b.iter(|| dray_ops::crc32c(0, black_box(&src), options));
            });
        });
        each_size(c, &format!("crc64{name}"), |group, label, bytes| {
            let src = content(bytes);
            group.bench_function(label, |b| {
                b.iter(|| dray_ops::crc64(0, black_box(&src), options));
            });
        });
    }
    each_size(c, "crc32c, seeded", |group, label, bytes| {
        let src = content(bytes);
        group.bench_function(label, |b| {
            b.iter(|| dray_ops::crc32c(black_box(1), black_box(&src), CrcOptions::default()));
        });
    });
    each_size(c, "copy with crc32c", |group, label, bytes| {
        let (src, mut dst) = (content(bytes), vec![0; bytes]);
        group.bench_function(label, |b| {
            b.iter(|| dray_ops::copy_crc(0, black_box(&src), &mut dst, CrcOptions::default()));
        });
    });
}

fn deltas(c: &mut Criterion) {
    // One word in so many differs.
    for (name, distance) in [("none", usize::MAX), ("one in 512", 512), ("all", 1)] {
        let name = format!("create delta, words that differ: {name}");
        each_size(c, &name, |group, label, bytes| {
            let bytes = bytes.min(dray_ops::DELTA_MAX_BYTES);
            let label = if bytes == dray_ops::DELTA_MAX_BYTES {
                "512 KiB"
            } else {
                label
            };
            group.throughput(Throughput::Bytes(bytes as u64));
            let src1 = content(bytes);
            let mut src2 = src1.clone();
            for word in src2
                .chunks_exact_mut(8)
                .skip(distance / 2)
                .step_by(distance)
            {
                word[3] ^= 1;
            }
            let mut record = vec![0; bytes / 8 * 10];
            group.bench_function(label, |b| {
                b.iter(|| dray_ops::create_delta(black_box(&src1), black_box(&src2), &mut record));
            });
        });
    }
    let mut group = c.benchmark_group("apply delta");
    for entries in [400, 6400] {
        let dst_bytes = entries * 8;
        let mut record = vec![0; entries * 10];
        let (src1, mut dst) = (content(dst_bytes), vec![0; dst_bytes]);
        let _ = dray_ops::create_delta(&vec![0; dst_bytes], &src1, &mut record);
        group.throughput(Throughput::Bytes(record.len() as u64));
        group.bench_function(format!("{entries} entries"), |b| {
            b.iter(|| dray_ops::apply_delta(black_box(&record), black_box(&mut dst)));
        });
    }
}

fn difs(c: &mut Criterion) {
    let (source, destination) = (SourceDifFlags::new(), DestinationDifFlags::new());
    for size in [BlockSize::Bytes512, BlockSize::Bytes4096] {
        let flags = DifFlags::new().with_block_size(size);
        let block = size.bytes();
        let tags = Tags::default();
        let prepare = move |bytes: usize| {
            let data = content(bytes);
            let mut protected = vec![0; bytes / block * size.protected_bytes()];
            let _ = dray_ops::dif_insert(&data, &mut protected, flags, destination, tags);
            (data, protected)
        };
        each_size(c, &format!("dif check, {block}"), |group, label, bytes| {
            let (_, src) = prepare(bytes);
            group.bench_function(label, |b| {
                b.iter(|| dray_ops::dif_check(black_box(&src), flags, source, tags));
            });
        });
        each_size(c, &format!("dif insert, {block}"), |group, label, bytes| {
            let (src, mut dst) = prepare(bytes);
            group.bench_function(label, |b| {
                b.iter(|| {
                    dray_ops::dif_insert(black_box(&src), &mut dst, flags, destination, tags)
                });
            });
        });
        each_size(c, &format!("dif strip, {block}"), |group, label, bytes| {
            let (mut dst, src) = prepare(bytes);
            group.bench_function(label, |b| {
                b.iter(|| dray_ops::dif_strip(black_box(&src), &mut dst, flags, source, tags));
            });
        });
        each_size(c, &format!("dif update, {block}"), |group, label, bytes| {
            let (_, src) = prepare(bytes);
            let mut dst = src.clone();
            let tags = UpdateTags::default();
            group.bench_function(label, |b| {
                b.iter(|| {
                    let src = black_box(&src);
                    dray_ops::dif_update(src, &mut dst, flags, source, destination, tags)
                });
            });
        });
        each_size(
            c,
            &format!("dix generate, {block}"),
            |group, label, bytes| {
                let (src, _) = prepare(bytes);
                let mut dst = vec![0; bytes / block * 8];
                group.bench_function(label, |b| {
                    b.iter(|| {
                        dray_ops::dix_generate(black_box(&src), &mut dst, flags, destination, tags)
                    });
                });
            },
        );
    }
}

criterion_group!(benches, moves, compares, crcs, deltas, difs);
criterion_main!(benches);
