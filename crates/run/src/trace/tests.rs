use serde_json::Value;

use super::*;
use dray_spec::{CompletionRecord, Opcode, Status};

fn ended(engine: Option<u16>, operation: Opcode, started_ns: u64, ended_ns: u64) -> Ended {
    Ended {
        wq: 3,
        engine,
        pasid: 5,
        pid: Some(77),
        operation: operation.into(),
        size: 4096,
        member: false,
        accepted_ns: 100,
        started_ns,
        ended_ns,
        record: Some(CompletionRecord::with_status(Status::SUCCESS)),
    }
}

/// What is written of these, to a file of this name.
fn written(name: &str, events: &[Ended]) -> (String, Traced) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    let mut trace = Trace::create(&path).unwrap();
    let mut feed = trace.feed(2);
    trace.begin().unwrap();
    events.iter().for_each(|ended| feed.push(*ended));
    let traced = trace.end();
    (std::fs::read_to_string(&path).unwrap(), traced)
}

fn events() -> Vec<Ended> {
    vec![
        ended(Some(1), Opcode::Memmove, 200, 1500),
        // Held while the one before was carried out.
        ended(Some(1), Opcode::Fill, 210, 2500),
        ended(Some(1), Opcode::Batch, 150, 2600),
        ended(None, Opcode::Drain, 2700, 2700),
        Ended {
            record: None,
            pid: None,
            operation: 0xee,
            ..ended(Some(0), Opcode::Noop, 300, 400)
        },
    ]
}

#[test]
fn json_follows_the_trace_event_format() {
    let (text, traced) = written("trace.json", &events());
    assert_eq!(
        (traced.written, traced.dropped, traced.failure),
        (5, 0, None)
    );
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut ends = std::collections::HashMap::new();
    let mut named = std::collections::HashSet::new();
    for event in &all {
        assert!(event["name"].is_string(), "{event}");
        let track = (
            event["pid"].as_u64().unwrap(),
            event["tid"].as_u64().unwrap(),
        );
        match event["ph"].as_str().unwrap() {
            "M" => {
                assert!(event["args"]["name"].is_string(), "{event}");
                named.insert(track);
            }
            "X" => {
                assert!(named.contains(&track), "{event}");
                let (ts, dur) = (
                    event["ts"].as_f64().unwrap(),
                    event["dur"].as_f64().unwrap(),
                );
                let before = ends.insert(track, ts + dur).unwrap_or(0.0);
                assert!(ts >= before && dur >= 0.0, "{event}");
                for number in ["pid", "pasid", "size", "bytes_completed", "wait_ns"] {
                    assert!(event["args"][number].is_u64(), "{event}");
                }
            }
            other => panic!("{other}"),
        }
    }
    let complete: Vec<&Value> = all.iter().filter(|e| e["ph"] == "X").collect();
    let field = |name: &str| complete.iter().map(|e| e[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("name"), ["memmove", "fill", "batch", "drain", "0xee"]);
    assert_eq!(field("tid"), [2, 2, 1001, 2003, 1]);
    assert_eq!(complete[1]["ts"].to_string(), "1.5");
    assert_eq!(complete[1]["args"]["wait_ns"], 110);
    assert_eq!(complete[4]["args"]["status"], "abandoned");
    assert_eq!(complete[0]["args"]["wq"], "wq2.3");
    assert_eq!(all[0]["args"]["name"], "dsa2");
}

/// A session that is killed writes nothing more: what stands there then is a trace.
#[test]
fn a_trace_is_valid_json_after_every_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.json");
    let mut trace = Trace::create(&path).unwrap();
    let mut feed = trace.feed(2);
    trace.begin().unwrap();
    let mut seen = 0;
    for event in events() {
        feed.push(event);
        seen += 1;
        let since = std::time::Instant::now();
        loop {
            let text = std::fs::read_to_string(&path).unwrap();
            // A look may fall into a write; no writer writes for ever.
            let all: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
            if all.iter().filter(|e| e["ph"] == "X").count() == seen {
                break;
            }
            assert!(since.elapsed() < Duration::from_secs(20), "{text}");
            thread::yield_now();
        }
    }
    assert_eq!(trace.end().failure, None);
}

#[test]
fn csv_has_a_line_for_each_event() {
    let (text, _) = written("trace.csv", &events());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6);
    let columns = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == columns));
    assert_eq!(
        lines[1],
        "100,200,1500,2,3,1,77,5,memmove,0,4096,success,0,100"
    );
    assert_eq!(
        lines[4],
        "100,2700,2700,2,3,,77,5,drain,0,4096,success,0,2600"
    );
    assert_eq!(lines[5], "100,300,400,2,3,0,,5,0xee,0,4096,abandoned,0,200");
}

#[test]
fn a_trace_without_events_is_valid_json() {
    let (text, traced) = written("trace.json", &[]);
    assert_eq!(traced.written, 0);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&text).unwrap().len(), 1);
}

#[test]
fn a_full_ring_counts_what_it_drops() {
    let directory = tempfile::tempdir().unwrap();
    let mut trace = Trace::create(&directory.path().join("trace.csv")).unwrap();
    let mut feed = trace.feed(0);
    for _ in 0..ROOM + 7 {
        feed.push(events()[0]);
    }
    trace.begin().unwrap();
    let traced = trace.end();
    assert_eq!((traced.written, traced.dropped), (ROOM as u64, 7));
}

#[test]
fn bad_trace_paths_are_refused_when_the_trace_is_created() {
    for name in ["trace", "trace.txt", ".json"] {
        let error = Trace::create(Path::new(name)).unwrap_err();
        assert!(matches!(error, RunError::TraceFormat { .. }), "{error}");
        assert!(error.is_bad_input());
    }
    let directory = tempfile::tempdir().unwrap();
    let error = Trace::create(&directory.path().join("none/trace.json")).unwrap_err();
    assert!(matches!(error, RunError::Trace(_)), "{error}");
}

#[test]
fn a_full_disk_is_a_failure_of_the_trace() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("full.csv");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let mut trace = Trace::create(&path).unwrap();
    let mut feed = trace.feed(0);
    trace.begin().unwrap();
    feed.push(events()[0]);
    let failure = trace.end().failure.unwrap();
    assert!(failure.contains("No space left"), "{failure}");
}
