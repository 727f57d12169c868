//! How channels share operations out.

use super::CostModel;

/// A mover, and the memory node near it.
///
/// ```
/// use dray::CpuMover;
/// use dray::channels::Member;
///
/// let member = Member { mover: CpuMover::new(16), numa_node: Some(0) };
/// assert_eq!(member.numa_node, Some(0));
/// ```
#[derive(Debug)]
pub struct Member<M> {
    /// The mover; nothing else uses it.
    pub mover: M,
    /// NUMA node of its device; `None`: unknown, taken for local.
    pub numa_node: Option<u32>,
}

/// Who executes an operation, as far as that is free.
///
/// ```
/// use dray::channels::{ChannelsOptions, Choice};
///
/// let options = ChannelsOptions { choice: Choice::Threshold { device_from_bytes: 4096 }, ..ChannelsOptions::default() };
/// assert_ne!(options.choice, Choice::Device);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Choice {
    /// A device, whenever one has the operation.
    #[default]
    Device,
    /// The calling core, whenever it has the operation.
    Core,
    /// A device from so many bytes on, the core below.
    Threshold {
        /// Bytes of the smallest operation for a device.
        device_from_bytes: u32,
    },
    /// Whom a cost model takes for faster, by size, operations in flight and batch.
    Cost(CostModel),
    /// The same, from what operations have taken so far. It reads the clock twice an operation, and
    /// gives one of 64 of a size to the other, so that it notices when things change.
    Learned(CostModel),
}

/// What becomes of an operation that met a page that was not present. (With block on fault the device
/// waits for the page instead.) One in a batch of the caller's, which may have fences behind it, is resumed by movers on
/// a queue ([`Mover::resume_page_faults`](crate::Mover::resume_page_faults)); the core does not finish it.
///
/// ```
/// use dray::channels::{ChannelsOptions, PageFaultPolicy};
///
/// let options = ChannelsOptions { page_fault: PageFaultPolicy::Return, ..ChannelsOptions::default() };
/// assert_ne!(options.page_fault, ChannelsOptions::default().page_fault);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageFaultPolicy {
    /// The core makes the page present, and the device goes on from there: as often as bytes are done
    /// between two faults. A page that faults again and again without one, or that the core cannot make
    /// present either, ends the operation.
    TouchAndResume {
        /// Times that a page is made present without a byte done between them. 0: none, as [`Return`](Self::Return);
        /// in C, where 0 is the default, only `DRAY_PAGE_FAULT_RETURN` says so.
        most: u32,
    },
    /// The core does the rest.
    FinishOnCore,
    /// The device waits for pages: every queue of a device must allow it. A core waits anyway.
    BlockOnFault,
    /// The operation ends with the fault.
    Return,
}

/// What becomes of an operation when every queue that could take it is full.
///
/// ```
/// use dray::channels::{ChannelsOptions, FullQueuePolicy};
///
/// let options = ChannelsOptions { full_queue: FullQueuePolicy::Error, ..ChannelsOptions::default() };
/// assert_ne!(options.full_queue, FullQueuePolicy::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FullQueuePolicy {
    /// It waits until one is not; [`Mover::submit`](crate::Mover::submit) says that something is left.
    #[default]
    Wait,
    /// The core executes it. A batch of the caller's that a queue had taken and cannot execute ends with
    /// [`Failure::QueueFull`](crate::Failure::QueueFull).
    Core,
    /// It ends with [`Failure::QueueFull`](crate::Failure::QueueFull).
    Error,
}

/// What becomes of an operation whose queue is lost: disabled, reset, or gone with its device. Queues
/// that are lost get nothing more; [`Channels::excluded`](super::Channels::excluded) names them.
///
/// A move onto itself that was in flight cannot be begun again, for a part of its source may be
/// overwritten, and a batch of the caller's that was in flight is not: they end with
/// [`Failure::QueueLost`](crate::Failure::QueueLost) whatever the policy is.
///
/// ```
/// use dray::channels::{ChannelsOptions, LostQueuePolicy};
///
/// let options = ChannelsOptions { lost_queue: LostQueuePolicy::Error, ..ChannelsOptions::default() };
/// assert_ne!(options.lost_queue, LostQueuePolicy::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LostQueuePolicy {
    /// Another queue executes it. Where no other has the operation, the core does if it may; else it ends
    /// with [`Failure::QueueLost`](crate::Failure::QueueLost).
    #[default]
    Other,
    /// The core executes it.
    Core,
    /// It ends with [`Failure::QueueLost`](crate::Failure::QueueLost). The next operations go to the
    /// queues that are left, and end so too when there is none.
    Error,
}

