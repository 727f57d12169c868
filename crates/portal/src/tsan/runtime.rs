//! Functions of ThreadSanitizer's runtime in the program (`sanitizer/tsan_interface.h`, `tsan_interface.h` of compiler-rt).

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute_copy;
use std::sync::OnceLock;

/// A fiber, as the runtime names it.
pub(super) type Fiber = *mut c_void;

type OfAddress = unsafe extern "C" fn(*mut c_void);
pub(super) type OfRange = unsafe extern "C" fn(*mut c_void, usize, *mut c_void);

/// The functions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runtime {
    pub(super) create_fiber: unsafe extern "C" fn(u32) -> Fiber,
    pub(super) current_fiber: unsafe extern "C" fn() -> Fiber,
    pub(super) switch_to_fiber: unsafe extern "C" fn(Fiber, u32),
    pub(super) set_fiber_name: unsafe extern "C" fn(Fiber, *const c_char),
    pub(super) read_range: OfRange,
    pub(super) write_range: OfRange,
    pub(super) acquire: OfAddress,
    pub(super) release: OfAddress,
    pub(super) enter: OfAddress,
    pub(super) leave: unsafe extern "C" fn(),
    pub(super) ignore: unsafe extern "C" fn(),
    pub(super) heed: unsafe extern "C" fn(),
}

/// Of `__tsan_switch_to_fiber`: what the thread did before does not come before what the fiber does.
pub(super) const NO_ORDER: u32 = 1;

static FOUND: OnceLock<Runtime> = OnceLock::new();

impl Runtime {
    /// That of the program; `None` if it has none. Looks it up once, not in a signal handler.
    pub(super) fn find() -> Option<Runtime> {
        if let Some(found) = FOUND.get() {
            return Some(*found);
        }
        let found = Runtime {
            // SAFETY: the function of this name has this type.
            create_fiber: unsafe { function(c"__tsan_create_fiber") }?,
            // SAFETY: as above.
            current_fiber: unsafe { function(c"__tsan_get_current_fiber") }?,
            // SAFETY: as above.
            switch_to_fiber: unsafe { function(c"__tsan_switch_to_fiber") }?,
            // SAFETY: as above.
            set_fiber_name: unsafe { function(c"__tsan_set_fiber_name") }?,
            // SAFETY: as above.
            read_range: unsafe { function(c"__tsan_read_range_pc") }?,
            // SAFETY: as above.
            write_range: unsafe { function(c"__tsan_write_range_pc") }?,
            // SAFETY: as above.
            acquire: unsafe { function(c"__tsan_acquire") }?,
            // SAFETY: as above.
            release: unsafe { function(c"__tsan_release") }?,
            // SAFETY: as above.
            enter: unsafe { function(c"__tsan_func_entry") }?,
            // SAFETY: as above.
            leave: unsafe { function(c"__tsan_func_exit") }?,
            // SAFETY: as above.
            ignore: unsafe { function(c"__tsan_ignore_thread_begin") }?,
            // SAFETY: as above.
            heed: unsafe { function(c"__tsan_ignore_thread_end") }?,
        };
        Some(*FOUND.get_or_init(|| found))
    }

    /// That which was found.
    pub(super) fn get() -> Option<&'static Runtime> {
        FOUND.get()
    }
}

/// A function by its name.
///
/// # Safety
/// `F` is a pointer to functions, and that of this name has the type.
pub(super) unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    // SAFETY: the name is a string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: the caller vouches for the type.
    (!address.is_null()).then(|| unsafe { transmute_copy(&address) })
}
