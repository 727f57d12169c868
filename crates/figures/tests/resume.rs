//! A run that is stopped goes on where it was.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use dray_figures::{FiguresError, Progress, Protocol, Request, run};
use dray_idxd::Profile;

/// Stops after so many points.
struct StopAfter {
    limit: usize,
    done: AtomicUsize,
    resumed: AtomicUsize,
}

impl StopAfter {
    fn new(limit: usize) -> StopAfter {
        StopAfter {
            limit,
            done: AtomicUsize::new(0),
            resumed: AtomicUsize::new(0),
        }
    }
}

impl Progress for StopAfter {
    fn start(&self, _points: usize, resumed: usize) {
        self.resumed.store(resumed, Ordering::Relaxed);
    }

    fn done(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn stopped(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.limit
    }
}

fn request(out: &Path, poll_ns: f64) -> Request {
    let platform = dray_platform::builtin("spr-2s").expect("built in");
    Request {
        platform: platform.with("poll", poll_ns).expect("within its range"),
        profile: Profile::named("1e1w-d").expect("a name that there is"),
        profile_name: "1e1w-d".to_owned(),
        only: vec!["fig3".to_owned()],
        set: vec![("size".to_owned(), "256,4k".to_owned())],
        protocol: Protocol::Paper,
        measure_cpu: false,
        device: None,
        move_bytes: false,
        out: out.to_owned(),
        jobs: 1,
    }
}

#[test]
fn a_stopped_run_resumes_and_gives_the_same_report() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, parts) = (dir.path().join("whole"), dir.path().join("parts"));
    run(&request(&whole, 10.0), &StopAfter::new(usize::MAX)).unwrap();

    let stop = StopAfter::new(5);
    let error = run(&request(&parts, 10.0), &stop).unwrap_err();
    assert!(matches!(error, FiguresError::Interrupted { .. }), "{error}");
    assert!(error.hint().unwrap().contains("the same command goes on"));
    assert!(!parts.join("index.html").exists(), "a report half written");

    let rest = StopAfter::new(usize::MAX);
    let summary = run(&request(&parts, 10.0), &rest).unwrap();
    assert_eq!((summary.resumed, rest.done.into_inner()), (5, 16 - 5));
    for name in ["fig3.csv", "fig3.json", "fig3.svg", "index.html"] {
        let read = |dir: &Path| std::fs::read(dir.join(name)).unwrap();
        assert!(read(&whole) == read(&parts), "{name} differs");
    }
    assert!(!parts.join(".partial").exists());
}

#[test]
fn results_of_another_machine_are_not_resumed() {
    let dir = tempfile::tempdir().unwrap();
    run(&request(dir.path(), 10.0), &StopAfter::new(5)).unwrap_err();
    let other = StopAfter::new(usize::MAX);
    run(&request(dir.path(), 11.0), &other).unwrap();
    assert_eq!(other.resumed.into_inner(), 0);
}
