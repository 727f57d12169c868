//! Several work queues as one mover.

use std::ffi::c_int;

use dray::CpuMover;
use dray::channels::{
    Channels, ChannelsError, ChannelsOptions as Library, Choice, CoreReason as Reason,
    FullQueuePolicy, Member, PageFaultPolicy, Require as Required,
};
use dray::hw::{self, HwMover, HwOptions};
use dray::virt::{Options as VirtualOptions, VirtualDevice, VirtualMover};

use crate::backend::{refused, virtual_device};
use crate::completion::seen;
use crate::error::{Refusal, call};
use crate::handle::{Kind, Mover, Open, check_size, handle, using};
use crate::types::{
    Backend, ChannelsOptions, Completion, CoreReason, FullQueue, Outcome, PageFault, Require,
};

/// Slots of each queue.
const QUEUE_SLOTS: usize = 128;

/// Opens several work queues as one mover, for all calls that take one: 0, and the mover at `mover`. Large
/// operations are striped over the queues, small ones gathered into batches; dray_poll_outcomes says who
/// did what.
///
/// # Errors
/// -EINVAL: a null pointer; a size, word or combination that this version does not know. -ENODEV: no
/// device, and one is required. -EBUSY: other processes have all queues. -EIO: one cannot be used.
///
/// # Safety
/// `options` must point to `options->size` readable bytes, `mover` to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_open_channels(
    options: *const ChannelsOptions,
    mover: *mut *mut Mover,
) -> c_int {
    call(|| {
        if options.is_null() || mover.is_null() || !options.is_aligned() {
            let message = "options and mover are needed";
            return Err(Refusal::new(libc::EINVAL, message));
        }
        let known = size_of::<ChannelsOptions>();
        // SAFETY: aligned, and every version has this field.
        let size = unsafe { (*options).size };
        // SAFETY: so many bytes are readable, by the caller's promise.
        unsafe { check_size("dray_channels_options", options.cast(), size, known) }?;
        // SAFETY: the caller's promise, for this size.
        let options = unsafe { *options };
        let kind = open(&options)?;
        // SAFETY: not null, and a place for a pointer by the caller's promise.
        unsafe { mover.write(handle(kind, slots(&options))) };
        Ok(0)
    })
}

