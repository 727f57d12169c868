//! What becomes of one descriptor.

use std::time::Duration;

use dray_spec::Status;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::{Chaos, Kind, Kinds};

/// Submissions of a queue that are disturbed as often as may be; of later ones one in [`LATER`], so that long programs end.
const FIRST: u64 = 1024;
const LATER: u64 = 16;
/// The step of delays: three in four of those that there are take no longer.
const STEP: Duration = Duration::from_micros(200);
/// The longest delay is this many doublings longer.
const DOUBLINGS: u32 = 7;

/// Of so many submissions one meets each kind of outage.
const OUTAGES: u64 = 64;
/// Entries of the smallest event log (spec 5.1).
const LEAST_LOG: u64 = 64;

/// Which submission a choice is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Submission {
    pub(crate) wq: u16,
    pub(crate) pasid: u32,
    /// Of this queue and address space, from 0.
    pub(crate) index: u64,
    /// In its batch, from 1; 0 for what came through the queue.
    pub(crate) member: u32,
}

/// What becomes of it. The default: nothing special.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Plan {
    /// Until it is executed.
    pub(crate) delay: Duration,
    /// From then until its record.
    pub(crate) record: Duration,
    /// In which order it writes the lines of its destination, and how many of them at the end.
    pub(crate) lines: Option<u64>,
    /// Where it has a page fault.
    pub(crate) fault: Option<u64>,
    /// How it ends instead of being executed. The second one is for a descriptor that blocks on faults.
    pub(crate) error: Option<(Status, Status)>,
    /// How long its queue answers retry afterwards.
    pub(crate) retry: Duration,
    /// The page of its record is not there.
    pub(crate) unrecorded: bool,
    /// What happens when it is about to be executed.
    pub(crate) outage: Option<Outage>,
    /// Who submits goes on when it has ended.
    pub(crate) prompt: bool,
    /// Its place among those that are due at once.
    pub(crate) rank: u64,
}

/// What befalls the queue of a descriptor, or the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outage {
    /// The queue is disabled for so long.
    Disable(Duration),
    /// What is in the queue is aborted.
    Abort,
    /// The device halts, and is reset after so long.
    Halt(Duration),
    /// The device halts, and no reset that a driver can make brings it back.
    Dead,
}

/// Sources of choices, one for each purpose: what one draws does not move the others.
struct Draws(ChaCha8Rng);

impl Draws {
    fn new(seed: u64, submission: Submission) -> Draws {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..16].copy_from_slice(&submission.index.to_le_bytes());
        bytes[16..20].copy_from_slice(&submission.pasid.to_le_bytes());
        bytes[20..24].copy_from_slice(&submission.member.to_le_bytes());
        bytes[24..26].copy_from_slice(&submission.wq.to_le_bytes());
        Draws(ChaCha8Rng::from_seed(bytes))
    }

    /// Once in `n`, and what else is to be chosen.
    fn once_in(&mut self, n: u64) -> Option<u64> {
        let (hit, choice) = (self.0.next_u64(), self.0.next_u64());
        hit.is_multiple_of(n).then_some(choice)
    }

    /// Once in `n`, some time with a heavy tail.
    fn time(&mut self, n: u64) -> Duration {
        let choice = self.once_in(n);
        choice.map_or(Duration::ZERO, |choice| {
            let doublings = (choice as u32).trailing_zeros().min(DOUBLINGS);
            let share = 1 + (choice >> 32) % 1000;
            STEP * (1 << doublings) * share as u32 / 1000
        })
    }

    /// The worst of those that there may be: each has draws of its own.
    fn outage(&mut self, kinds: Kinds) -> Option<Outage> {
        let disable = self.time(OUTAGES);
        let abort = self.once_in(OUTAGES).is_some();
        let halt = self.time(OUTAGES);
        let dead = self.once_in(OUTAGES).is_some();
        let all = [
            (dead, Kind::Dead, Outage::Dead),
            (!halt.is_zero(), Kind::Halt, Outage::Halt(halt)),
            (abort, Kind::Abort, Outage::Abort),
            (!disable.is_zero(), Kind::Disable, Outage::Disable(disable)),
        ];
        let mut due = all
            .into_iter()
            .filter(|(is_due, kind, _)| *is_due && kinds.contains(*kind));
        due.next().map(|(.., outage)| outage)
    }
}

