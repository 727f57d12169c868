//! Memory of dray's own, which is never managed, and pages of the program that never move.

use std::sync::atomic::{AtomicUsize, Ordering};

pub use dray_interpose::Ranges;

/// Memory of this library.
pub static OWN: Ranges = Ranges::new();
/// Pages on the program's heap that this library's threads read.
pub static PINNED: Ranges = Ranges::new();

/// Memory of the library of `dray run`, if that is loaded, too: a write to a portal goes through it, while
/// pages are out.
pub fn of_portals() -> Vec<(u64, u64)> {
    static RANGES: AtomicUsize = AtomicUsize::new(1);
    let known = match RANGES.load(Ordering::Relaxed) {
        1 => {
            // SAFETY: the name is a string.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"DRAY_PORTAL_OWN_1".as_ptr()) };
            RANGES.store(found.expose_provenance(), Ordering::Relaxed);
            found.expose_provenance()
        }
        known => known,
    };
    let ranges = std::ptr::with_exposed_provenance::<Ranges>(known);
    // SAFETY: null, or the static of that name, whose layout its number stands for.
    unsafe { ranges.as_ref() }.map_or_else(Vec::new, Ranges::all)
}
