//! Several work queues as one mover.

use std::ffi::c_int;

use dray::CpuMover;
use dray::channels::{
    Channels, ChannelsError, ChannelsOptions as Library, Choice as Chosen, CostModel as Costs,
    FullQueuePolicy, LostQueuePolicy, Member, PageFaultPolicy, Require as Required,
};
use dray::hw::{HwMover, HwOptions};
use dray::virt::VirtualMover;

use crate::backend::{Nodes, open_queues, slots, virtual_device};
use crate::channel_types::{
    ChannelsOptions, Choice, CostModel, FullQueue, LostQueue, PageFault, Require,
};
use crate::error::{Refusal, call};
use crate::handle::{Kind, Mover, Opened, handle};
use crate::structure::{reserved, sized, word};
use crate::types::Backend;

/// Slots of each queue.
const QUEUE_SLOTS: usize = 128;
/// Bytes of dray_channels_options in earlier versions, which ended with `max_gathered`, and with `cost`.
const EARLIER_OPTIONS: [usize; 2] = [56, 80];
/// Queues of a virtual device at most.
const MOST_VIRTUAL: u32 = 8;

/// Opens several work queues as one mover, for all calls that take one: 0, and the mover at `mover`. Large
/// operations are striped over the queues, small ones gathered into batches; [`dray_poll_outcomes`](crate::dray_poll_outcomes) says
/// who did what, and [`dray_note`](crate::dray_note) which queues were not opened.
///
/// # Errors
/// -EINVAL: a null pointer; a size, word or combination that this version does not know. -ENODEV: no
/// device, and one is required. -EBUSY: other processes have all queues. -EACCES, -EPERM: none may be
/// opened. -EIO: none can be used.
///
/// # Safety
/// `options` must point to `options->size` readable bytes, and its `cost`, if it is not NULL, to
/// `cost->size`; `mover` to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_open_channels(
    options: *const ChannelsOptions,
    mover: *mut *mut Mover,
) -> c_int {
    call(|| {
        let name = "dray_channels_options";
        // SAFETY: so many bytes are readable, by the caller's promise; any bytes are options.
        let options = unsafe { sized(name, options, &EARLIER_OPTIONS) }?;
        if mover.is_null() {
            return Err(Refusal::new(
                libc::EINVAL,
                "the place for the mover is NULL",
            ));
        }
        // SAFETY: the caller's promise is the same.
        let how = unsafe { library(&options) }?;
        let slots = how.slots;
        let (kind, opened) = open(&options, how)?;
        // SAFETY: not null, and a place for a pointer by the caller's promise.
        unsafe { mover.write(handle(kind, slots, opened)) };
        Ok(0)
    })
}

