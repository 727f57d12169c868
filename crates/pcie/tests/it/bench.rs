//! The benchmark's calls, its experiments and its checks.

use std::collections::{BTreeMap, BTreeSet};

use dray_pcie::Topology;
use dray_pcie::bench::{
    FabricExperiment, Session, Verdict, built_in_experiments, check_all, run_experiment,
    trace_experiment,
};
use dray_pcie::sim::{Operation, Scheduling, SimulationOptions};

#[test]
fn a_program_initialises_allocates_transfers_and_polls() {
    let topology = Topology::resolve("testbed").unwrap();
    let options = SimulationOptions::default();
    let mut session =
        Session::new(&topology, "host1", Scheduling::RoundRobin, 64, &options).unwrap();
    let card = session.dev_init("A").unwrap();
    let other = session.dev_init("C").unwrap();
    session.dev_setup_mapping(card, 1 << 20).unwrap();
    let memory = session.dev_mem_alloc(card, 64 << 10).unwrap();
    let far = session.dev_mem_alloc(other, 64 << 10).unwrap();
    assert_eq!(session.dev_mem_getaddr(memory), 0);
    let read = session.mmio_rd(memory, 64).unwrap();
    assert!(session.poll(read).is_none());
    let done = session.wait(read).unwrap();
    assert!((done.total_ns - 1746.0).abs() < 10.0, "{done:?}");
    let up = session.d2h(memory, 4096, Some(3)).unwrap();
    let down = session.h2d(memory, 4096, None).unwrap();
    let batch = session.h2d_batch(memory, 4096, 16, None).unwrap();
    let across = session.dev2dev_wr(memory, far, 4096, 2, None).unwrap();
    for handle in [up, down, batch, across] {
        let done = session.wait(handle).unwrap();
        let parts = done.host_ns + done.fabric_ns + done.device_ns;
        assert!((parts - done.total_ns).abs() < 0.01, "{done:?}");
        assert_eq!(session.poll(handle), Some(done));
    }
    assert_eq!(
        session
            .profile(Operation::H2d, card, None)
            .unwrap()
            .summary(dray_pcie::sim::Phase::Total)
            .count,
        2
    );
    let error = |made: Result<_, dray_pcie::PcieError>| made.err().unwrap().to_string();
    assert!(error(session.h2d(memory, 100, None)).contains("no multiple of 64"));
    assert!(error(session.h2d(memory, 0, None)).contains("0 bytes"));
    assert!(error(session.h2d(memory, 128 << 10, None)).contains("not allocated"));
    assert!(error(session.h2d(memory, 64, Some(99))).contains("queue 99"));
    assert!(error(session.mmio_rd(far, 64)).contains("not mapped"));
    session.dev_mem_free(memory).unwrap();
    assert!(session.dev_mem_free(memory).is_err());
    assert!(error(session.h2d(memory, 64, None)).contains("not allocated"));
    assert!(session.dev_init("S").is_err());
}

#[test]
fn freed_memory_is_merged_with_free_neighbours() {
    let topology = Topology::resolve("local").unwrap();
    let options = SimulationOptions::default();
    let mut session = Session::new(&topology, "host", Scheduling::RoundRobin, 1, &options).unwrap();
    let card = session.dev_init("card0").unwrap();
    let whole = 16u64 << 30;
    let parts: Vec<_> = (0..4)
        .map(|_| session.dev_mem_alloc(card, whole / 4).unwrap())
        .collect();
    assert!(session.dev_mem_alloc(card, 1).is_err());
    for index in [1, 3, 0, 2] {
        session.dev_mem_free(parts[index]).unwrap();
    }
    assert_eq!(session.dev_mem_alloc(card, whole).unwrap().address, 0);
}

#[test]
fn built_in_experiments_are_well_formed_and_named_as_their_files() {
    let experiments = built_in_experiments().unwrap();
    assert!(experiments.len() >= 17);
    for experiment in &experiments {
        assert!(
            !experiment.title.is_empty()
                && experiment
                    .published
                    .as_ref()
                    .is_some_and(|place| !place.is_empty())
        );
    }
}

