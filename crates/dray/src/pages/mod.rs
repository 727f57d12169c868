//! Lists of pages, copied together: base pages as batches, large pages split over channels.
//!
//! [`PageList::plan`] merges neighbours and shares the copies out; each channel then runs its
//! [`PageShare`], a resumable [`Application`](crate::Application), in real or in modelled time.
//! [`copy_page_lists`] does all of it on this process's memory; [`copy_page_lists_with_report`] also says
//! what became of each entry. The options of the published interface are those of [`PageListOptions`]:
//! `limit_chans`, `limit_mt_num` and `dsa_copy_threshold`. The C library's `dray_copy_page_list` stands on
//! these names.

mod copy;
mod core;
mod plan;
mod probe;
mod report;
mod share;

pub use copy::{copy_page_lists, copy_page_lists_with_report};
pub use plan::{PageCopy, PageList, PageListError, PageListOptions};
pub use report::{PageListReport, PageSize, PageState, PageStatistic};
pub use share::{Fallback, PageCounts, PageShare};
