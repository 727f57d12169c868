//! The progress bar, and Ctrl-C.

use std::io::{self, IsTerminal};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dray_bench::Gauge;
use dray_figures::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Set by the first Ctrl-C.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// A bar on stderr; silent where stderr is no terminal.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new() -> Bar {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:32} {pos}/{len}, {eta} left");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Bar(bar)
    }

    /// A bar over tables instead of points.
    pub(crate) fn tables(count: usize) -> Bar {
        let bar = Bar::new();
        bar.0.set_length(count as u64);
        bar
    }

    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn start(&self, points: usize, resumed: usize) {
        self.0.set_length(points as u64);
        self.0.set_position(resumed as u64);
        self.0.reset_eta();
        if resumed > 0 {
            eprintln!("going on with {resumed} of {points} points from an interrupted run");
        }
    }

    fn done(&self) {
        self.0.inc(1);
    }

    fn stopped(&self) -> bool {
        STOPPED.load(Ordering::Relaxed)
    }
}

/// Whether Ctrl-C was pressed.
pub(crate) fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// Runs something, with a bar on stderr from the third second on that follows its gauge.
pub(crate) fn watch<T>(gauge: &Gauge, what: &str, run: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return run();
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| follow(gauge, what, &over));
        // A panic, too, ends the watch: the scope waits for its threads.
        let _end = End(&over);
        run()
    })
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn follow(gauge: &Gauge, what: &str, over: &AtomicBool) {
    const SHOWN_AFTER: Duration = Duration::from_secs(2);
    const LOOK: Duration = Duration::from_millis(100);
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:24} {percent} %, {eta} left: {wide_msg}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    let begun = Instant::now();
    while !over.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
        let (done, all) = gauge.read();
        if begun.elapsed() > SHOWN_AFTER && all > 0 {
            bar.set_message(what.to_owned());
            bar.set_length(all);
            bar.set_position(done);
        }
    }
    bar.finish_and_clear();
}

/// The first Ctrl-C stops between two points, the second at once.
pub(crate) fn listen() {
    // Without a handler Ctrl-C ends the program, and what is finished is kept all the same.
    let _ = ctrlc::set_handler(|| {
        if STOPPED.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
        eprintln!("stopping after what is running; Ctrl-C again stops at once");
    });
}
