//! What tiering costs a program whose memory fits the fast tier: core time with and without, in turn.

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use serde::Serialize;

use crate::TierError;
use crate::launch::{Launch, launch};
use crate::session::Setup;

/// Core time of a program and its children.
#[derive(Debug, Clone, Serialize)]
pub struct ProgramCost {
    /// Seconds without dray, by run.
    pub plain_s: Vec<f64>,
    /// Seconds with dray, by run.
    pub tiered_s: Vec<f64>,
    /// What it costs more, in percent: the mean over all pairs, and its 95 % interval.
    pub percent: Interval,
}

/// A mean and where it is with a probability of 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Of two values or more, by Student's distribution.
    fn of(values: &[f64]) -> Interval {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let half = student(count - 1.0) * error;
        Interval {
            mean,
            low: mean - half,
            high: mean + half,
        }
    }
}

/// The 97.5 % quantile of Student's distribution, from the normal one's (Cornish and Fisher's series;
/// Abramowitz and Stegun, 26.7.5): within 1 % from 3 degrees of freedom on.
fn student(freedom: f64) -> f64 {
    let z: f64 = 1.959_964;
    let power = |n: i32| z.powi(n);
    z + (power(3) + z) / (4.0 * freedom)
        + (5.0 * power(5) + 16.0 * power(3) + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * z)
            / (384.0 * freedom.powi(3))
}

/// Runs a program so often without dray, and so often with it, in turn.
///
/// # Errors
/// It cannot be started, or does not end with exit code 0.
pub fn program(
    setup: &Setup,
    library: &'static [u8],
    program: &[OsString],
    runs: usize,
) -> Result<ProgramCost, TierError> {
    let (mut plain_s, mut tiered_s) = (Vec::new(), Vec::new());
    for run in 0..runs.max(2) {
        // What comes first in a pair changes from pair to pair.
        let order = match run % 2 {
            0 => [false, true],
            _ => [true, false],
        };
        for tiered in order {
            let before = children();
            let code = match tiered {
                false => plain(program)?,
                true => {
                    let ended = launch(&Launch {
                        setup: *setup,
                        knobs: Vec::new(),
                        program: program.to_vec(),
                        library,
                    })?;
                    ended.signal.map_or(i32::from(ended.code), |signal| -signal)
                }
            };
            if code != 0 {
                return Err(TierError::Io {
                    what: "running the program",
                    source: std::io::Error::other(format!("it ends with {code}")),
                });
            }
            let spent = (children() - before).as_secs_f64();
            match tiered {
                true => tiered_s.push(spent),
                false => plain_s.push(spent),
            }
        }
    }
    let pairs = plain_s.iter().zip(&tiered_s);
    let percent: Vec<f64> = pairs.map(|(a, b)| (b / a - 1.0) * 100.0).collect();
    Ok(ProgramCost {
        percent: Interval::of(&percent),
        plain_s,
        tiered_s,
    })
}

fn plain(program: &[OsString]) -> Result<i32, TierError> {
    let failed = |source| TierError::Io {
        what: "running the program",
        source,
    };
    let (name, arguments) = program
        .split_first()
        .ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?;
    let status = Command::new(name)
        .args(arguments)
        .status()
        .map_err(failed)?;
    Ok(status.code().unwrap_or(-1))
}

/// Core time of all children that have ended.
fn children() -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the place is written to.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    // SAFETY: all zeros, or what the call has written.
    let usage = unsafe { usage.assume_init() };
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// A program that goes through memory that fits: core time goes to accesses alone.
pub fn fits(accesses: u64) -> u64 {
    const WORDS: usize = 8 << 20;
    let mut words = vec![1u64; WORDS];
    let (mut state, mut sum) = (1u64, 0u64);
    for _ in 0..accesses {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let word = &mut words[(state >> 33) as usize % WORDS];
        *word = word.wrapping_add(state);
        sum = sum.wrapping_add(*word);
    }
    sum
}

/// A program that maps, fills, drops and unmaps memory all the time.
pub fn churns(rounds: u64) -> u64 {
    const BYTES: usize = 1 << 20;
    let mut sum = 0;
    for round in 0..rounds {
        // SAFETY: new pages wherever there is room.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return 0;
        }
        for page in (0..BYTES).step_by(4096) {
            // SAFETY: within what was just mapped.
            let byte = unsafe { start.cast::<u8>().add(page) };
            // SAFETY: as above.
            unsafe { byte.write_volatile(round as u8) };
            sum += 1;
        }
        // SAFETY: the second half of it.
        let half = unsafe { start.cast::<u8>().add(BYTES / 2) };
        // SAFETY: memory that nothing refers to.
        unsafe { libc::madvise(half.cast(), BYTES / 2, libc::MADV_DONTNEED) };
        // SAFETY: as above.
        unsafe { libc::munmap(start, BYTES) };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, expected) in [(3.0, 3.182), (5.0, 2.571), (20.0, 2.086), (100.0, 1.984)] {
            let got = student(freedom);
            assert!((got / expected - 1.0).abs() < 0.01, "{freedom}: {got}");
        }
        let interval = Interval::of(&[1.0, 2.0, 3.0, 4.0]);
        assert!((interval.mean - 2.5).abs() < 1e-12);
        assert!((interval.high - interval.low - 2.0 * 3.182 * 0.6455).abs() < 0.05);
    }

    #[test]
    fn the_programs_do_what_they_are_for() {
        assert_ne!(fits(1000), 0);
        assert_eq!(churns(3), 3 * 256);
    }
}
