//! Cores that feed several channels: each goes to the channel that runs.
//!
//! A core does one thing at a time. Its clock, its store queue and its busy time are one [`Core`], which
//! stands in the channel that ran last and moves to the one that runs next. A channel whose turn comes
//! while another one's ENQCMD blocks the core goes on with the answer.

use dray_platform::Core;

use crate::channel::{Channel, ChannelId};

/// Which channels share a core, and which has it.
#[derive(Debug, Default)]
pub(crate) struct SharedCores {
    groups: Vec<Group>,
    /// Channels whose turn came while the core was blocked, and the channel that blocks it.
    blocked: Vec<(ChannelId, ChannelId)>,
}

#[derive(Debug)]
struct Group {
    members: Vec<ChannelId>,
    holder: ChannelId,
}

impl SharedCores {
    /// A channel uses the core of another.
    pub(crate) fn join(&mut self, id: ChannelId, of: ChannelId) {
        match self.groups.iter_mut().find(|g| g.members.contains(&of)) {
            Some(group) => group.members.push(id),
            None => self.groups.push(Group {
                members: vec![of, id],
                holder: of,
            }),
        }
    }

    /// Whether a channel shares its core.
    pub(crate) fn is_shared(&self, id: ChannelId) -> bool {
        !self.groups.is_empty() && self.groups.iter().any(|g| g.members.contains(&id))
    }

    /// Brings the core to a channel. False if another one's ENQCMD blocks it.
    pub(crate) fn take(&mut self, id: ChannelId, channels: &mut [Channel]) -> bool {
        let Some(group) = self.groups.iter_mut().find(|g| g.members.contains(&id)) else {
            return true;
        };
        let holder = group.holder;
        if holder == id {
            return true;
        }
        if channels[holder.index()].awaiting.is_some() {
            self.blocked.push((id, holder));
            return false;
        }
        group.holder = id;
        let core = std::mem::take(&mut channels[holder.index()].core);
        channels[id.index()].core = core;
        true
    }

    /// Channels that waited for the end of a channel's ENQCMD.
    pub(crate) fn released(&mut self, by: ChannelId) -> Vec<ChannelId> {
        let mut released = Vec::new();
        self.blocked.retain(|(id, blocker)| {
            let waits = *blocker != by;
            if !waits {
                released.push(*id);
            }
            waits
        });
        released
    }

    /// Each core as the channel that brought it shows it.
    pub(crate) fn settle(&mut self, channels: &mut [Channel]) {
        for group in &mut self.groups {
            let (first, holder) = (group.members[0], group.holder);
            if first != holder {
                let core: Core = std::mem::take(&mut channels[holder.index()].core);
                channels[first.index()].core = core;
                group.holder = first;
            }
        }
    }
}
