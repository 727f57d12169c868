//! What the sums of a session suggest, in plain words.

use dray_spec::{Opcode, Status};

use crate::launch::Ending;
use crate::stats::{Queue, Stats, Tally, operation_name, ratio};

/// Fewer descriptors are a try, and no load to give advice on.
const FEW: u64 = 32;
/// Below this many bytes a copy of one's own ends before a descriptor is back: the published
/// measurements have the break-even of single synchronous descriptors at about 4 KiB, a quarter of
/// it leaves no doubt.
const SMALL: u64 = 1024;
/// From this share of small submissions on, they are what the queue does.
const MOSTLY_PERCENT: u64 = 50;
/// A batch costs a descriptor and the reading of its list beside its members; below this many
/// members that is more than a quarter of all that the device fetches.
const SMALL_BATCH: u64 = 4;
/// More retries for each hundred descriptors: writers spend their time at a full queue.
const RETRIES_PERCENT: u64 = 10;

/// All of it, the queues in order.
pub(crate) fn of(stats: &Stats) -> Vec<String> {
    let mut advice = Vec::new();
    if !stats.queues.iter().any(Queue::has_been_used) {
        if let Some(said) = stats.ending.and_then(ended) {
            return vec![said];
        }
        let said = match (stats.queues.is_empty(), stats.unreached.is_empty()) {
            (true, _) => "no work queue was enabled: `accel-config load-config -e`, or `--profile`",
            (false, true) => {
                "no descriptor was submitted: the program did not find the device or did not use it; \
                 `dray doctor` says what programs look for"
            }
            // Who opened a node has found the device.
            (false, false) => "no descriptor was submitted: a node was opened, see above",
        };
        advice.push(said.to_owned());
        return advice;
    }
    for queue in &stats.queues {
        let name = queue.name();
        let found = [
            unused(queue),
            small(queue),
            batches(queue),
            retries(queue),
            lost(queue),
            deferrable(queue),
            posted(queue),
            faults(queue),
            errors(queue),
            under_way(queue),
        ];
        advice.extend(
            found
                .into_iter()
                .flatten()
                .map(|text| format!("{name}: {text}")),
        );
    }
    advice
}

/// Why a command has submitted nothing that did not come to it.
fn ended(ending: Ending) -> Option<String> {
    match ending {
        Ending::Signalled(number) => {
            let name = signal_name(number);
            let more = match number {
                libc::SIGILL => ": this processor lacks an instruction that the program has",
                _ => "",
            };
            Some(format!(
                "no descriptor was submitted before {name} ended the command{more}"
            ))
        }
        Ending::Exited(127) => Some(
            "no descriptor was submitted: exit code 127 says that there is no such command"
                .to_owned(),
        ),
        Ending::Exited(126) => Some(
            "no descriptor was submitted: exit code 126 says that the command cannot be executed"
                .to_owned(),
        ),
        // Shells report a signal of their command like this. Programs end with 255 where they say -1.
        Ending::Exited(code @ 129..=MOST_SIGNALLED) => {
            let name = signal_name(i32::from(code) - 128);
            Some(format!(
                "no descriptor was submitted: exit code {code} says that {name} ended a program"
            ))
        }
        Ending::Exited(_) => None,
    }
}

/// Exit code of a shell whose command the last signal (`SIGRTMAX`) has ended.
const MOST_SIGNALLED: u8 = 128 + 64;

/// `signal 11 (Segmentation fault)`, as the C library says.
fn signal_name(number: i32) -> String {
    // SAFETY: any number is one; the text stays until this thread asks again.
    let text = unsafe { libc::strsignal(number) };
    if text.is_null() {
        return format!("signal {number}");
    }
    // SAFETY: the C library's text has its end.
    let text = unsafe { std::ffi::CStr::from_ptr(text) };
    format!("signal {number} ({})", text.to_string_lossy())
}

fn unused(queue: &Queue) -> Option<String> {
    (!queue.has_been_used()).then(|| "never used: its entries would serve another queue".to_owned())
}

fn percent(of: u64, all: u64) -> u64 {
    of.saturating_mul(100) / all.max(1)
}

/// Whether an operation moves or reads as many bytes as its descriptor says.
fn has_size(operation: u8) -> bool {
    let without = [Opcode::Noop, Opcode::Batch, Opcode::Drain];
    !without.iter().any(|other| u8::from(*other) == operation)
}

