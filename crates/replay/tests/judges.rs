//! Replays beside `dray micros`, and beside what can be worked out by hand.

use std::fs::OpenOptions;

use dray_bench::micros::{Micros, run};
use dray_figures::Model;
use dray_idxd::Profile;
use dray_platform::WaitMode;
use dray_recording::{
    Alignment, Cursor, Flags, Kind, Operands, Options, Queue, Recording, Region, Request, Session,
    cycles, time,
};
use dray_replay::{Order, Placement, Program, ProgramOptions, Replayed, Think, Way, replay};
use dray_spec::Opcode;
use dray_workload::Gauge;

/// A closed loop of copies on each of some queues.
#[derive(Debug, Clone, Copy)]
struct Loop {
    threads: u16,
    /// Queues, which threads have in turn.
    queues: u16,
    size: u64,
    batch: u32,
    depth: u32,
    descriptors: u32,
    think_ns: u64,
}

/// What `dray run --record` writes of such a program.
fn recorded(of: Loop) -> Recording {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("recording");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    let options_of_session = Options {
        kind: Kind::Descriptors,
        command: "loop".to_owned(),
        min_bytes: 0,
        limit_bytes: 64 << 20,
    };
    let file = options.open(&path).expect("a file");
    let mut session = Session::begin(file, &options_of_session).expect("a session");
    session.grow().expect("a thread");
    let log = session.log();
    let entries = match of.batch {
        1 => 1,
        members => 1 + members,
    };
    let began = cycles();
    for thread in 0..of.threads {
        let queue = log
            .queue(Queue {
                device: 0,
                wq: thread % of.queues,
            })
            .expect("room");
        let mut cursor = Cursor::new(1, 1 + u32::from(thread));
        let alignment = match of.size % 4096 {
            0 => Alignment::Page,
            _ => Alignment::Line,
        };
        let copy = Request {
            operation: Opcode::Memmove.into(),
            operands: Operands {
                alignment: [alignment; 2],
                region: [Region::Fresh; 2],
            },
            queue,
            ..Request::default()
        }
        .with_bytes(of.size);
        for number in 0..of.descriptors {
            let back = match number < of.depth {
                true => 0,
                false => of.depth * entries,
            };
            let whole = Request {
                operation: match of.batch {
                    1 => Opcode::Memmove.into(),
                    _ => Opcode::Batch.into(),
                },
                seen: back,
                reuses: back,
                think: time::from_ns(of.think_ns),
                ..copy
            };
            assert!(log.append(&mut cursor, began, &whole).is_some());
            for member in (1..=of.batch).take_while(|_| of.batch > 1) {
                let request = Request {
                    flags: Flags::MEMBER,
                    seen: member,
                    ..copy
                };
                assert!(log.append(&mut cursor, began, &request).is_some());
            }
        }
    }
    session.close().expect("it is cut");
    Recording::read(std::fs::File::open(&path).expect("the file")).expect("a recording")
}

fn replayed(recording: &Recording, config: &str, think: Think) -> Replayed {
    let platform = dray_platform::builtin("spr-2s").expect("a platform");
    let model = Model::new(platform, Profile::named(config).expect("a profile"));
    let options = ProgramOptions {
        most_requests: u64::MAX,
    };
    let program = Program::of(recording, options).expect("a program");
    let way = Way::Recorded {
        batch: 0,
        order: Order::Records,
        wait: WaitMode::Poll,
    };
    let replayed = replay(&model, &program, way, Placement::Dram, think).expect("a replay");
    assert_eq!(replayed.failed, 0);
    replayed
}

/// GB/s of the loop as `dray micros` models it.
fn micros(of: Loop, config: &str) -> f64 {
    let platform = dray_platform::builtin("spr-2s").expect("a platform");
    let profile = Profile::named(config).expect("a profile");
    let micros = Micros {
        size: of.size as u32,
        buffers: of.depth * of.batch,
        batch: of.batch,
        iterations: Some(1000),
        cpus: (0..of.threads).collect(),
        shared: Some(config.ends_with('s')),
        verify: false,
        ..Micros::default()
    };
    let found = run(&micros, &platform, Some(&profile), &Gauge::default());
    found.expect("a measurement").gb_per_sec
}

