//! What movers have to be for the options of channels, and what all of them can do.

use dray_spec::GenCap;

use super::engine::QueueState;
use super::{
    ChannelsError, ChannelsOptions, Choice, FullQueuePolicy, LostQueuePolicy, PageFaultPolicy,
    Require,
};
use crate::{Capabilities, Executor, Mover};

/// Slots that there can be.
const MOST_SLOTS: usize = 1 << 20;
/// Channels that there can be.
const MOST_CHANNELS: usize = 1 << 10;
/// Slots times stripes that there can be: each takes some hundred bytes, which are allocated at once.
const MOST_PARTS: usize = 1 << 20;

pub(super) fn check<M: Mover>(
    queues: &[QueueState<M>],
    options: &ChannelsOptions,
) -> Result<(), ChannelsError> {
    let counted = |what, asked, most| match (1..=most).contains(&asked) {
        true => Ok(()),
        false => Err(ChannelsError::Count { what, asked, most }),
    };
    counted("slots", options.slots, MOST_SLOTS)?;
    counted("stripes", options.max_stripes, MOST_CHANNELS)?;
    if !queues.is_empty() {
        counted("channels", queues.len(), MOST_CHANNELS)?;
    }
    let parts = parts(options, queues.len());
    counted("slots times stripes", parts, MOST_PARTS)?;
    for queue in queues {
        counted("slots of a channel", queue.mover.slots(), u32::MAX as usize)?;
    }
    let required = options.require != Require::Any;
    if required && queues.is_empty() {
        return Err(ChannelsError::NoChannel);
    }
    let policies = [
        ("choice", options.choice != Choice::Device),
        (
            "page-fault",
            options.page_fault == PageFaultPolicy::FinishOnCore,
        ),
        ("full-queue", options.full_queue == FullQueuePolicy::Core),
        ("lost-queue", options.lost_queue == LostQueuePolicy::Core),
    ];
    if let Some((policy, _)) = policies.into_iter().find(|(_, core)| required && *core) {
        return Err(ChannelsError::CoreExcluded { policy });
    }
    for (channel, queue) in queues.iter().enumerate() {
        let executor = queue.executor;
        let no_device = executor == Some(Executor::Cpu) && required;
        if options.require == Require::Hardware && executor != Some(Executor::Hardware) || no_device
        {
            return Err(ChannelsError::NotHardware { channel, executor });
        }
        // A core waits for pages anyway.
        let blocks = queue.capabilities.block_on_fault || executor == Some(Executor::Cpu);
        if options.page_fault == PageFaultPolicy::BlockOnFault && !blocks {
            return Err(ChannelsError::NoBlockOnFault { channel });
        }
    }
    Ok(())
}

/// Parts that operations can have at once: no operation is striped over more channels than there are.
pub(super) fn parts(options: &ChannelsOptions, channels: usize) -> usize {
    let stripes = options.max_stripes.min(channels).max(1);
    options.slots.saturating_mul(stripes)
}

/// What all of them can do, or the core if it may.
pub(super) fn together<M: Mover>(
    queues: &[QueueState<M>],
    core_allowed: bool,
    slots: usize,
) -> Capabilities {
    let software = Capabilities {
        max_batch: u32::try_from(slots).unwrap_or(u32::MAX),
        ..Capabilities::software()
    };
    let Some(first) = queues.first() else {
        return software;
    };
    let mut all = first.capabilities;
    all.divides = true;
    for queue in queues {
        let other = &queue.capabilities;
        for (word, others) in all.operations.0.iter_mut().zip(other.operations.0) {
            *word |= others;
        }
        all.general = with_forms_of(all.general, other.general);
        all.max_transfer_bytes = all.max_transfer_bytes.min(other.max_transfer_bytes);
        let slots = u32::try_from(queue.mover.slots()).unwrap_or(u32::MAX);
        all.max_batch = all.max_batch.min(other.max_batch).min(slots);
        all.block_on_fault &= other.block_on_fault;
    }
    if core_allowed {
        for (word, others) in all.operations.0.iter_mut().zip(software.operations.0) {
            *word |= others;
        }
        all.general = with_forms_of(all.general, software.general);
    }
    all.max_batch = all.max_batch.min(software.max_batch);
    all
}

/// Capabilities with the forms of operations that another executor has: an operation goes to one that has
/// its form.
fn with_forms_of(general: GenCap, other: GenCap) -> GenCap {
    general
        .with_overlapping_copy(general.overlapping_copy() || other.overlapping_copy())
        .with_fill_pattern_16(general.fill_pattern_16() || other.fill_pattern_16())
        .with_crc64(general.crc64() || other.crc64())
}