#[test]
fn an_experiment_is_reproducible() {
    let experiments = built_in_experiments().unwrap();
    let mmio = experiments
        .iter()
        .find(|experiment| experiment.id == "mmio")
        .unwrap();
    let run = || -> Vec<_> {
        let outcomes = run_experiment(mmio, 1).unwrap();
        outcomes
            .iter()
            .map(|outcome| outcome.outcome(mmio.swept()))
            .collect()
    };
    assert_eq!(run(), run());
    let trace = trace_experiment(mmio, 1).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert!(
        events
            .iter()
            .any(|event| event["name"] == "MMIO CplD" && event["ph"] == "X")
    );
}

/// The rules of the Chrome JSON trace format, and those by which Perfetto reads it: it drops what is below a nanosecond, and a
/// slice that begins before the one before it on its track has ended.
#[test]
fn traces_follow_the_chrome_json_format() {
    let experiments = built_in_experiments().unwrap();
    for id in ["latency", "arrival"] {
        let experiment = experiments.iter().find(|known| known.id == id).unwrap();
        let trace = trace_experiment(experiment, 1).unwrap();
        let trace: serde_json::Value = serde_json::from_str(&trace).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let mut names = BTreeMap::new();
        let mut slices: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        let mut open = BTreeSet::new();
        let ns = |value: &serde_json::Value| (value.as_f64().unwrap() * 1000.0) as u64;
        for event in events {
            let track = event["tid"].as_u64();
            let phase = event["ph"].as_str().unwrap();
            assert!(
                event["name"].is_string() && event["pid"].is_u64(),
                "{event}"
            );
            if phase == "M" {
                if let Some(track) = track {
                    assert!(track > 0, "{event}");
                    let other = names.insert(track, event["args"]["name"].to_string());
                    assert_eq!(other, None, "two tracks have the number {track}");
                }
                continue;
            }
            let track = track.unwrap();
            assert!(names.contains_key(&track), "{event} is on no track");
            let start = ns(&event["ts"]);
            let name = (event["id"].to_string(), event["name"].to_string());
            match phase {
                "X" => slices
                    .entry(track)
                    .or_default()
                    .push((start, start + ns(&event["dur"]))),
                "b" => assert!(open.insert(name), "{event}"),
                "e" => assert!(open.remove(&name), "{event}"),
                _ => panic!("{event}"),
            }
        }
        assert!(open.is_empty() && !slices.is_empty(), "{open:?}");
        for (track, mut slices) in slices {
            slices.sort_unstable();
            for pair in slices.windows(2) {
                assert!(pair[0].1 <= pair[1].0, "{}: {pair:?}", names[&track]);
            }
        }
    }
}

#[test]
fn experiments_with_errors_are_refused() {
    let good = "id = \"x\"\ntitle = \"t\"\npublished = \"p\"\ntopology = \"testbed\"\n[sweep]\nsize = \"64,128\"\n[[stream]]\nname = \"s\"\noperation = \"h2d\"\nhost = \"host1\"\ndevice = \"A\"\nbytes = \"$size\"\n";
    FabricExperiment::parse(good, "x.toml").unwrap();
    let cases = [
        ("\"h2d\"", "\"h2h\"", "operation = `h2h`"),
        ("\"A\"", "\"Q\"", "no node `Q`"),
        ("$size", "$length", "`$length` names neither"),
        ("64,128", "64,,128", "sweep"),
        ("\"testbed\"", "\"nowhere\"", "nowhere"),
        ("title", "titel", "titel"),
        (
            "bytes = \"$size\"\n",
            "bytes = 64\n[[chart]]\nid = \"c\"\ntitle = \"t\"\ny = [\"s.mean_ns\"]\ny_label = \"Latency\"\ny_unit = \"mus\"\n",
            "unknown variant `mus`",
        ),
    ];
    for (old, new, expected) in cases {
        let error = FabricExperiment::parse(&good.replace(old, new), "x.toml").unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// Every published number is within its tolerance, but for those that are listed here.
#[test]
fn published_numbers_are_within_their_tolerance() {
    let checks = check_all().unwrap();
    let missed: Vec<String> = checks
        .iter()
        .flat_map(|check| check.rows.iter().map(move |row| (check.number, row)))
        .filter(|(_, row)| row.verdict() == Verdict::Missed)
        .map(|(number, row)| {
            format!(
                "{number}: {} {:.3}, {:+.2}",
                row.name,
                row.result,
                row.deviation()
            )
        })
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}