fn open(options: &ChannelsOptions, how: Library) -> Result<(Kind, Opened), Refusal> {
    let backends = [
        Backend::Hardware,
        Backend::Virtual,
        Backend::Cpu,
        Backend::Any,
    ];
    let backend = word("dray_channels_options.backend", options.backend, &backends)?;
    let nodes = Nodes::new("dray_channels_options", options.numa, options.numa_node)?;
    let of_hardware = [Backend::Hardware, Backend::Any].contains(&backend);
    if !of_hardware && options.numa != 0 {
        let message = "dray_channels_options.numa is for work queues of this machine";
        return Err(Refusal::new(libc::EINVAL, message));
    }
    match backend {
        Backend::Hardware | Backend::Any => {
            let hw_options = HwOptions {
                slots: QUEUE_SLOTS,
                ..HwOptions::default()
            };
            let mut queues = open_queues(None, nodes, usize::MAX, hw_options);
            if queues.members.is_empty() && backend == Backend::Hardware {
                return Err(queues.refusal());
            }
            if queues.members.is_empty() {
                queues.note.push_str("the core executes all operations\n");
            }
            let how = Library {
                local_node: nodes.first,
                ..how
            };
            let channels = Channels::<HwMover>::new(queues.members, how).map_err(excluded)?;
            let opened = Opened {
                note: queues.note,
                queues: queues.names,
                ..Opened::default()
            };
            Ok((Kind::HardwareChannels(channels), opened))
        }
        Backend::Virtual => {
            let queues = options.virtual_queues.max(1);
            if queues > MOST_VIRTUAL {
                return Err(Refusal::new(
                    libc::EINVAL,
                    format_args!(
                        "dray_channels_options.virtual_queues is {queues}: 1 to {MOST_VIRTUAL} are possible"
                    ),
                ));
            }
            let queues = queues as u16;
            let device = virtual_device(queues, how.check_core)?;
            let open = |queue| device.open(queue, QUEUE_SLOTS);
            let movers: Result<Vec<VirtualMover>, _> = (0..queues).map(open).collect();
            let movers = movers.map_err(|error| Refusal::of(libc::EINVAL, &error))?;
            let members = movers.into_iter().map(|mover| Member {
                mover,
                numa_node: None,
            });
            let channels = Channels::new(members, how).map_err(excluded)?;
            let note =
                format!("a virtual device of this process with {queues} work queues is open\n");
            Ok((Kind::VirtualChannels(channels), noted(note)))
        }
        Backend::Cpu => {
            let mover = match how.check_core {
                true => CpuMover::checked(QUEUE_SLOTS),
                false => CpuMover::new(QUEUE_SLOTS),
            };
            let member = Member {
                mover,
                numa_node: None,
            };
            let channels = Channels::new([member], how).map_err(excluded)?;
            let note = "the core executes all operations, as asked\n".to_owned();
            Ok((Kind::CpuChannels(channels), noted(note)))
        }
    }
}

fn noted(note: String) -> Opened {
    Opened {
        note,
        ..Opened::default()
    }
}

