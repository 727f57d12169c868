//! Many seeds: which of them make a command fail, and by which of their choices.

use std::ffi::OsString;
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;
use dray_figures::Progress;
use dray_output::{counted, quoted};
use dray_run::{Chaos, Kinds};

use super::findings::FOUND;
use crate::complain::Usage;
use crate::progress::{self, Bar};

/// Seeds whose choices are reduced.
const REDUCED: usize = 8;
/// Lines of a failed run that are printed.
const LINES: usize = 20;
/// Submissions behind which no choice is looked for.
const MOST_SUBMISSIONS: u64 = 1 << 20;
const LOOK: Duration = Duration::from_millis(5);

/// One seed or several, with the same kinds and submissions.
#[derive(Debug, Clone)]
pub(super) struct Seeds {
    first: Chaos,
    last: u64,
}

impl Seeds {
    pub(super) fn first(&self) -> Chaos {
        self.first
    }

    pub(super) fn are_many(&self) -> bool {
        self.last > self.first.seed
    }

    fn all(&self) -> impl Iterator<Item = Chaos> {
        let first = self.first;
        (first.seed..=self.last).map(move |seed| Chaos { seed, ..first })
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seeds, String> {
        let end = text.find([':', '@']).unwrap_or(text.len());
        let (seeds, rest) = text.split_at(end);
        let Some((first, last)) = seeds.split_once("..") else {
            let first: Chaos = text.parse().map_err(|error| format!("{error}"))?;
            return Ok(Seeds {
                last: first.seed,
                first,
            });
        };
        let first: Chaos = format!("{first}{rest}")
            .parse()
            .map_err(|error| format!("{error}"))?;
        let last = last.trim_start_matches('=');
        let last = last
            .parse()
            .map_err(|_| format!("{last:?} is no seed: a seed is a number"))?;
        match last < first.seed {
            true => Err(format!("{seeds} has no seed: the first one is the larger")),
            false => Ok(Seeds { first, last }),
        }
    }
}

/// How a run ended that was not stopped.
struct Run {
    status: ExitStatus,
    output: String,
}

impl Run {
    fn failed(&self) -> bool {
        !self.status.success()
    }

    /// Whether `--sanitize` has summed up findings.
    fn has_findings(&self) -> bool {
        let mut lines = self.output.lines();
        lines.any(|line| line.starts_with(FOUND))
    }

    fn ending(&self) -> String {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "no end".to_owned(),
        }
    }

    /// The last lines of what it has written.
    fn say(&self) {
        let lines: Vec<&str> = self.output.lines().collect();
        let left_out = lines.len().saturating_sub(LINES);
        if left_out > 0 {
            eprintln!("  ({} before)", counted(left_out, "line"));
        }
        for line in &lines[left_out..] {
            eprintln!("  {line}");
        }
    }
}

/// The command line of this process, to be run again with other choices.
struct Again {
    arguments: Vec<OsString>,
    /// Where the choices stand.
    at: usize,
}

impl Again {
    /// `command`: how many of the arguments are the command's.
    fn new(command: usize) -> anyhow::Result<Again> {
        let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        let own = arguments.len() - command;
        // Without a value of its own: `--chaos=1..9` is two words.
        let joined = arguments[..own].iter().position(|word| {
            word.to_str()
                .is_some_and(|word| word.starts_with("--chaos="))
        });
        if let Some(at) = joined {
            let value = OsString::from("");
            arguments.splice(at..=at, [OsString::from("--chaos"), value]);
        }
        let at = arguments.iter().position(|word| word == "--chaos");
        let at = at.context("no --chaos among the arguments")? + 1;
        Ok(Again { arguments, at })
    }

    fn arguments(&self, chaos: &Chaos) -> Vec<OsString> {
        let mut arguments = self.arguments.clone();
        arguments[self.at] = chaos.to_string().into();
        arguments
    }

