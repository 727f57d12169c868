//! A run that is stopped goes on where it was.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dray_figures::{FiguresError, Progress, Protocol, Request, run};
use dray_idxd::Profile;
use dray_print::PictureStyle;

/// Stops after so many points.
struct StopAfter {
    limit: usize,
    done: AtomicUsize,
    resumed: AtomicUsize,
    in_phase: AtomicBool,
    steps: AtomicUsize,
}

impl StopAfter {
    fn new(limit: usize) -> StopAfter {
        StopAfter {
            limit,
            done: AtomicUsize::new(0),
            resumed: AtomicUsize::new(0),
            in_phase: AtomicBool::new(false),
            steps: AtomicUsize::new(0),
        }
    }
}

impl Progress for StopAfter {
    fn start(&self, _points: usize, resumed: usize) {
        self.resumed.store(resumed, Ordering::Relaxed);
    }

    fn phase(&self, name: &str, steps: usize) {
        assert!(steps > 0, "{name}");
        self.in_phase.store(true, Ordering::Relaxed);
    }

    fn done(&self) {
        let counter = match self.in_phase.load(Ordering::Relaxed) {
            true => &self.steps,
            false => &self.done,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn stopped(&self) -> bool {
        let of = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        of(&self.done) + of(&self.steps) >= self.limit
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
        intervals: false,
        pictures: PictureStyle::Page,
        asked: Vec::new(),
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

/// Ctrl-C after the last point: each later step of the run hears of it, and nothing is run twice.
#[test]
fn a_run_stops_after_its_points_too() {
    let dir = tempfile::tempdir().unwrap();
    let whole = StopAfter::new(usize::MAX);
    run(&request(&dir.path().join("whole"), 10.0), &whole).unwrap();
    let (points, steps) = (whole.done.into_inner(), whole.steps.into_inner());
    assert!(steps >= 3, "{steps} steps after the points");
    for stop in [points, points + 1, points + steps / 2] {
        let out = dir.path().join(stop.to_string());
        let error = run(&request(&out, 10.0), &StopAfter::new(stop)).unwrap_err();
        assert!(matches!(error, FiguresError::Interrupted { .. }), "{error}");
        assert!(!out.join("index.html").exists());
        let rest = StopAfter::new(usize::MAX);
        let summary = run(&request(&out, 10.0), &rest).unwrap();
        assert_eq!((summary.resumed, rest.done.into_inner()), (points, 0));
    }
}

#[test]
fn results_of_another_machine_are_not_resumed() {
    let dir = tempfile::tempdir().unwrap();
    run(&request(dir.path(), 10.0), &StopAfter::new(5)).unwrap_err();
    let other = StopAfter::new(usize::MAX);
    run(&request(dir.path(), 11.0), &other).unwrap();
    assert_eq!(other.resumed.into_inner(), 0);
}
