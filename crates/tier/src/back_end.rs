//! The wall between policies and the machine: one trait, over which every policy runs unchanged.
//!
//! | back end | memory | pages move by |
//! |---|---|---|
//! | [`UffdBackEnd`], the default | this process's | `UFFDIO_MOVE`, the engine and its copiers |
//! | [`KernelBackEnd`](crate::kernel::KernelBackEnd) | another process's | move_pages(2) |
//! | `modelled::ModelledMemory` | a modelled program's | the clock of virtual time alone |

mod uffd;

pub use uffd::UffdBackEnd;

use std::borrow::Cow;
use std::time::Duration;

use crate::TierError;
use crate::knobs::Knob;
use crate::mechanism::Block;
use crate::policy::{Policy, Room};
use crate::session::{Reason, Session};
use crate::sys::PAGE;

/// Memory on two tiers whose pages can move.
pub trait BackEnd {
    /// As in messages.
    fn name(&self) -> &'static str;

    /// Pages that the program has in the fast tier and in the slow one.
    fn used(&self) -> [u64; 2];

    /// What a policy decides on, in the order of the numbers: blocks, those of a huge page as one.
    fn units(&mut self) -> Cow<'_, [(u64, Block)]>;

    /// Moves units to the other tier, as far as that can be done now; `room` says in which interval.
    /// It is called once for demotion and then once for promotion in every interval, with no units too.
    ///
    /// # Errors
    /// No page can be moved any more. A page that cannot is no error: it is counted.
    fn migrate(&mut self, reason: Reason, units: &[u64], room: &Room) -> Result<(), TierError>;
}

/// What an interval may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Pages that the fast tier holds at most.
    pub fast: u64,
    /// Pages that are to be free there.
    pub keep_free: u64,
    /// Pages that the slow tier holds at most.
    pub slow: u64,
    /// Pages that may be promoted.
    pub promote: u64,
    /// Intervals in which a block that moved does not move back.
    pub ping_pong: u32,
    /// Intervals from one cooling to the next.
    pub cooling: u32,
}

impl Limits {
    /// Those of a session in which `fast` bytes are left to a process, after `since` without promotion.
    pub fn of(session: Session, fast: u64, since: Duration) -> Limits {
        let setup = session.setup();
        let rate = session.knob(Knob::PromoteRateLimit) * 1_000_000 / PAGE;
        // What was not used for long is not made up for.
        let millis = since.min(Duration::from_secs(1)).as_millis() as u64;
        Limits {
            fast: fast / PAGE,
            keep_free: keep_free(session) / PAGE,
            slow: setup.bytes[1] / PAGE,
            promote: rate * millis / 1000,
            ping_pong: intervals(session, Knob::PingPongMs),
            cooling: intervals(session, Knob::CoolingMs),
        }
    }
}

/// Bytes that are to be free in the fast tier.
pub(crate) fn keep_free(session: Session) -> u64 {
    let scale = session.knob(Knob::DemoteScaleFactor);
    (session.setup().bytes[0] / 10_000)
        .saturating_mul(scale)
        .max(crate::mechanism::BLOCK)
}

fn intervals(session: Session, knob: Knob) -> u32 {
    let count = session.knob(knob).div_ceil(session.knob(Knob::IntervalMs));
    count.min(u32::MAX.into()) as u32
}

/// A policy that is carried out, interval after interval.
pub struct Tiering {
    policy: Box<dyn Policy>,
    interval: u32,
    cooled: u32,
}

impl std::fmt::Debug for Tiering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tiering")
            .field("policy", &self.policy.name())
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

impl Tiering {
    /// By a policy.
    pub fn new(policy: Box<dyn Policy>) -> Tiering {
        Tiering {
            policy,
            interval: 0,
            cooled: 0,
        }
    }

    /// The policy.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// Intervals so far.
    pub fn interval(&self) -> u32 {
        self.interval
    }

    /// Whether access counts are to be halved before the next interval.
    pub fn cools(&mut self, limits: &Limits) -> bool {
        let due = self.interval + 1 - self.cooled >= limits.cooling;
        if due {
            self.cooled = self.interval + 1;
        }
        due
    }

    /// One interval: the policy decides, the back end moves.
    ///
    /// # Errors
    /// As [`BackEnd::migrate`].
    pub fn step(&mut self, back_end: &mut dyn BackEnd, limits: &Limits) -> Result<(), TierError> {
        self.interval += 1;
        let [fast_used, slow_used] = back_end.used();
        let room = Room {
            fast_limit: limits.fast,
            fast_used,
            keep_free: limits.keep_free,
            slow_room: limits.slow.saturating_sub(slow_used),
            promote: limits.promote,
            interval: self.interval,
            ping_pong: limits.ping_pong,
            cooling: limits.cooling,
        };
        let plan = self.policy.decide(&back_end.units(), &room);
        back_end.migrate(Reason::Demotion, &plan.demote, &room)?;
        back_end.migrate(Reason::NumaMisplaced, &plan.promote, &room)
    }
}

#[cfg(test)]
mod tests;
