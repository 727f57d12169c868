//! A model with secret parameters.

use super::*;

/// Machines.
const SEEDS: std::ops::Range<u64> = 6..9;
/// Standard deviation of the measurements.
const NOISE: f64 = 0.005;

fn workloads() -> Vec<Workload> {
    let points = parameter_points().unwrap();
    assert_eq!(points.len(), PARAMETER_POINTS);
    points.into_iter().map(|(_, workload)| workload).collect()
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

/// What a machine has for a sum of parameters.
fn truth(machine: &PlatformFile, names: &[&str]) -> f64 {
    let value = |name: &&str| {
        let mut list = machine.list().iter();
        list.find(|p| p.name == *name).unwrap().value
    };
    names.iter().map(value).sum()
}

#[test]
fn secret_parameters_are_recovered_with_intervals_that_hold() {
    let platform = dray_platform::builtin("spr-2s").unwrap();
    let profile = Profile::named("1e1w-d").unwrap();
    let (mut inside, mut all, mut determined) = (0_u32, 0_u32, 0_usize);
    for seed in SEEDS {
        let (machine, observed) = secret(seed, &platform, &profile);
        let found = recover(&platform, &profile, &observed, &|| true).unwrap();
        println!("{seed}: misfit {:.2}", found.misfit);
        let single = found.parameters.iter();
        let single = single.map(|p| (vec![p.name], p.value, p.interval, p.determined));
        let sums = found.sums.iter();
        let sums = sums.map(|s| (s.names.clone(), s.value, s.interval, true));
        for (names, value, [low, high], is_determined) in single.chain(sums) {
            let truth = truth(&machine, &names);
            all += 1;
            inside += u32::from((low..=high).contains(&truth));
            let off = (value / truth - 1.0).abs();
            println!(
                "{seed} {names:?} {value:.2} [{low:.2}, {high:.2}] {truth:.2} {is_determined}"
            );
            if is_determined {
                determined += 1;
                assert!(off < 0.05, "{names:?}: {value} for {truth}");
            }
        }
        // What a NOOP takes on its way is known, though no point tells its parts apart.
        let mut sums = found.sums.iter();
        assert!(sums.any(|s| s.names.contains(&"submit_to_wq")), "{found:?}");
    }
    let share = f64::from(inside) / f64::from(all);
    println!("{inside} of {all} intervals, {determined} determined");
    assert!(
        (0.80..=0.97).contains(&share),
        "{share} of {all} intervals have the value"
    );
    assert!(determined >= 7 * SEEDS.count(), "{determined}");
}