fn small(queue: &Queue) -> Option<String> {
    let sized = queue.tallies.iter().filter(|(code, _)| has_size(**code));
    let (mut all, mut small) = (0, 0);
    for (_, tally) in sized {
        all += tally.submitted;
        // Element n holds what is below 2^n.
        small += tally.sizes[..=SMALL.ilog2() as usize].iter().sum::<u64>();
    }
    let share = percent(small, all);
    (all >= FEW && share >= MOSTLY_PERCENT).then(|| {
        format!("{share} % of the submissions are below 1 KiB: batch them, see `dray advise`")
    })
}

fn batches(queue: &Queue) -> Option<String> {
    let batches = queue.batches()?;
    let count = batches.count();
    (count >= FEW && batches.size < count * SMALL_BATCH).then(|| {
        let mean = ratio(batches.size, count);
        format!("batches have {mean} members on average: fewer than {SMALL_BATCH} do not pay for the list")
    })
}

fn retries(queue: &Queue) -> Option<String> {
    let submitted = queue.submitted();
    (queue.retries >= FEW && queue.retries.saturating_mul(100) > submitted * RETRIES_PERCENT).then(|| {
        format!(
            "{} retries for {submitted} submissions: a larger size or threshold, more queues, batches, \
             or a pause before the next attempt",
            queue.retries
        )
    })
}

fn lost(queue: &Queue) -> Option<String> {
    (queue.lost > 0).then(|| {
        let size = queue.size.map_or_else(String::new, |size| format!(" ({size})"));
        format!(
            "{} descriptors were lost: a dedicated queue does not report that it is full; keep no more \
             outstanding than it has entries{size}",
            queue.lost
        )
    })
}

fn deferrable(queue: &Queue) -> Option<String> {
    let count = queue.wrong_kind.deferrable;
    (count > 0).then(|| {
        format!(
            "{count} ENQCMD were answered with retry, as each will be: the queue is dedicated and takes \
             MOVDIR64B; make it shared (mode shared, with a threshold), or give the program another"
        )
    })
}

fn posted(queue: &Queue) -> Option<String> {
    let count = queue.wrong_kind.posted;
    (count > 0).then(|| {
        format!(
            "{count} MOVDIR64B were ignored without a report: the queue is shared and takes ENQCMD; \
             make it dedicated (mode dedicated), or give the program another"
        )
    })
}

fn faults(queue: &Queue) -> Option<String> {
    let faults = queue.faults();
    (faults > 0).then(|| {
        format!(
            "{faults} page faults: touch the pages before, or set block_on_fault of the queue and the \
             flag of the descriptor; `--faults touch` shows how it would be without"
        )
    })
}

fn errors(queue: &Queue) -> Option<String> {
    let errors = |tally: &Tally| tally.errors.iter().map(|(s, n)| (*n, *s)).max();
    let most = queue
        .tallies
        .iter()
        .filter_map(|(code, tally)| Some((errors(tally)?, *code)));
    let ((count, status), operation) = most.max()?;
    let status = Status(status);
    Some(format!(
        "{count} of {} ended with {}: {}",
        operation_name(operation),
        status.name(),
        status.describe()
    ))
}

