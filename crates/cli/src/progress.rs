//! The progress bar, and Ctrl-C.

use std::io::{self, IsTerminal};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dray_bench::Gauge;
use dray_figures::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::said;

/// Set by the first Ctrl-C. A program that asks for an answer has a flag of its own for it.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// A bar on stderr; silent where stderr is no terminal.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    noun: &'static str,
    /// The flag of the program that has asked.
    stop: Option<Arc<AtomicBool>>,
    /// Until it is said how long the points will take: since when they run, and how many were known.
    unsaid: Mutex<Option<(Instant, u64)>>,
}

impl Bar {
    /// A bar over so many of something, as `point`.
    pub(crate) fn new(noun: &'static str) -> Bar {
        let target = match said::is_kept() {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{bar:32} {pos}/{len} {msg}, {eta} left");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_message(format!("{noun}s"));
        Bar {
            bar,
            noun,
            stop: said::stop(),
            unsaid: Mutex::new(None),
        }
    }

    /// A bar over tables instead of points.
    pub(crate) fn tables(count: usize) -> Bar {
        let bar = Bar::new("table");
        bar.bar.set_length(count as u64);
        bar
    }

    /// Says once how long the points will take, where that is long: after a second of them.
    fn say_time_left(&self) {
        const SAID_AFTER: Duration = Duration::from_secs(1);
        const LONG: Duration = Duration::from_secs(10);
        let mut unsaid = self.unsaid.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((begun, resumed)) = *unsaid else {
            return;
        };
        let (time, position) = (begun.elapsed(), self.bar.position());
        let all = self.bar.length().unwrap_or(position);
        if time < SAID_AFTER || position <= resumed {
            return;
        }
        *unsaid = None;
        let left = time.mul_f64((all - position) as f64 / (position - resumed) as f64);
        if left > LONG {
            self.bar.suspend(|| {
                eprintln!(
                    "the {}s take about {}; Ctrl-C keeps what is done",
                    self.noun,
                    dray_output::rough(left)
                );
            });
        }
    }

    /// Prints something meanwhile.
    pub(crate) fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        self.bar.suspend(print)
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn start(&self, points: usize, resumed: usize) {
        self.bar.set_length(points as u64);
        self.bar.set_position(resumed as u64);
        self.bar.reset_eta();
        let unsaid = Some((Instant::now(), resumed as u64));
        *self.unsaid.lock().unwrap_or_else(PoisonError::into_inner) = unsaid;
        let all = dray_output::counted(points, self.noun);
        match resumed {
            0 => eprintln!("{all}"),
            _ => eprintln!("going on with {resumed} of {all} from an interrupted run"),
        }
    }

    fn phase(&self, name: &str, steps: usize) {
        *self.unsaid.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.bar.set_length(steps as u64);
        self.bar.set_position(0);
        self.bar.reset_eta();
        self.bar.set_message(name.to_owned());
    }

    fn done(&self) {
        self.bar.inc(1);
        self.say_time_left();
    }

    fn stopped(&self) -> bool {
        let stop = self.stop.as_deref().unwrap_or(&STOPPED);
        stop.load(Ordering::Relaxed)
    }
}

/// Whether Ctrl-C was pressed.
pub(crate) fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// Runs something, with a bar on stderr from the third second on that follows its gauge.
pub(crate) fn watch<T>(gauge: &Gauge, what: &str, run: impl FnOnce() -> T) -> T {
    if said::is_kept() || !io::stderr().is_terminal() {
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

/// The first Ctrl-C stops between two points, the second at once. A program that has asked listens itself.
pub(crate) fn listen() {
    if said::is_kept() {
        return;
    }
    // Without a handler Ctrl-C ends the program, and what is finished is kept all the same.
    let _ = ctrlc::set_handler(|| {
        if STOPPED.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
        eprintln!("stopping after what is running; Ctrl-C again stops at once");
    });
}
