//! An adversary that takes a queue or the device away from its programs, and gives it back as its driver would.

use std::time::{Duration, Instant};

use dray_device::{Configuration, Effect, Function};
use dray_spec::registers::{
    self, Command, CommandRegister, DeviceState, ResetType, WorkQueueState,
};

use super::Dispatcher;
use crate::SharedMemory;
use crate::chaos::Outage;
use crate::request::{Action, Answer, Request, When};

impl<M: SharedMemory> Dispatcher<M> {
    /// Has an outage begin: of the queue, or of the device.
    #[cold]
    pub(super) fn begin_outage(&mut self, outage: Outage, wq: u16) {
        // There are at most 256.
        let Ok(wq) = u8::try_from(wq) else {
            return;
        };
        let first = match outage {
            // Commands are the driver's: one of somebody else's would be a surprise to it.
            Outage::Disable(_) | Outage::Abort if self.is_driven => return,
            Outage::Disable(_) | Outage::Abort => When::CommandEnded,
            Outage::Halt(_) | Outage::Dead => When::Now,
        };
        let action = match outage {
            Outage::Disable(time) => disable(wq, time),
            Outage::Abort => abort(wq),
            Outage::Halt(time) => halt(ResetType::Command, (!self.is_driven).then_some(time)),
            Outage::Dead => halt(ResetType::Warm, None),
        };
        self.requests.push(Request {
            when: first,
            action,
        });
        self.serve_requests();
    }
}

/// Nobody waits for the end.
fn over() -> Result<Answer, When> {
    Ok(Box::new(|| ()))
}

fn issue(function: &mut Function, command: Command, operand: u32, effects: &mut Vec<Effect>) {
    let register = CommandRegister::of(command, operand).into_bits();
    function.write32(registers::CMD, register, effects);
}

/// How long a device that has halted may take to come back.
const COMES_BACK: Duration = Duration::from_secs(1);
/// From one look whether it has to the next.
const LOOK: Duration = Duration::from_millis(1);

/// As whoever administers the machine does it.
fn disable(wq: u8, time: Duration) -> Action {
    let mut disabled = false;
    let mut until = None;
    let given_up = Instant::now() + time + COMES_BACK;
    Box::new(move |function, effects| {
        if function.state() != DeviceState::Enabled {
            // A device that halted meanwhile comes back with this queue as it is.
            let comes_back = disabled && function.reset_type() == ResetType::Command;
            return match comes_back && Instant::now() < given_up {
                true => Err(When::At(Instant::now() + LOOK)),
                false => over(),
            };
        }
        if !std::mem::replace(&mut disabled, true) {
            if function.queue_state(wq.into()) != Some(WorkQueueState::Enabled) {
                return over();
            }
            issue(
                function,
                Command::DisableWq,
                CommandRegister::queue(wq),
                effects,
            );
            return Err(When::CommandEnded);
        }
        let until = *until.get_or_insert_with(|| Instant::now() + time);
        if Instant::now() < until {
            return Err(When::At(until));
        }
        if function.is_command_active() {
            return Err(When::CommandEnded);
        }
        if function.queue_state(wq.into()) == Some(WorkQueueState::Disabled) {
            issue(function, Command::EnableWq, wq.into(), effects);
        }
        over()
    })
}

fn abort(wq: u8) -> Action {
    Box::new(move |function, effects| {
        if function.queue_state(wq.into()) == Some(WorkQueueState::Enabled) {
            issue(
                function,
                Command::AbortWq,
                CommandRegister::queue(wq),
                effects,
            );
        }
        over()
    })
}

/// Halts; with a time, resets and configures the device again so much later, as Linux does (`idxd_device_reinit`).
fn halt(reset: ResetType, again_after: Option<Duration>) -> Action {
    let mut kept: Option<(Configuration, Instant)> = None;
    let mut is_reset = false;
    Box::new(move |function, effects| {
        let Some((configuration, until)) = &kept else {
            // In the middle of a command there are no queues to come back to.
            if function.state() != DeviceState::Enabled || function.is_command_active() {
                return over();
            }
            let configuration = function.configuration();
            function.halt(reset, effects);
            let Some(time) = again_after else {
                return over();
            };
            let until = Instant::now() + time;
            kept = Some((configuration, until));
            return Err(When::At(until));
        };
        if !is_reset {
            debug_assert!(*until <= Instant::now(), "it is asked at its time");
            // Somebody else has reset it, or it needs more by now.
            let resets = function.state() == DeviceState::Halted
                && function.reset_type() == ResetType::Command;
            if !resets {
                return over();
            }
            is_reset = true;
            issue(function, Command::ResetDevice, 0, effects);
            if function.is_command_active() {
                return Err(When::CommandEnded);
            }
        }
        if function.state() == DeviceState::Disabled {
            let enabled = function.configure_again(configuration, effects);
            debug_assert_eq!(enabled, Ok(()), "it was enabled with that");
        }
        over()
    })
}