fn under_way(queue: &Queue) -> Option<String> {
    (queue.under_way > 0).then(|| {
        format!(
            "{} descriptors had not ended when the command did",
            queue.under_way
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dray_device::WorkQueueMode;
    use dray_realtime::WrongKind;

    use super::*;

    fn queue(operation: Opcode, tally: Tally) -> Queue {
        Queue {
            device: 0,
            wq: 1,
            mode: Some(WorkQueueMode::Dedicated),
            size: Some(16),
            tallies: BTreeMap::from([(operation.into(), tally)]),
            retries: 0,
            lost: 0,
            wrong_kind: WrongKind::default(),
            under_way: 0,
            wait_ns: None,
        }
    }

    fn copies(count: u64, small: u64) -> Tally {
        let mut tally = Tally {
            submitted: count,
            ..Tally::default()
        };
        tally.sizes[10] = small;
        tally.sizes[11] = count - small;
        tally
    }

    fn said(queue: Queue) -> Vec<String> {
        of(&Stats::of(vec![queue]))
    }

    #[test]
    fn small_submissions_are_named_from_50_percent_on() {
        let said_of = |count, small| said(queue(Opcode::Memmove, copies(count, small)));
        assert_eq!(
            said_of(100, 92),
            ["wq0.1: 92 % of the submissions are below 1 KiB: batch them, see `dray advise`"]
        );
        assert_eq!(said_of(100, 50).len(), 1);
        assert!(said_of(100, 49).is_empty());
        assert_eq!(said_of(FEW, FEW).len(), 1);
        assert!(said_of(FEW - 1, FEW - 1).is_empty());
        assert!(said(queue(Opcode::Noop, copies(100, 100))).is_empty());
    }

    #[test]
    fn retries_losses_faults_and_errors_are_named() {
        let mut one = queue(Opcode::Memmove, copies(1000, 0));
        one.retries = 100;
        assert!(said(one.clone()).is_empty());
        one.retries = 110;
        one.lost = 3;
        one.under_way = 2;
        if let Some(tally) = one.tallies.get_mut(&u8::from(Opcode::Memmove)) {
            tally.faults = 4;
            tally.errors.insert(Status::BAD_OPCODE.code(), 5);
        }
        let said = said(one);
        for (text, words) in said.iter().zip([
            "110 retries for 1002",
            "3 descriptors were lost",
            "4 page faults",
            "5 of memmove ended with",
            "2 descriptors had not ended",
        ]) {
            assert!(text.contains(words), "{text}");
        }
        assert_eq!(said.len(), 5);
    }

    #[test]
    fn unused_queues_are_named() {
        let mut idle = queue(Opcode::Memmove, Tally::default());
        idle.tallies.clear();
        let used = queue(Opcode::Memmove, copies(1, 0));
        let both = of(&Stats::of(vec![idle.clone(), used]));
        assert_eq!(
            both,
            ["wq0.1: never used: its entries would serve another queue"]
        );
        assert!(said(idle)[0].starts_with("no descriptor was submitted"));
        assert!(of(&Stats::of(Vec::new()))[0].starts_with("no work queue was enabled"));
    }

    #[test]
    fn a_command_that_ended_early_is_not_told_to_look_for_the_device() {
        let mut idle = queue(Opcode::Memmove, Tally::default());
        idle.tallies.clear();
        for (ending, words) in [
            (
                Ending::Signalled(4),
                "before signal 4 (Illegal instruction)",
            ),
            (
                Ending::Signalled(11),
                "before signal 11 (Segmentation fault)",
            ),
            (Ending::Exited(127), "no such command"),
            (Ending::Exited(126), "cannot be executed"),
            (Ending::Exited(139), "signal 11"),
            (Ending::Exited(0), "did not find the device"),
            (Ending::Exited(1), "did not find the device"),
            (Ending::Exited(255), "did not find the device"),
        ] {
            let stats = Stats::of(vec![idle.clone()]).with(Vec::new(), Some(ending));
            assert!(
                of(&stats)[0].contains(words),
                "{ending:?}: {:?}",
                of(&stats)
            );
            let mut used = queue(Opcode::Memmove, copies(1, 0));
            used.wq = 0;
            let stats = Stats::of(vec![used]).with(Vec::new(), Some(ending));
            assert_eq!(of(&stats), [""; 0]);
        }
    }

    #[test]
    fn writes_of_the_wrong_kind_are_named() {
        let mut one = queue(Opcode::Memmove, Tally::default());
        one.tallies.clear();
        one.wrong_kind.deferrable = 7;
        let text = said(one.clone());
        assert!(
            text[0].starts_with("wq0.1: 7 ENQCMD were answered with retry"),
            "{text:?}"
        );
        one.wrong_kind = WrongKind {
            posted: 3,
            deferrable: 0,
        };
        let text = said(one);
        assert!(
            text[0].starts_with("wq0.1: 3 MOVDIR64B were ignored"),
            "{text:?}"
        );
    }

    #[test]
    fn small_batches_are_named() {
        let batch = |size| Tally {
            submitted: 100,
            size,
            ..Tally::default()
        };
        assert_eq!(said(queue(Opcode::Batch, batch(399))).len(), 1);
        assert!(said(queue(Opcode::Batch, batch(400))).is_empty());
    }
}