#[test]
fn a_loop_that_is_recorded_and_replayed_without_thinking_is_as_fast_as_micros() {
    let mut cells = 0;
    for config in ["2e2w-d", "2e2w-s"] {
        for size in [256, 4096, 65536] {
            for batch in [1, 8] {
                let of = Loop {
                    threads: 2,
                    queues: 2,
                    size,
                    batch,
                    depth: 16,
                    descriptors: 4000,
                    think_ns: 777,
                };
                let replayed = replayed(&recorded(of), config, Think::None);
                let bytes = u64::from(of.threads) * u64::from(of.descriptors * batch) * size;
                let found = bytes as f64 / replayed.run_ns;
                let expected = micros(of, config);
                println!("{config} {size} x{batch}: {found:.3} GB/s, micros {expected:.3}");
                assert!((found / expected - 1.0).abs() < 0.02, "{config} {of:?}");
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 12);
}

/// With one engine, k threads that wait for each copy, and times that do not vary: a thread's period is its think time and
/// the latency of a copy, and the engine's is that of a copy behind others.
#[test]
fn threads_with_a_fixed_think_time_are_as_fast_as_the_formula() {
    let of = |threads: u16, depth: u32, think_ns: u64| {
        let of = Loop {
            threads,
            queues: 1,
            size: 65536,
            batch: 1,
            depth,
            descriptors: 2000,
            think_ns,
        };
        let think = match think_ns {
            0 => Think::None,
            _ => Think::Recorded,
        };
        let count = f64::from(threads) * f64::from(of.descriptors);
        replayed(&recorded(of), "1e1w-d", think).run_ns / count
    };
    let (latency, engine) = (of(1, 1, 0), of(1, 16, 0));
    for threads in [1, 2, 4, 8] {
        for think_ns in [500, 5000, 20_000, 50_000] {
            let alone = (think_ns as f64 + latency) / f64::from(threads);
            let expected = alone.max(engine);
            let found = of(threads, 1, think_ns);
            println!(
                "{threads} threads, {think_ns} ns: {found:.0} ns a copy, formula {expected:.0}"
            );
            assert!(
                (found / expected - 1.0).abs() < 0.01,
                "{threads} {think_ns}"
            );
        }
    }
}

#[test]
fn think_time_is_core_time_and_all_of_it() {
    let of = Loop {
        threads: 2,
        queues: 2,
        size: 4096,
        batch: 1,
        depth: 1,
        descriptors: 500,
        think_ns: 10_000,
    };
    let recording = recorded(of);
    let (with, without) = (
        replayed(&recording, "2e2w-d", Think::Recorded),
        replayed(&recording, "2e2w-d", Think::None),
    );
    let think = 2.0 * 500.0 * 10_000.0;
    assert_eq!(with.think_ns, think);
    let more = with.core_ns - without.core_ns;
    assert!((more / think - 1.0).abs() < 0.02, "{more}");
}

#[test]
fn configurations_have_the_same_order_as_by_micros() {
    let configs = ["1e1w-d", "2e1w-d", "4e1w-d"];
    for size in [4096, 16384, 65536] {
        let of = Loop {
            threads: 1,
            queues: 1,
            size,
            batch: 8,
            depth: 16,
            descriptors: 1000,
            think_ns: 100,
        };
        let recording = recorded(of);
        let runs = configs.map(|config| replayed(&recording, config, Think::Recorded).run_ns);
        let rates = configs.map(|config| micros(of, config));
        println!("{size}: {runs:?} ns, {rates:?} GB/s");
        for (run, rate) in runs.windows(2).zip(rates.windows(2)) {
            let faster = |a: f64, b: f64| a / b > 1.02;
            assert!(!faster(rate[1], rate[0]) || run[1] < run[0]);
            assert!(!faster(rate[0], rate[1]) || run[0] < run[1]);
        }
        assert!(runs[0] >= runs[2] && rates[0] <= rates[2]);
    }
}

/// Descriptors without completion records, more than a queue has entries.
#[test]
fn a_thread_that_waits_for_nothing_waits_for_room() {
    let of = Loop {
        threads: 2,
        queues: 1,
        size: 4096,
        batch: 1,
        depth: 5000,
        descriptors: 2000,
        think_ns: 0,
    };
    for config in ["1e1w-d", "1e1w-s"] {
        let found = replayed(&recorded(of), config, Think::None);
        assert_eq!(found.by_device, 4000);
    }
}

/// Recorded calls of threads, each with copies of one size to memory that it did not name before.
fn calls(sizes: &[(u64, usize)]) -> Recording {
    let of = Loop {
        threads: 1,
        queues: 1,
        size: 4096,
        batch: 1,
        depth: 1,
        descriptors: 1,
        think_ns: 0,
    };
    let mut recording = recorded(of);
    recording.header.kind = Kind::Calls;
    let first = recording.threads.remove(0);
    for (tid, (size, count)) in (1..).zip(sizes) {
        let mut thread = first.clone();
        thread.tid = tid;
        thread.requests = vec![first.requests[0].with_bytes(*size); *count];
        recording.threads.push(thread);
    }
    recording
}

/// What a core takes for a copy is a matter of its size and its memory, and not of what another thread copies.
#[test]
fn core_times_do_not_depend_on_the_order_of_threads() {
    let on_core = |sizes: &[(u64, usize)]| {
        let recording = calls(sizes);
        let program = Program::of(
            &recording,
            ProgramOptions {
                most_requests: 1000,
            },
        )
        .unwrap();
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let model = Model::new(platform, Profile::named("1e1w-d").unwrap());
        let (way, think) = (Way::Core, Think::None);
        replay(&model, &program, way, Placement::Recorded, think)
            .unwrap()
            .on_core_ns
    };
    let (small, large) = ((4096, 10), (64 << 20, 3));
    let apart = on_core(&[small]) + on_core(&[large]);
    for together in [[small, large], [large, small]] {
        let found = on_core(&together);
        assert!(
            (found / apart - 1.0).abs() < 1e-9,
            "{found} against {apart}"
        );
    }
}

#[test]
fn more_threads_than_entries_of_a_dedicated_queue_are_an_error_that_names_it() {
    let recording = calls(&[(65536, 3); 130]);
    let program = Program::of(
        &recording,
        ProgramOptions {
            most_requests: 1000,
        },
    )
    .unwrap();
    let run = |config: &str, way| {
        let platform = dray_platform::builtin("spr-2s").unwrap();
        let model = Model::new(platform, Profile::named(config).unwrap());
        replay(&model, &program, way, Placement::Dram, Think::Recorded).map(|run| run.by_device)
    };
    let device = Way::Synchronous {
        threshold: 0,
        wait: WaitMode::Poll,
    };
    let error = run("1e1w-d", device).unwrap_err().to_string();
    assert!(
        error.contains("130 threads") && error.contains("wq0.0"),
        "{error}"
    );
    assert_eq!(run("1e1w-d", Way::Core).unwrap(), 0);
    assert_eq!(run("1e1w-s", device).unwrap(), 390);
}

/// A thread that waits for a drain has waited for what is before it.
#[test]
fn a_request_that_is_left_out_hands_its_order_on() {
    let of = Loop {
        threads: 1,
        queues: 1,
        size: 65536,
        batch: 1,
        depth: 1000,
        descriptors: 60,
        think_ns: 0,
    };
    let mut recording = recorded(of);
    let copies = std::mem::take(&mut recording.threads[0].requests);
    for mut copy in copies {
        // A copy without a record, then a drain whose record the one before had.
        let first = recording.threads[0].requests.is_empty();
        (copy.reuses, copy.seen) = (0, 0);
        let mut drain = copy;
        drain.operation = Opcode::Drain.into();
        drain.reuses = if first { 0 } else { 2 };
        recording.threads[0].requests.extend([copy, drain]);
    }
    let run = replayed(&recording, "1e1w-d", Think::None);
    let (_, (_, most)) = run.occupancy.first_key_value().unwrap();
    assert!(*most <= 2, "{most} in flight");
}

/// Two calls of a thread, the first of which was the first to use its memory.
fn recorded_calls(size: u64, took_ns: u64) -> Recording {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("recording");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    let file = options.open(&path).expect("a file");
    let options = Options {
        kind: Kind::Calls,
        command: "calls".to_owned(),
        min_bytes: 0,
        limit_bytes: 1 << 20,
    };
    let mut session = Session::begin(file, &options).expect("a session");
    session.grow().expect("a thread");
    let mut cursor = Cursor::new(1, 1);
    for region in [Region::Fresh, Region::Reused] {
        let call = Request {
            operation: Opcode::Memmove.into(),
            operands: Operands {
                alignment: [Alignment::Page; 2],
                region: [Region::Reused, region],
            },
            took: time::from_ns(took_ns),
            ..Request::default()
        };
        let call = call.with_bytes(size);
        assert!(session.log().append(&mut cursor, cycles(), &call).is_some());
    }
    session.close().expect("it is cut");
    Recording::read(std::fs::File::open(&path).expect("the file")).expect("a recording")
}

#[test]
fn page_faults_of_calls_are_in_every_row() {
    let platform = dray_platform::builtin("spr-2s").expect("a platform");
    let model = Model::new(platform, Profile::named("1e1w-s").expect("a profile"));
    let row = |took_ns, way, think| {
        let options = ProgramOptions {
            most_requests: u64::MAX,
        };
        let recording = recorded_calls(1 << 20, took_ns);
        let program = Program::of(&recording, options).expect("a program");
        replay(&model, &program, way, Placement::Recorded, think).expect("a replay")
    };
    let device = Way::Synchronous {
        threshold: 4096,
        wait: WaitMode::Umwait,
    };
    let quick = row(1000, Way::Core, Think::Recorded);
    assert_eq!(quick.excess_ns, 0.0, "the model's core takes longer");
    let slow = row(10_000_000, Way::Core, Think::Recorded);
    // Both calls: the first beyond the time of the core, the second beyond three times that and 1 us.
    assert!((18_000_000.0..20_000_000.0).contains(&slow.excess_ns));
    assert!((slow.core_ns - quick.core_ns - slow.excess_ns).abs() < 1.0);
    let by_device = row(10_000_000, device, Think::Recorded);
    assert_eq!(by_device.excess_ns, slow.excess_ns);
    assert!(by_device.core_ns > by_device.excess_ns);
    let bare = row(10_000_000, Way::Core, Think::None);
    assert_eq!(bare.excess_ns, 0.0);
}