/// Takes at most `count` operations that have ended, with who did what of each: how many there were.
///
/// # Errors
/// -ENOTSUP: the mover is not from dray_open_channels.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open_channels`]; `into` a place for `count` outcomes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_poll_outcomes(
    mover: *mut Mover,
    into: *mut Outcome,
    count: usize,
) -> c_int {
    let work = |open: &mut Open| {
        if into.is_null() || count == 0 {
            return Err(Refusal::new(libc::EINVAL, "no place for outcomes"));
        }
        let mut look = [dray::channels::Outcome::default(); 64];
        let most = count.min(look.len());
        let look = &mut look[..most];
        let found = match &mut open.kind {
            Kind::HardwareChannels(channels) => channels.poll_outcomes(look),
            Kind::VirtualChannels(channels) => channels.poll_outcomes(look),
            Kind::CpuChannels(channels) => channels.poll_outcomes(look),
            _ => {
                let message = "the mover has one queue: dray_poll takes its completions";
                return Err(Refusal::new(libc::ENOTSUP, message));
            }
        };
        for (n, outcome) in look[..found].iter().enumerate() {
            // SAFETY: `n` is below the caller's count.
            let place = unsafe { into.add(n) };
            // SAFETY: a place of the caller's.
            unsafe { place.write(reported(outcome)) };
        }
        Ok(c_int::try_from(found).unwrap_or(c_int::MAX))
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

fn reported(outcome: &dray::channels::Outcome) -> Outcome {
    let completion: Completion = seen(&outcome.completion);
    let reason = outcome
        .core_reason
        .map_or(CoreReason::None, |reason| match reason {
            Reason::Chosen => CoreReason::Chosen,
            Reason::BelowThreshold => CoreReason::BelowThreshold,
            Reason::Faster => CoreReason::Faster,
            Reason::Tried => CoreReason::Tried,
            Reason::NoDevice => CoreReason::NoDevice,
            Reason::QueueFull => CoreReason::QueueFull,
            Reason::PageFault => CoreReason::PageFault,
        });
    Outcome {
        completion,
        device_bytes: outcome.device_bytes,
        core_bytes: outcome.core_bytes,
        stripes: outcome.stripes,
        resumed_faults: outcome.resumed_faults,
        core_reason: reason as u32,
        gathered: outcome.gathered.into(),
        queue_was_full: outcome.queue_was_full.into(),
        reserved: [0; 2],
    }
}

fn slots(options: &ChannelsOptions) -> usize {
    match options.slots {
        0 => Library::default().slots,
        slots => slots as usize,
    }
}

fn open(options: &ChannelsOptions) -> Result<Kind, Refusal> {
    let how = library(options)?;
    let hw_options = HwOptions {
        slots: QUEUE_SLOTS,
        ..HwOptions::default()
    };
    match options.backend {
        n if n == Backend::Hardware as u32 => {
            let members = hw::open_all(hw_options).map_err(refused)?;
            let channels = Channels::<HwMover>::new(members, how).map_err(excluded)?;
            Ok(Kind::HardwareChannels(channels))
        }
        n if n == Backend::Any as u32 => {
            let members = hw::open_all(hw_options).unwrap_or_default();
            let channels = Channels::<HwMover>::new(members, how).map_err(excluded)?;
            Ok(Kind::HardwareChannels(channels))
        }
        n if n == Backend::Virtual as u32 => {
            let queues = options.virtual_queues.clamp(1, 8) as u16;
            let started = VirtualDevice::start(virtual_device(queues), VirtualOptions::default());
            let device = started.map_err(|error| Refusal::of(libc::EIO, &error))?;
            let open = |queue| device.open(queue, QUEUE_SLOTS);
            let movers: Result<Vec<VirtualMover>, _> = (0..queues).map(open).collect();
            let movers = movers.map_err(|error| Refusal::of(libc::EINVAL, &error))?;
            let members = movers.into_iter().map(|mover| Member {
                mover,
                numa_node: None,
            });
            let channels = Channels::new(members, how).map_err(excluded)?;
            Ok(Kind::VirtualChannels(channels))
        }
        n if n == Backend::Cpu as u32 => {
            let member = Member {
                mover: CpuMover::new(QUEUE_SLOTS),
                numa_node: None,
            };
            let channels = Channels::new([member], how).map_err(excluded)?;
            Ok(Kind::CpuChannels(channels))
        }
        other => Err(Refusal::new(
            libc::EINVAL,
            format!("{other} is no dray_backend"),
        )),
    }
}

/// The options of the library that these stand for; 0 is its default.
fn library(options: &ChannelsOptions) -> Result<Library, Refusal> {
    let unknown = |value: u32, what: &str| {
        Err(Refusal::new(
            libc::EINVAL,
            format_args!("{value} is no {what}"),
        ))
    };
    let default = Library::default();
    let or = |value: u32, default: u32| if value == 0 { default } else { value };
    Ok(Library {
        slots: slots(options),
        require: match options.require {
            n if n == Require::Any as u32 => Required::Any,
            n if n == Require::Device as u32 => Required::Device,
            n if n == Require::Hardware as u32 => Required::Hardware,
            other => return unknown(other, "dray_require"),
        },
        choice: match options.device_from_bytes {
            0 => Choice::Device,
            u32::MAX => Choice::Core,
            device_from_bytes => Choice::Threshold { device_from_bytes },
        },
        page_fault: match options.page_fault {
            n if n == PageFault::TouchAndResume as u32 => PageFaultPolicy::TouchAndResume {
                most: or(options.page_faults, 64),
            },
            n if n == PageFault::FinishOnCore as u32 => PageFaultPolicy::FinishOnCore,
            n if n == PageFault::BlockOnFault as u32 => PageFaultPolicy::BlockOnFault,
            n if n == PageFault::Return as u32 => PageFaultPolicy::Return,
            other => return unknown(other, "dray_page_fault"),
        },
        full_queue: match options.full_queue {
            n if n == FullQueue::Wait as u32 => FullQueuePolicy::Wait,
            n if n == FullQueue::Core as u32 => FullQueuePolicy::Core,
            n if n == FullQueue::Error as u32 => FullQueuePolicy::Error,
            other => return unknown(other, "dray_full_queue"),
        },
        stripe_bytes: or(options.stripe_bytes, default.stripe_bytes),
        max_stripes: match options.max_stripes {
            0 => default.max_stripes,
            stripes => stripes as usize,
        },
        gather_below_bytes: or(options.gather_below_bytes, default.gather_below_bytes),
        max_gathered: or(options.max_gathered, default.max_gathered),
        ..default
    })
}

fn excluded(error: ChannelsError) -> Refusal {
    let code = match error {
        ChannelsError::NoChannel | ChannelsError::NotHardware { .. } => libc::ENODEV,
        _ => libc::EINVAL,
    };
    Refusal::of(code, &error)
}