impl Plan {
    /// The same for the same seed and submission; a kind that is left out leaves the rest as it is.
    pub(crate) fn of(chaos: &Chaos, submission: Submission) -> Plan {
        let mut draws = Draws::new(chaos.seed, submission);
        let rank = draws.0.next_u64();
        let is_late = submission.index >= FIRST && !draws.0.next_u64().is_multiple_of(LATER);
        if is_late || !chaos.covers(submission.index) {
            return Plan::default();
        }
        let has = |kind| chaos.kinds.contains(kind);
        let time = |kind, time: Duration| if has(kind) { time } else { Duration::ZERO };
        let some = |kind, choice: Option<u64>| choice.filter(|_| has(kind));
        let plan = Plan {
            delay: time(Kind::Delay, draws.time(3)),
            record: time(Kind::Record, draws.time(4)),
            lines: some(Kind::Lines, draws.once_in(2)),
            fault: some(Kind::Fault, draws.once_in(8)),
            retry: time(Kind::Retry, draws.time(16)),
            error: some(Kind::Error, draws.once_in(32)).map(error),
            outage: draws.outage(chaos.kinds),
            unrecorded: has(Kind::Log) && is_unrecorded(chaos.seed, submission),
            rank: if has(Kind::Delay) { rank } else { 0 },
            prompt: false,
        };
        match some(Kind::Prompt, draws.once_in(2)) {
            Some(_) => plan.at_once(),
            None => plan,
        }
    }

    /// It, without a delay.
    pub(crate) fn at_once(self) -> Plan {
        Plan {
            delay: Duration::ZERO,
            record: Duration::ZERO,
            rank: 0,
            prompt: true,
            ..self
        }
    }

    /// Whether it is as without an adversary.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Plan::default()
    }
}

/// Whether its record is one of many in a row whose page is not there: as many as the smallest event log has entries.
fn is_unrecorded(seed: u64, submission: Submission) -> bool {
    let row = Submission {
        index: submission.index / LEAST_LOG,
        // No batch has that many members.
        member: u32::MAX,
        ..submission
    };
    Draws::new(seed, row).once_in(8).is_some()
}

/// What becomes of an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Once,
    Lost,
    Twice,
    /// When nothing else is left to be done.
    Late,
}

impl Delivery {
    /// Of interrupt `index` of the device.
    pub(crate) fn of(chaos: &Chaos, index: u64) -> Delivery {
        // No queue has this number.
        let submission = Submission {
            wq: u16::MAX,
            pasid: 0,
            index,
            member: 0,
        };
        let choice = Draws::new(chaos.seed, submission).once_in(8);
        match choice.filter(|_| chaos.kinds.contains(Kind::Interrupt) && chaos.covers(index)) {
            None => Delivery::Once,
            Some(choice) => [Delivery::Lost, Delivery::Twice, Delivery::Late][choice as usize % 3],
        }
    }
}

fn error(choice: u64) -> (Status, Status) {
    let status = match choice % 3 {
        0 => Status::HARDWARE_ERROR_READ,
        1 => Status::HARDWARE_ERROR_WRITE,
        _ => Status::TRANSLATION_FAIL,
    };
    let blocked = match choice >> 32 & 1 {
        0 => Status::PAGE_FAULT_INVALID_RESPONSE,
        _ => status,
    };
    (status, blocked)
}