    fn line(&self, chaos: &Chaos) -> String {
        let words = self.arguments(chaos);
        let words = words.iter().map(|word| quoted(&word.to_string_lossy()));
        let all: Vec<String> = std::iter::once("dray".to_owned()).chain(words).collect();
        all.join(" ")
    }

    /// Runs the command; `None` if it was stopped by Ctrl-C.
    fn run(&self, chaos: &Chaos) -> anyhow::Result<Option<Run>> {
        let mut output = tempfile::tempfile().context("no temporary file")?;
        let own = std::env::current_exe().context("this program is not there any more")?;
        let child = Command::new(own)
            .args(self.arguments(chaos))
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("no temporary file")?)
            .stderr(output.try_clone().context("no temporary file")?)
            .spawn()
            .context("a session cannot be started")?;
        let Some(status) = wait(child)? else {
            return Ok(None);
        };
        output.rewind().context("a temporary file")?;
        let mut bytes = Vec::new();
        output.read_to_end(&mut bytes).context("a temporary file")?;
        let output = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Some(Run { status, output }))
    }

    fn fails(&self, chaos: &Chaos) -> anyhow::Result<bool> {
        Ok(self.run(chaos)?.is_some_and(|run| run.failed()))
    }
}

/// Waits for a session; `None` if Ctrl-C was pressed meanwhile, which ends it.
fn wait(mut child: Child) -> anyhow::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait().context("waiting for a session")? {
            return Ok((!progress::stopped()).then_some(status));
        }
        if progress::stopped() {
            let pid = i32::try_from(child.id()).ok();
            if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
                // It may have ended by itself.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            child.wait().context("waiting for a session")?;
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

/// Runs the command of this process with each seed. `command`: how many of the arguments are its. `file`: an option
/// that names a file.
pub(super) fn try_all(
    seeds: &Seeds,
    command: usize,
    file: Option<&str>,
) -> anyhow::Result<ExitCode> {
    if let Some(option) = file {
        return Err(Usage::error(
            format!("{option} has one file, and each seed a session of its own"),
            format!("with one seed: --chaos SEED {option} FILE"),
        ));
    }
    let again = Again::new(command)?;
    progress::listen();
    let calm = Chaos {
        kinds: Kinds::NONE,
        ..seeds.first
    };
    let Some(run) = again.run(&calm)? else {
        return Ok(stopped());
    };
    if run.failed() {
        eprintln!(
            "error: the command fails without an adversary too: {}",
            run.ending()
        );
        run.say();
        return Ok(ExitCode::FAILURE);
    }
    let count = (seeds.last - seeds.first.seed).saturating_add(1);
    let (mut tried, mut failed, mut found) = (0, 0, 0);
    let bar = Bar::new("seed");
    bar.start(count as usize, 0);
    for chaos in seeds.all() {
        let Some(run) = again.run(&chaos)? else {
            break;
        };
        tried += 1;
        found += usize::from(!run.failed() && run.has_findings());
        if run.failed() {
            failed += 1;
            bar.suspend(|| report(&again, &chaos, &run, failed <= REDUCED))?;
        }
        bar.done();
    }
    bar.clear();
    eprintln!("{failed} of {} failed", counted(tried, "seed"));
    if found > 0 {
        eprintln!(
            "note: {} with findings did not fail: --sanitize=error has such a seed fail, and shows them",
            counted(found, "seed")
        );
    }
    match (progress::stopped(), failed) {
        (true, _) => Ok(stopped()),
        (false, 0) => Ok(ExitCode::SUCCESS),
        (false, _) => Ok(ExitCode::FAILURE),
    }
}

/// As a shell reports SIGINT.
fn stopped() -> ExitCode {
    ExitCode::from(130)
}

/// Prints a seed that fails, and which of its choices matter.
fn report(again: &Again, chaos: &Chaos, run: &Run, reduce: bool) -> anyhow::Result<()> {
    eprintln!("seed {}: {}", chaos.seed, run.ending());
    run.say();
    let found = match reduce {
        true => reduced(again, chaos)?,
        false => Some(*chaos),
    };
    match found {
        Some(found) => println!("{}", again.line(&found)),
        None => {
            println!("{}", again.line(chaos));
            eprintln!(
                "note: it does not fail each time: when the program submits makes the difference"
            );
        }
    }
    Ok(())
}

/// The choices that matter: with fewer kinds or submissions the command does not fail. `None` if it does not fail again with
/// all of them.
fn reduced(again: &Again, chaos: &Chaos) -> anyhow::Result<Option<Chaos>> {
    if !again.fails(chaos)? {
        return Ok(None);
    }
    let mut fewer_kinds = *chaos;
    for kind in chaos.kinds.iter() {
        let less = Chaos {
            kinds: fewer_kinds.kinds.without(kind),
            ..fewer_kinds
        };
        if again.fails(&less)? {
            fewer_kinds = less;
        }
    }
    let until = |last| Chaos {
        window: (chaos.window.0, last),
        ..fewer_kinds
    };
    let Some(last) = least(chaos.window, |last| again.fails(&until(last)))? else {
        return Ok(Some(fewer_kinds));
    };
    let from = |first| Chaos {
        window: (first, last),
        ..fewer_kinds
    };
    // The last first submission with which it fails is before the least one with which it does not.
    let passes = |first| again.fails(&from(first)).map(|fails| !fails);
    let passing = least((chaos.window.0, last), passes)?;
    let first = passing.map_or(last, |first| first.saturating_sub(1).max(chaos.window.0));
    match again.fails(&from(first))? {
        true => Ok(Some(from(first))),
        false => Ok(Some(until(last))),
    }
}

/// The least number of a range with which something holds, as if it held for all behind it; `None` if it does not hold for
/// as many as are looked at.
fn least(
    (first, last): (u64, u64),
    mut holds: impl FnMut(u64) -> anyhow::Result<bool>,
) -> anyhow::Result<Option<u64>> {
    let last = last.min(first.saturating_add(MOST_SUBMISSIONS));
    let (mut below, mut step) = (first, 1);
    let mut at = first;
    while !holds(at)? {
        if at == last {
            return Ok(None);
        }
        below = at + 1;
        at = at.saturating_add(step).min(last);
        step *= 2;
    }
    while below < at {
        let middle = below + (at - below) / 2;
        match holds(middle)? {
            true => at = middle,
            false => below = middle + 1,
        }
    }
    Ok(Some(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(text: &str) -> Result<(String, u64), String> {
        let seeds: Seeds = text.parse()?;
        Ok((seeds.first.to_string(), seeds.last))
    }

    #[test]
    fn seeds_are_one_or_a_range_with_the_same_choices() {
        let of = |first: &str, last| Ok((first.to_owned(), last));
        assert_eq!(seeds("7"), of("7", 7));
        assert_eq!(seeds("1..1000"), of("1", 1000));
        assert_eq!(seeds("1..=9:fault@0-3"), of("1:fault@0-3", 9));
        for text in ["", "..", "1..", "..3", "5..4", "1..3:dealy", "1..3@2"] {
            assert!(seeds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_least_number_is_found_in_few_steps() {
        for target in [0, 1, 2, 3, 7, 8, 1000, 100_000] {
            let mut steps = 0;
            let found = least((0, u64::MAX), |n| {
                steps += 1;
                Ok(n >= target)
            });
            assert_eq!(found.expect("no error"), Some(target));
            assert!(steps < 40, "{steps}");
        }
        assert_eq!(least((3, 9), |_| Ok(false)).expect("no error"), None);
        assert_eq!(least((3, 9), |n| Ok(n == 9)).expect("no error"), Some(9));
        assert_eq!(least((3, 3), |_| Ok(true)).expect("no error"), Some(3));
    }
}
