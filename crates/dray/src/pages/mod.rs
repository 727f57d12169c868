//! Lists of pages, copied together: base pages as batches, large pages split over channels.
//!
//! [`PageList::plan`] merges neighbours and shares the copies out; each channel then runs its
//! [`PageShare`], a resumable [`Application`](crate::Application), in real or in modelled time.
//! [`copy_page_lists`] does all of it on this process's memory.

mod copy;
mod plan;
mod share;

pub use copy::copy_page_lists;
pub use plan::{PageCopy, PageList, PageListError, PageListOptions};
pub use share::{Fallback, PageCounts, PageShare};
