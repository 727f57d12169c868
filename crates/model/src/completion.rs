//! From an engine back to the core: records are written and seen.

use dray_device::Effect;

use crate::engine::{Ending, EngineAt};
use crate::memory::record_at;
use crate::world::World;

impl World {
    /// Keeps how a descriptor will end; the index of that.
    #[inline]
    pub(crate) fn keep(&mut self, ending: Ending) -> u32 {
        match self.free_pending.pop() {
            Some(index) => {
                self.pending[index as usize] = ending;
                index
            }
            None => {
                self.pending.push(ending);
                self.pending.len() as u32 - 1
            }
        }
    }

    /// A descriptor has ended.
    #[inline]
    pub(crate) fn ended(&mut self, pending: u32) {
        let Ending {
            id,
            at,
            member,
            ref outcome,
        } = self.pending[pending as usize];
        let run = &mut self.devices[at.device()];
        run.device.done(id, outcome, &mut self.effects);
        self.free_pending.push(pending);
        self.apply_effects(at.device());
        if member {
            self.member_ended(at);
        }
    }

    /// A fence may have been waiting for a member.
    #[inline]
    pub(crate) fn member_ended(&mut self, at: EngineAt) {
        let ahead = self.parameters.engine_fetch_ahead();
        let engine = self.engine(at);
        if engine.fenced || engine.takes_more(self.now, ahead) {
            self.pump(at);
        }
    }

    /// Writes records; what ends a unit becomes visible to its core.
    #[inline]
    pub(crate) fn apply_effects(&mut self, device: usize) {
        let visible_at = self.now + self.parameters.completion_read();
        let mut effects = std::mem::take(&mut self.effects);
        for effect in &effects {
            let Effect::Record {
                address, record, ..
            } = effect
            else {
                continue;
            };
            let Some((id, index)) = record_at(*address) else {
                continue;
            };
            let channel = &mut self.channels[id.index()];
            if let Some(unit) = channel.write_record(index, record) {
                channel.visible.push_back((visible_at, unit));
                let run = &mut self.devices[device];
                let left = run.in_progress.checked_sub(1);
                run.in_progress = left.expect("a record is written once");
                self.wait_until(id, visible_at);
            }
        }
        effects.clear();
        self.effects = effects;
    }
}
