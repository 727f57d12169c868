//! Structures with their defaults, and movers opened with them.

use std::ffi::CStr;
use std::ptr::null;

use dray_c::{
    Backend, ChannelsOptions, Dif, Mover, Options, Tags, dray_last_error, dray_open,
    dray_open_channels,
};

/// On the core, all else 0.
pub(crate) fn options() -> Options {
    Options {
        size: size_of::<Options>(),
        backend: Backend::Cpu as u32,
        slots: 0,
        queue: null(),
        checked: 0,
        numa: 0,
        numa_node: 0,
        page_fault: 0,
    }
}

/// The same of channels.
pub(crate) fn channels() -> ChannelsOptions {
    ChannelsOptions {
        size: size_of::<ChannelsOptions>(),
        backend: Backend::Cpu as u32,
        virtual_queues: 0,
        slots: 0,
        require: 0,
        page_fault: 0,
        page_faults: 0,
        full_queue: 0,
        device_from_bytes: 0,
        stripe_bytes: 0,
        max_stripes: 0,
        gather_below_bytes: 0,
        max_gathered: 0,
        choice: 0,
        numa: 0,
        numa_node: 0,
        reserved: 0,
        cost: null(),
        checked: 0,
        lost_queue: 0,
        remote_bytes: 0,
    }
}

/// Blocks of 512 bytes.
pub(crate) fn dif() -> Dif {
    Dif {
        size: size_of::<Dif>(),
        block_bytes: 512,
        flags: 0,
        source_flags: 0,
        destination_flags: 0,
        reserved: 0,
        source: Tags::default(),
        destination: Tags::default(),
    }
}

/// What the last error of this thread was about.
pub(crate) fn last_error() -> String {
    // SAFETY: a string that is valid until the thread's next call.
    let text = unsafe { CStr::from_ptr(dray_last_error()) };
    text.to_string_lossy().into_owned()
}

/// Opens a mover: the mover, or the code and what was wrong.
pub(crate) fn open(options: &Options) -> Result<*mut Mover, (i32, String)> {
    let mut mover = std::ptr::null_mut();
    // SAFETY: options, and a place for a pointer.
    match unsafe { dray_open(options, &raw mut mover) } {
        0 => Ok(mover),
        code => Err((-code, last_error())),
    }
}

/// The same of channels.
pub(crate) fn open_channels(options: &ChannelsOptions) -> Result<*mut Mover, (i32, String)> {
    let mut mover = std::ptr::null_mut();
    // SAFETY: options, and a place for a pointer.
    match unsafe { dray_open_channels(options, &raw mut mover) } {
        0 => Ok(mover),
        code => Err((-code, last_error())),
    }
}
