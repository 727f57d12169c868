//! Movers of one queue: opened and closed.

use std::ffi::{CStr, c_char, c_int};

use dray::CpuMover;
use dray::hw::HwOptions;
use dray::virt::VirtualMover;

use crate::backend::{Nodes, open_queues, slots, virtual_device};
use crate::channels::{of_one_queue, page_fault_of_one};
use crate::error::{Refusal, call};
use crate::handle::{Kind, Mover, Open, Opened, close, handle, using};
use crate::structure::{sized, word};
use crate::types::{Backend, CoreReason, Options};

/// Slots of a mover that asks for none.
const SLOTS: usize = 128;
/// Bytes of dray_options in earlier versions: up to `queue`, and with `checked` and a word behind it.
const EARLIER_OPTIONS: [usize; 2] = [24, 32];

/// Opens a mover: 0, and the mover at `mover`. [`dray_note`] says which work queues were tried.
///
/// Whoever executes, an operation on memory that the process may access succeeds: where a device meets a page
/// that is not present, the core makes it present and the device goes on. `page_fault` narrows that, and an
/// operation of a batch always ends with status 3, unless the device waits (DRAY_PAGE_FAULT_BLOCK_ON_FAULT):
/// the batch may have fences behind it.
///
/// # Errors
/// -EINVAL: a null pointer, a field that this version does not know or that excludes another, a work queue that
/// does not block on page faults as asked. -ENODEV: no
/// such work queue. -EBUSY: another process has it. -EACCES, -EPERM: it may not be opened. -EIO: it
/// cannot be used.
///
/// # Safety
/// `options` must point to `options->size` readable bytes, `mover` to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_open(options: *const Options, mover: *mut *mut Mover) -> c_int {
    call(|| {
        // SAFETY: so many bytes are readable, by the caller's promise; any bytes are options.
        let options = unsafe { sized("dray_options", options, &EARLIER_OPTIONS) }?;
        if mover.is_null() {
            return Err(Refusal::new(
                libc::EINVAL,
                "the place for the mover is NULL",
            ));
        }
        let slots = slots("dray_options.slots", options.slots, SLOTS)?;
        // SAFETY: a string of C, by the caller's promise.
        let (kind, opened) = unsafe { open(&options, slots) }?;
        // SAFETY: not null, and a place for a pointer by the caller's promise.
        unsafe { mover.write(handle(kind, slots, opened)) };
        Ok(0)
    })
}

/// # Safety
/// `options.queue` must be NULL or a string of C.
unsafe fn open(options: &Options, slots: usize) -> Result<(Kind, Opened), Refusal> {
    let backends = [
        Backend::Hardware,
        Backend::Virtual,
        Backend::Cpu,
        Backend::Any,
    ];
    let backend = word("dray_options.backend", options.backend, &backends)?;
    word("dray_options.checked", options.checked, &[(), ()])?;
    let page_fault = page_fault_of_one(options.page_fault)?;
    let nodes = Nodes::new("dray_options", options.numa, options.numa_node)?;
    let of_hardware = [Backend::Hardware, Backend::Any].contains(&backend);
    if !of_hardware && (!options.queue.is_null() || options.numa != 0) {
        let message = "dray_options.queue and numa are for work queues of this machine";
        return Err(Refusal::new(libc::EINVAL, message));
    }
    if !options.queue.is_null() && options.numa != 0 {
        let message = "dray_options.queue names the work queue: numa must be 0";
        return Err(Refusal::new(libc::EINVAL, message));
    }
    let name = match options.queue.is_null() {
        true => None,
        // SAFETY: a string of C, by the caller's promise.
        false => Some(unsafe { CStr::from_ptr(options.queue) }.to_string_lossy()),
    };
    let core = || match options.checked {
        0 => Kind::Cpu(CpuMover::new(slots)),
        _ => Kind::Cpu(CpuMover::checked(slots)),
    };
    match backend {
        Backend::Hardware | Backend::Any => {
            let hw_options = HwOptions {
                slots,
                ..HwOptions::default()
            };
            let mut queues = open_queues(name.as_deref(), nodes, 1, hw_options);
            let mut opened = Opened {
                note: std::mem::take(&mut queues.note),
                queues: std::mem::take(&mut queues.names),
                core_reason: CoreReason::None,
            };
            match (queues.members.pop(), backend) {
                (Some(member), _) => {
                    let channels = of_one_queue(member, slots, page_fault)?;
                    Ok((Kind::Hardware(channels), opened))
                }
                (None, Backend::Hardware) => {
                    queues.note = opened.note;
                    Err(queues.refusal())
                }
                (None, _) => {
                    opened.note.push_str("the core executes all operations\n");
                    opened.core_reason = CoreReason::NoDevice;
                    Ok((core(), opened))
                }
            }
        }
        Backend::Virtual => {
            let opened = Opened {
                note: "a virtual device of this process executes all operations\n".to_owned(),
                ..Opened::default()
            };
            let mover = virtual_mover(options.checked != 0, slots)?;
            Ok((Kind::Virtual(mover), opened))
        }
        Backend::Cpu => {
            let opened = Opened {
                note: "the core executes all operations, as asked\n".to_owned(),
                core_reason: CoreReason::Chosen,
                ..Opened::default()
            };
            Ok((core(), opened))
        }
    }
}

fn virtual_mover(checked: bool, slots: usize) -> Result<VirtualMover, Refusal> {
    let opened = virtual_device(1, checked)?.open(0, slots);
    opened.map_err(|error| Refusal::of(libc::EINVAL, &error))
}

/// What happened when a mover was opened, a line for each work queue that was tried: which is open, and
/// why others are not. Writes at most `bytes` bytes to `text`, the last of which is 0: how many bytes the
/// whole text has without it, as snprintf does.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`]; `text` a place for `bytes` bytes, or NULL if there are 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_note(mover: *mut Mover, text: *mut c_char, bytes: usize) -> c_int {
    let work = |open: &mut Open| {
        if text.is_null() && bytes > 0 {
            return Err(Refusal::new(libc::EINVAL, "the place for the text is NULL"));
        }
        let note = &open.opened.note;
        if bytes > 0 {
            let mut most = note.len().min(bytes - 1);
            while !note.is_char_boundary(most) {
                most -= 1;
            }
            // SAFETY: a place for `bytes` bytes, of which these are fewer.
            unsafe { text.copy_from_nonoverlapping(note.as_ptr().cast::<c_char>(), most) };
            // SAFETY: `most` is below `bytes`.
            let end = unsafe { text.add(most) };
            // SAFETY: a place of the caller's.
            unsafe { end.write(0) };
        }
        Ok(c_int::try_from(note.len()).unwrap_or(c_int::MAX))
    };
    // SAFETY: the caller's promise is the same.
    unsafe { using(mover, work) }
}

/// Takes back what no queue has accepted, waits for the rest, and closes a mover: 0. NULL is allowed.
/// Without a completion it waits two seconds on hardware, ten on a virtual device, and no longer: memory
/// of operations that a device then still holds must stay valid for ever. The same holds for a mover in
/// whose call libdray has panicked: it is not waited for. In a child of fork the mover of its parent is left as
/// it is: 0.
///
/// # Errors
/// -EBADF: it is closed already. -EBUSY: another thread is using it, and goes on doing so.
///
/// # Safety
/// `mover` must be NULL or from [`dray_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_close(mover: *mut Mover) -> c_int {
    match mover.is_null() {
        true => 0,
        // SAFETY: the caller's promise is the same.
        false => unsafe { close(mover) },
    }
}
