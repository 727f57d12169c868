//! A model with secret parameters.

use dray_experiment::Point;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::*;

/// Standard deviation of the measurements.
const NOISE: f64 = 0.005;

fn workloads() -> Vec<Workload> {
    let plain = Point::default().with("op", "memmove");
    let mut points = Vec::new();
    for mode in ["sync", "async"] {
        for size in [256_u64, 1024, 4096, 16 << 10, 64 << 10, 1 << 20] {
            points.push(plain.with("mode", mode).with("size", size));
        }
    }
    for op in ["fill", "compare", "crc", "dualcast", "noop"] {
        for size in [256_u64, 16 << 10] {
            points.push(plain.with("op", op).with("mode", "sync").with("size", size));
        }
    }
    for (batch, size) in [(8_u64, 256_u64), (32, 256), (32, 4096)] {
        points.push(
            plain
                .with("mode", "async")
                .with("batch", batch)
                .with("size", size),
        );
    }
    let workloads = points.iter().map(Workload::from_point);
    workloads.collect::<Result<_, _>>().unwrap()
}

fn uniform(random: &mut ChaCha8Rng) -> f64 {
    f64::from(random.next_u32()) / f64::from(u32::MAX)
}

/// Nearly normal: the sum of twelve.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
}

/// A machine with parameters from anywhere in their ranges, and what is measured on it.
fn secret(
    seed: u64,
    platform: &PlatformFile,
    profile: &Profile,
) -> (PlatformFile, Vec<Observation>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut machine = platform.clone();
    for parameter in platform.list() {
        let [low, high] = parameter.range;
        if parameter.unit != Unit::Count {
            let value = low + uniform(&mut random) * (high - low);
            machine = machine.with(parameter.name, value).unwrap();
        }
    }
    let model = Model::new(machine.clone(), profile.clone());
    let observed = workloads().into_iter().map(|workload| {
        let metrics = model.run_for(&workload, Window::Short).unwrap();
        let period = metrics.get(Metric::Period).unwrap();
        Observation {
            workload,
            period_ns: period * (NOISE * normal(&mut random)).exp(),
            deviation_share: NOISE,
        }
    });
    let observed = observed.collect();
    (machine, observed)
}

#[test]
fn secret_parameters_are_recovered_with_intervals_that_hold() {
    let platform = dray_platform::builtin("spr-2s").unwrap();
    let profile = Profile::named("1e1w-d").unwrap();
    let (mut inside, mut all, mut determined) = (0_u32, 0_u32, 0_usize);
    let (mut beyond, mut worst): (usize, f64) = (0, 0.0);
    for seed in 0..6 {
        let began = std::time::Instant::now();
        let (machine, observed) = secret(seed, &platform, &profile);
        let found = recover(&platform, &profile, &observed, &|| true).unwrap();
        let mut names = Vec::new();
        for parameter in &found.parameters {
            let mut list = machine.list().iter();
            let truth = list.find(|p| p.name == parameter.name).unwrap().value;
            let [low, high] = parameter.interval;
            all += 1;
            inside += u32::from((low..=high).contains(&truth));
            if parameter.determined {
                determined += 1;
                names.push(parameter.name);
                let off = (parameter.value / truth - 1.0).abs();
                worst = worst.max(off);
                beyond += usize::from(off > 0.05);
            }
        }
        println!(
            "seed {seed}: {} free, misfit {:.2}, {:?}, {names:?}",
            found.parameters.len(),
            found.misfit,
            began.elapsed()
        );
    }
    let share = f64::from(inside) / f64::from(all);
    println!(
        "{inside} of {all} intervals, {determined} determined, {beyond} beyond 5 %, worst {worst:.4}"
    );
    assert!(
        (0.80..=0.97).contains(&share),
        "{share} of {all} intervals have the value"
    );
    assert!(determined >= 5, "{determined}");
    // The interval of a determined parameter is at most 5 % on each side, and has the value with a probability of 90 %.
    assert!(
        beyond * 6 <= determined,
        "{beyond} of {determined} are off by more than 5 %"
    );
}