/// Who must execute all operations: if he does not, they fail.
///
/// ```
/// use dray::CpuMover;
/// use dray::channels::{Channels, ChannelsError, ChannelsOptions, Member, Require};
///
/// let options = ChannelsOptions { require: Require::Hardware, ..ChannelsOptions::default() };
/// let member = Member { mover: CpuMover::new(16), numa_node: None };
/// let refused = Channels::new([member], options).err();
/// assert!(matches!(refused, Some(ChannelsError::NotHardware { channel: 0, .. })));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Require {
    /// Any executor: what no device does, the core does.
    #[default]
    Any,
    /// A device, of hardware or virtual.
    Device,
    /// A device of this machine.
    Hardware,
}

/// How channels share operations out.
///
/// ```
/// use dray::channels::{ChannelsOptions, FullQueuePolicy, Require};
///
/// // Never on the core, and an error instead of a wait.
/// let options = ChannelsOptions {
///     require: Require::Device,
///     full_queue: FullQueuePolicy::Error,
///     ..ChannelsOptions::default()
/// };
/// assert_eq!((options.slots, options.max_stripes), (256, 8));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChannelsOptions {
    /// Operations that can be enqueued or in flight at once, 1 to 1048576. This times the stripes of an operation,
    /// which are at most `max_stripes` and at most the channels, must be at most 1048576, too. Default 256.
    pub slots: usize,
    /// Who must execute all operations. Default: any executor.
    pub require: Require,
    /// Who executes an operation. Default: a device.
    pub choice: Choice,
    /// Default: the core touches the page, 64 times at most without a byte done between them.
    pub page_fault: PageFaultPolicy,
    /// Default: wait.
    pub full_queue: FullQueuePolicy,
    /// Default: another queue.
    pub lost_queue: LostQueuePolicy,
    /// The core looks at addresses before it executes an operation: memory that it cannot access ends the
    /// operation with [`Failure::PageFault`](crate::Failure::PageFault) after the bytes before it, as on a
    /// device; as [`CpuMover::checked`](crate::CpuMover::checked). Without it such memory ends the process with a signal, unless a
    /// device had the operation first: then the core always looks. In C this is `checked` of
    /// `dray_channels_options`, which also makes a virtual device look; page lists look unless
    /// [`check_pages`](crate::pages::PageListOptions::check_pages) is false. Default: false.
    pub check_core: bool,
    /// Bytes of the smallest stripe: an operation of twice as many is striped over two channels.
    /// Default 64 KiB.
    pub stripe_bytes: u32,
    /// Channels that an operation is striped over at most, 1 to 1024. Default 8.
    pub max_stripes: usize,
    /// Operations below so many bytes are gathered into batches. Default 16 KiB; 0: none (in C, where 0
    /// is the default, 1).
    pub gather_below_bytes: u32,
    /// Operations that are gathered into one batch at most. Default 32.
    pub max_gathered: u32,
    /// Node of the core; channels of other nodes come later. Default: that of the calling thread.
    pub local_node: Option<u32>,
    /// A channel of another node gets an operation when every local one has so many bytes more in
    /// flight. Default 256 KiB.
    pub remote_bytes: u64,
}

impl Default for ChannelsOptions {
    fn default() -> ChannelsOptions {
        ChannelsOptions {
            slots: 256,
            require: Require::Any,
            choice: Choice::Device,
            page_fault: PageFaultPolicy::TouchAndResume { most: 64 },
            full_queue: FullQueuePolicy::Wait,
            lost_queue: LostQueuePolicy::Other,
            check_core: false,
            stripe_bytes: 64 << 10,
            max_stripes: 8,
            gather_below_bytes: 16 << 10,
            max_gathered: 32,
            local_node: local_node(),
            remote_bytes: 256 << 10,
        }
    }
}

/// NUMA node of the CPU that the calling thread runs on; `None` where the system does not say.
pub fn local_node() -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        let mut cpu = 0_u32;
        let mut node = 0_u32;
        // SAFETY: two places for a number each, and no third argument since Linux 2.6.24.
        let code = unsafe {
            libc::syscall(
                libc::SYS_getcpu,
                &raw mut cpu,
                &raw mut node,
                std::ptr::null_mut::<libc::c_void>(),
            )
        };
        (code == 0).then_some(node)
    }
    #[cfg(not(target_os = "linux"))]
    None
}