/// The options of the library that these stand for; 0 is its default.
///
/// # Safety
/// `options.cost` must be NULL or point to as many readable bytes as its size says.
unsafe fn library(options: &ChannelsOptions) -> Result<Library, Refusal> {
    let default = Library::default();
    let or = |value: u32, default: u32| if value == 0 { default } else { value };
    reserved("dray_channels_options.reserved", options.reserved)?;
    Ok(Library {
        slots: slots("dray_channels_options.slots", options.slots, default.slots)?,
        require: {
            let words = [Require::Any, Require::Device, Require::Hardware];
            match word("dray_channels_options.require", options.require, &words)? {
                Require::Any => Required::Any,
                Require::Device => Required::Device,
                Require::Hardware => Required::Hardware,
            }
        },
        // SAFETY: the caller's promise is the same.
        choice: unsafe { choice(options) }?,
        page_fault: {
            let name = "dray_channels_options.page_fault";
            page_fault(name, options.page_fault, options.page_faults)?
        },
        full_queue: {
            let words = [FullQueue::Wait, FullQueue::Core, FullQueue::Error];
            match word(
                "dray_channels_options.full_queue",
                options.full_queue,
                &words,
            )? {
                FullQueue::Wait => FullQueuePolicy::Wait,
                FullQueue::Core => FullQueuePolicy::Core,
                FullQueue::Error => FullQueuePolicy::Error,
            }
        },
        lost_queue: {
            let words = [LostQueue::Other, LostQueue::Core, LostQueue::Error];
            match word(
                "dray_channels_options.lost_queue",
                options.lost_queue,
                &words,
            )? {
                LostQueue::Other => LostQueuePolicy::Other,
                LostQueue::Core => LostQueuePolicy::Core,
                LostQueue::Error => LostQueuePolicy::Error,
            }
        },
        check_core: word(
            "dray_channels_options.checked",
            options.checked,
            &[false, true],
        )?,
        remote_bytes: match options.remote_bytes {
            0 => default.remote_bytes,
            bytes => bytes,
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

/// What becomes of an operation at a page fault; `most` 0 is the default.
fn page_fault(name: &str, asked: u32, most: u32) -> Result<PageFaultPolicy, Refusal> {
    let words = [
        PageFault::TouchAndResume,
        PageFault::FinishOnCore,
        PageFault::BlockOnFault,
        PageFault::Return,
    ];
    Ok(match word(name, asked, &words)? {
        PageFault::TouchAndResume => PageFaultPolicy::TouchAndResume {
            most: if most == 0 { 64 } else { most },
        },
        PageFault::FinishOnCore => PageFaultPolicy::FinishOnCore,
        PageFault::BlockOnFault => PageFaultPolicy::BlockOnFault,
        PageFault::Return => PageFaultPolicy::Return,
    })
}

/// One work queue, on which all is executed, with the policy of `dray_options.page_fault`.
pub(crate) fn of_one_queue(
    member: Member<HwMover>,
    slots: usize,
    page_fault: PageFaultPolicy,
) -> Result<Channels<HwMover>, Refusal> {
    let how = Library {
        slots,
        require: Required::Device,
        page_fault,
        max_stripes: 1,
        gather_below_bytes: 0,
        ..Library::default()
    };
    Channels::new([member], how).map_err(excluded)
}

/// The policy of `dray_options.page_fault`.
pub(crate) fn page_fault_of_one(asked: u32) -> Result<PageFaultPolicy, Refusal> {
    let name = "dray_options.page_fault";
    match page_fault(name, asked, 0)? {
        PageFaultPolicy::FinishOnCore => Err(Refusal::new(
            libc::EINVAL,
            format_args!("{name}: DRAY_PAGE_FAULT_FINISH_ON_CORE is for dray_open_channels"),
        )),
        policy => Ok(policy),
    }
}

/// # Safety
/// As [`library`].
unsafe fn choice(options: &ChannelsOptions) -> Result<Chosen, Refusal> {
    let words = [
        Choice::Threshold,
        Choice::Device,
        Choice::Core,
        Choice::CostModel,
        Choice::Learned,
    ];
    let choice = word("dray_channels_options.choice", options.choice, &words)?;
    if choice != Choice::Threshold && options.device_from_bytes != 0 {
        let message = "dray_channels_options.device_from_bytes is for DRAY_CHOICE_THRESHOLD";
        return Err(Refusal::new(libc::EINVAL, message));
    }
    let modelled = [Choice::CostModel, Choice::Learned].contains(&choice);
    if !modelled && !options.cost.is_null() {
        let message = "dray_channels_options.cost is for DRAY_CHOICE_COST_MODEL and LEARNED";
        return Err(Refusal::new(libc::EINVAL, message));
    }
    let costs = || {
        if options.cost.is_null() {
            return Ok(Costs::default());
        }
        // SAFETY: so many bytes are readable, by the caller's promise; any bytes are times.
        let cost = unsafe { sized("dray_cost_model", options.cost, &[]) }?;
        costs(&cost)
    };
    Ok(match choice {
        Choice::Threshold => match options.device_from_bytes {
            0 => Chosen::Device,
            u32::MAX => Chosen::Core,
            device_from_bytes => Chosen::Threshold { device_from_bytes },
        },
        Choice::Device => Chosen::Device,
        Choice::Core => Chosen::Core,
        Choice::CostModel => Chosen::Cost(costs()?),
        Choice::Learned => Chosen::Learned(costs()?),
    })
}

fn costs(cost: &CostModel) -> Result<Costs, Refusal> {
    for (name, ns) in [
        ("core_call_ns", cost.core_call_ns),
        ("core_kib_ns", cost.core_kib_ns),
        ("submit_ns", cost.submit_ns),
        ("batched_ns", cost.batched_ns),
        ("device_latency_ns", cost.device_latency_ns),
        ("device_kib_ns", cost.device_kib_ns),
    ] {
        if !(ns.is_finite() && ns >= 0.0) {
            return Err(Refusal::new(
                libc::EINVAL,
                format_args!("dray_cost_model.{name} is {ns}: it must be 0 or more"),
            ));
        }
    }
    Ok(Costs {
        core_call_ns: cost.core_call_ns,
        core_kib_ns: cost.core_kib_ns,
        submit_ns: cost.submit_ns,
        batched_ns: cost.batched_ns,
        device_latency_ns: cost.device_latency_ns,
        device_kib_ns: cost.device_kib_ns,
    })
}

fn excluded(error: ChannelsError) -> Refusal {
    let code = match error {
        ChannelsError::NoChannel | ChannelsError::NotHardware { .. } => libc::ENODEV,
        _ => libc::EINVAL,
    };
    Refusal::of(code, &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All fields 0.
    fn zeros() -> ChannelsOptions {
        // SAFETY: any bytes are options.
        unsafe { std::mem::zeroed() }
    }

    fn read(options: &ChannelsOptions) -> Library {
        // SAFETY: without a cost model, or with one of this test.
        unsafe { library(options) }.expect("they are options")
    }

    #[test]
    fn options_of_zeros_are_the_defaults_of_the_library() {
        assert_eq!(read(&zeros()), Library::default());
    }

    #[test]
    fn every_field_is_passed_to_the_library() {
        let options = ChannelsOptions {
            slots: 7,
            require: Require::Device as u32,
            page_fault: PageFault::TouchAndResume as u32,
            page_faults: 9,
            full_queue: FullQueue::Error as u32,
            device_from_bytes: 11,
            stripe_bytes: 12,
            max_stripes: 13,
            gather_below_bytes: 14,
            max_gathered: 15,
            checked: 1,
            lost_queue: LostQueue::Error as u32,
            remote_bytes: 16,
            ..zeros()
        };
        let expected = Library {
            slots: 7,
            require: Required::Device,
            choice: Chosen::Threshold {
                device_from_bytes: 11,
            },
            page_fault: PageFaultPolicy::TouchAndResume { most: 9 },
            full_queue: FullQueuePolicy::Error,
            lost_queue: LostQueuePolicy::Error,
            check_core: true,
            stripe_bytes: 12,
            max_stripes: 13,
            gather_below_bytes: 14,
            max_gathered: 15,
            remote_bytes: 16,
            ..Library::default()
        };
        assert_eq!(read(&options), expected);
        for (word, policy) in [
            (PageFault::FinishOnCore, PageFaultPolicy::FinishOnCore),
            (PageFault::BlockOnFault, PageFaultPolicy::BlockOnFault),
            (PageFault::Return, PageFaultPolicy::Return),
        ] {
            let page_fault = word as u32;
            let options = ChannelsOptions {
                page_fault,
                ..zeros()
            };
            assert_eq!(read(&options).page_fault, policy);
        }
        for (word, policy) in [
            (LostQueue::Other, LostQueuePolicy::Other),
            (LostQueue::Core, LostQueuePolicy::Core),
        ] {
            let lost_queue = word as u32;
            let options = ChannelsOptions {
                lost_queue,
                ..zeros()
            };
            assert_eq!(read(&options).lost_queue, policy);
        }
        let hardware = ChannelsOptions {
            require: Require::Hardware as u32,
            full_queue: FullQueue::Core as u32,
            device_from_bytes: u32::MAX,
            ..zeros()
        };
        let hardware = read(&hardware);
        assert_eq!(hardware.require, Required::Hardware);
        assert_eq!(hardware.full_queue, FullQueuePolicy::Core);
        assert_eq!(hardware.choice, Chosen::Core);
    }

    #[test]
    fn every_time_of_a_cost_model_is_passed_to_the_library() {
        let cost = CostModel {
            size: size_of::<CostModel>(),
            core_call_ns: 1.0,
            core_kib_ns: 2.0,
            submit_ns: 3.0,
            batched_ns: 4.0,
            device_latency_ns: 5.0,
            device_kib_ns: 6.0,
        };
        let expected = Costs {
            core_call_ns: 1.0,
            core_kib_ns: 2.0,
            submit_ns: 3.0,
            batched_ns: 4.0,
            device_latency_ns: 5.0,
            device_kib_ns: 6.0,
        };
        for (choice, chosen) in [
            (Choice::CostModel, Chosen::Cost(expected)),
            (Choice::Learned, Chosen::Learned(expected)),
        ] {
            let options = ChannelsOptions {
                choice: choice as u32,
                cost: &raw const cost,
                ..zeros()
            };
            assert_eq!(read(&options).choice, chosen);
        }
    }
}
