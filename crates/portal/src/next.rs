//! The original functions that this library interposes.

use std::sync::atomic::{AtomicUsize, Ordering};

/// One function, looked up when it is first needed: constructors of other libraries run before ours.
pub(crate) struct Next {
    name: &'static std::ffi::CStr,
    pub(crate) address: AtomicUsize,
}

impl Next {
    pub(crate) const fn new(name: &'static std::ffi::CStr) -> Next {
        Next {
            name,
            address: AtomicUsize::new(0),
        }
    }

    /// A function by a name that ends with a zero.
    pub(crate) const fn named(name: &'static str) -> Next {
        match std::ffi::CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => Next::new(name),
            Err(_) => panic!("the name has no end"),
        }
    }

    /// Its address; 0 if no object behind us has it.
    pub(crate) fn address(&self) -> usize {
        match self.address.load(Ordering::Relaxed) {
            0 => self.look_up(),
            address => address,
        }
    }

    #[cold]
    fn look_up(&self) -> usize {
        // SAFETY: the name is a string.
        let mut address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) }.addr();
        if address == 0 {
            // One that is there for old programs alone is found with its version.
            let old = c"GLIBC_2.2.5".as_ptr();
            // SAFETY: name and version are strings.
            address = unsafe { libc::dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), old) }.addr();
        }
        self.address.store(address, Ordering::Relaxed);
        address
    }
}

static SIGACTION: Next = Next::new(c"sigaction");

/// The real sigaction, looked up beforehand: the handler needs it.
pub(crate) fn sigaction() -> SigAction {
    // SAFETY: it is null or the function of that name.
    let next: Option<SigAction> = unsafe { std::mem::transmute(SIGACTION.address()) };
    next.unwrap_or(libc::sigaction)
}

pub(crate) type SigAction =
    unsafe extern "C" fn(libc::c_int, *const libc::sigaction, *mut libc::sigaction) -> libc::c_int;

/// Sets the kernel's action. Whether it could.
pub(crate) fn set_action(signal: i32, action: &libc::sigaction) -> bool {
    // SAFETY: the action is one.
    unsafe { sigaction()(signal, action, std::ptr::null_mut()) == 0 }
}

/// The kernel's action.
pub(crate) fn action(signal: i32) -> Option<libc::sigaction> {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the place is written to.
    let answer = unsafe { sigaction()(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all zero is an action as well.
    (answer == 0).then(|| unsafe { action.assume_init() })
}

/// The address of something in the C library itself, whatever else has the same name.
#[cfg(feature = "preload")]
pub(crate) fn of_libc(name: &std::ffi::CStr) -> Option<usize> {
    // SAFETY: the name is a string; nothing is loaded by it.
    let handle =
        unsafe { libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: the handle is one, and the name a string.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) }.expose_provenance();
    // SAFETY: the handle is one; the library stays.
    unsafe { libc::dlclose(handle) };
    (address != 0).then_some(address)
}