/// The order of `count` things, by a choice.
pub(super) fn shuffled(choice: u64, count: usize) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(choice);
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submission(index: u64) -> Submission {
        Submission {
            wq: 1,
            pasid: 7,
            index,
            member: 0,
        }
    }

    fn plans(chaos: &Chaos) -> Vec<Plan> {
        (0..512)
            .map(|index| Plan::of(chaos, submission(index)))
            .collect()
    }

    #[test]
    fn a_plan_follows_from_seed_and_submission() {
        let chaos = Chaos::new(1);
        assert_eq!(plans(&chaos), plans(&chaos));
        assert_ne!(plans(&chaos), plans(&Chaos::new(2)));
        let elsewhere = Submission {
            pasid: 8,
            ..submission(0)
        };
        assert_ne!(Plan::of(&chaos, elsewhere), Plan::of(&chaos, submission(0)));
    }

    #[test]
    fn a_kind_that_is_left_out_leaves_the_others() {
        let all = plans(&Chaos {
            kinds: Kinds::BROKEN,
            ..Chaos::new(3)
        });
        assert!(all.iter().any(|plan| plan.error.is_some()));
        let most = plans(&Chaos {
            kinds: Kinds::BROKEN.without(Kind::Lines),
            ..Chaos::new(3)
        });
        for (one, other) in all.into_iter().zip(most) {
            assert_eq!(Plan { lines: None, ..one }, other);
        }
        let none = Chaos {
            kinds: Kinds::NONE,
            ..Chaos::new(3)
        };
        assert!(plans(&none).iter().all(Plan::is_plain));
    }

    #[test]
    fn what_is_outside_of_the_window_is_plain() {
        let chaos: Chaos = "5@100-101".parse().unwrap();
        let disturbed = (0..512).filter(|index| !Plan::of(&chaos, submission(*index)).is_plain());
        assert_eq!(disturbed.collect::<Vec<_>>(), [100, 101]);
    }

    #[test]
    fn outages_are_rare_and_each_kind_has_its_own() {
        let of = |kinds: Kinds| {
            let chaos = Chaos {
                kinds,
                ..Chaos::new(8)
            };
            plans(&chaos).into_iter().filter_map(|plan| plan.outage)
        };
        assert_eq!(of(Kinds::ERRORS.with(Kind::Interrupt)).count(), 0);
        for kind in [Kind::Disable, Kind::Abort, Kind::Halt, Kind::Dead] {
            let alone: Vec<Outage> = of(Kinds::NONE.with(kind)).collect();
            assert!((1..32).contains(&alone.len()), "{kind:?}: {alone:?}");
            assert!(alone.iter().all(|outage| match outage {
                Outage::Disable(_) => kind == Kind::Disable,
                Outage::Abort => kind == Kind::Abort,
                Outage::Halt(_) => kind == Kind::Halt,
                Outage::Dead => kind == Kind::Dead,
            }));
        }
        assert!(of(Kinds::OUTAGES).all(|outage| outage != Outage::Dead));
    }

    #[test]
    fn one_in_two_ends_at_once() {
        let chaos: Chaos = "6:delay+record+prompt".parse().unwrap();
        let all = plans(&chaos);
        let prompt: Vec<&Plan> = all.iter().filter(|plan| plan.prompt).collect();
        assert!((128..384).contains(&prompt.len()), "{}", prompt.len());
        assert!(
            prompt
                .iter()
                .all(|plan| plan.delay + plan.record == Duration::ZERO)
        );
        let other: Chaos = "6:delay+record".parse().unwrap();
        for (one, other) in all.iter().zip(plans(&other)) {
            assert!(one.prompt || *one == other);
        }
    }

    #[test]
    fn records_fault_in_rows_that_fill_a_log() {
        let chaos = Chaos {
            kinds: Kinds::NONE.with(Kind::Log),
            ..Chaos::new(2)
        };
        let faults: Vec<bool> = (0..4096)
            .map(|index| Plan::of(&chaos, submission(index)).unrecorded)
            .collect();
        let rows = faults.chunks(LEAST_LOG as usize).take(16);
        let full = rows
            .clone()
            .filter(|row| row.iter().all(|fault| *fault))
            .count();
        let empty = rows.filter(|row| row.iter().all(|fault| !fault)).count();
        assert!(full > 0 && full + empty == 16, "{full}, {empty}");
    }

    #[test]
    fn delays_are_mostly_short_and_have_a_bound() {
        let chaos = Chaos::new(9);
        let mut delays: Vec<Duration> = plans(&chaos).iter().map(|plan| plan.delay).collect();
        delays.sort();
        assert_eq!(delays[delays.len() / 2], Duration::ZERO);
        let longest = delays[delays.len() - 1];
        assert!(longest > 4 * STEP && longest <= STEP * (1 << DOUBLINGS));
    }

    #[test]
    fn only_broken_hardware_loses_interrupts() {
        let deliveries = |kinds| {
            let chaos = Chaos {
                kinds,
                ..Chaos::new(4)
            };
            let all = (0..256).map(move |index| Delivery::of(&chaos, index));
            all.collect::<Vec<_>>()
        };
        let legal = deliveries(Kinds::ERRORS);
        assert!(legal.iter().all(|delivery| *delivery == Delivery::Once));
        let broken = deliveries(Kinds::BROKEN);
        for delivery in [
            Delivery::Once,
            Delivery::Lost,
            Delivery::Twice,
            Delivery::Late,
        ] {
            assert!(broken.contains(&delivery), "{delivery:?}");
        }
    }

    #[test]
    fn an_order_has_each_once() {
        for count in [0, 1, 2, 77] {
            let mut order = shuffled(5, count);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..count));
        }
        assert_ne!(shuffled(5, 77), shuffled(6, 77));
    }
}
