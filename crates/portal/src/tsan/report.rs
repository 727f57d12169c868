//! Reports of ThreadSanitizer that are none: the program read a record after this library had looked, and knows what it says.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use super::runtime::function;
use super::{is_active, records};

type Data = unsafe extern "C" fn(
    *const c_void,
    *mut *const c_char,
    *mut c_int,
    *mut c_int,
    *mut c_int,
    *mut c_int,
    *mut c_int,
    *mut c_int,
    *mut c_int,
    *mut *mut c_void,
    usize,
) -> c_int;

type Thread = unsafe extern "C" fn(
    *const c_void,
    usize,
    *mut c_int,
    *mut u64,
    *mut c_int,
    *mut *const c_char,
    *mut c_int,
    *mut *mut c_void,
    usize,
) -> c_int;

/// The runtime's functions that say what a report has (`sanitizer/tsan_interface.h`, debugging).
static FUNCTIONS: OnceLock<(Data, Thread)> = OnceLock::new();

/// Looks up the functions: the runtime reports with its locks held, where the loader must not be asked.
pub(super) fn look_up() {
    // SAFETY: the function of this name has this type.
    let data: Option<Data> = unsafe { function(c"__tsan_get_report_data") };
    // SAFETY: as above.
    let thread: Option<Thread> = unsafe { function(c"__tsan_get_report_thread") };
    if let Some(both) = data.zip(thread) {
        FUNCTIONS.get_or_init(|| both);
    }
}

/// `__tsan::OnReport(ReportDesc const*, bool)`: whether a report is not to be printed.
#[cfg_attr(
    feature = "preload",
    unsafe(export_name = "_ZN6__tsan8OnReportEPKNS_10ReportDescEb")
)]
pub extern "C" fn on_report(report: *const c_void, suppressed: bool) -> bool {
    if suppressed || !is_active() {
        return suppressed;
    }
    submissions(report).is_some_and(|mut all| all.any(records::may_have_been_seen))
}

/// Numbers of the submissions among the threads of a report.
fn submissions(report: *const c_void) -> Option<impl Iterator<Item = u64>> {
    let (data, thread) = *FUNCTIONS.get()?;
    let mut counts: [c_int; 7] = [0; 7];
    let mut at = counts.each_mut().map(|count| &raw mut *count).into_iter();
    let mut next = || at.next().unwrap_or(null_mut());
    let (mut description, mut sleep) = (std::ptr::null(), null_mut());
    let places = [next(), next(), next(), next(), next(), next(), next()];
    let [count, stacks, accesses, locations, mutexes, threads, ids] = places;
    // SAFETY: the report is one, and there is room for what is written.
    unsafe {
        data(
            report,
            &mut description,
            count,
            stacks,
            accesses,
            locations,
            mutexes,
            threads,
            ids,
            &mut sleep,
            0,
        )
    };
    let threads = usize::try_from(counts[5]).unwrap_or(0);
    Some((0..threads).filter_map(move |index| {
        let (mut number, mut running, mut parent, mut system) = (0, 0, 0, 0);
        let (mut name, mut trace) = (std::ptr::null(), null_mut());
        // SAFETY: there are as many threads, and there is room for what is written.
        unsafe {
            thread(
                report,
                index,
                &mut number,
                &mut system,
                &mut running,
                &mut name,
                &mut parent,
                &mut trace,
                0,
            )
        };
        // SAFETY: null, or a string of the report.
        let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })?;
        let (_, submission) = name
            .to_str()
            .ok()?
            .strip_prefix("dray: ")?
            .rsplit_once('#')?;
        submission.parse().ok()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_the_runtimes_where_the_device_is_not_reported() {
        // No report: it must not be asked.
        assert!(!on_report(std::ptr::null(), false));
        assert!(on_report(std::ptr::null(), true));
    }
}
