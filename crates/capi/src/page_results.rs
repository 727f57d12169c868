//! Where the results of a list of pages go.

use dray::Reason;
use dray::pages::{self, PageListReport};

use crate::completion::executor;
use crate::error::Refusal;
use crate::mover::place;
use crate::page_types::{
    Page, PageReason, PageReport, PageRow, PageSize, PageState, PageStatistics,
};
use crate::structure::sized;

/// Places of the caller's.
pub(crate) struct Results {
    /// The place, and the size that it says.
    statistics: Option<(*mut PageStatistics, usize)>,
    /// The place, and what was there.
    report: Option<(*mut PageReport, PageReport)>,
}

impl Results {
    /// # Safety
    /// `statistics` must be NULL or point to as many bytes as its size says, and so must `report` if there is
    /// one.
    pub(crate) unsafe fn at(
        statistics: *mut PageStatistics,
        report: Option<*mut PageReport>,
    ) -> Result<Results, Refusal> {
        let mut results = Results {
            statistics: None,
            report: None,
        };
        if !statistics.is_null() {
            // SAFETY: so many bytes are readable, by the caller's promise; any bytes are statistics.
            let asked = unsafe { sized("dray_page_list_statistics", statistics, &[]) }?;
            results.statistics = Some((statistics, asked.size));
        }
        if let Some(report) = report {
            // SAFETY: so many bytes are readable, by the caller's promise; any bytes are a report.
            let asked = unsafe { sized("dray_page_list_report", report, &[]) }?;
            if !asked.states.is_null() {
                place("states of pages", asked.states, 1)?;
            }
            if !asked.rows.is_null() {
                place("rows", asked.rows, 1)?;
            }
            results.report = Some((report, asked));
        }
        Ok(results)
    }

    pub(crate) fn are_wanted(&self) -> bool {
        self.statistics.is_some() || self.report.is_some()
    }

    /// Nothing was copied.
    ///
    /// # Safety
    /// The places must be such, that of the states for as many as there are pages.
    pub(crate) unsafe fn write_not_begun(&self, pages: &[Page]) {
        let states = pages.iter().map(|page| PageState {
            not_copied_bytes: page.bytes,
            ..PageState::default()
        });
        // SAFETY: the caller's promise is the same.
        unsafe { self.write_all(PageStatistics::default(), states, &[]) };
    }

    /// What was copied.
    ///
    /// # Safety
    /// As [`write_not_begun`](Results::write_not_begun), of the list that was copied.
    pub(crate) unsafe fn write(&self, statistics: PageStatistics, report: &PageListReport) {
        let states = report.states.iter().map(state);
        let rows: Vec<PageRow> = report.statistics.iter().map(row).collect();
        // SAFETY: the caller's promise is the same.
        unsafe { self.write_all(statistics, states, &rows) };
    }

    /// # Safety
    /// The places must be such, that of the states for all of `states`.
    unsafe fn write_all(
        &self,
        made: PageStatistics,
        states: impl Iterator<Item = PageState>,
        rows: &[PageRow],
    ) {
        if let Some((statistics, size)) = self.statistics {
            // SAFETY: `size` bytes, of which this version has all.
            unsafe { statistics.write(PageStatistics { size, ..made }) };
        }
        let Some((report, asked)) = self.report else {
            return;
        };
        if !asked.states.is_null() {
            for (n, state) in states.enumerate() {
                // SAFETY: a place for all states, by the caller's promise.
                let place = unsafe { asked.states.add(n) };
                // SAFETY: as above.
                unsafe { place.write(state) };
            }
        }
        if !asked.rows.is_null() {
            for (n, row) in rows.iter().take(asked.max_rows).enumerate() {
                // SAFETY: a place for `max_rows`, by the caller's promise.
                let place = unsafe { asked.rows.add(n) };
                // SAFETY: as above.
                unsafe { place.write(*row) };
            }
        }
        let row_count = rows.len();
        // SAFETY: as many bytes as its size says, of which this version has all.
        unsafe { report.write(PageReport { row_count, ..asked }) };
    }
}

fn state(state: &pages::PageState) -> PageState {
    match *state {
        pages::PageState::Copied => PageState::default(),
        pages::PageState::NotCopied { bytes, fault } => PageState {
            not_copied_bytes: bytes,
            fault_address: fault.map_or(0, |(address, _)| address),
            has_fault: fault.is_some().into(),
            write_fault: fault.is_some_and(|(_, write)| write).into(),
            reserved: [0; 6],
        },
    }
}

fn row(row: &pages::PageStatistic) -> PageRow {
    PageRow {
        page_size: match row.size {
            pages::PageSize::Base => PageSize::Base,
            pages::PageSize::Large => PageSize::Large,
        } as u32,
        executor: executor(row.executor) as u32,
        reason: match row.reason {
            None => PageReason::Offloaded,
            Some(Reason::BelowThreshold) => PageReason::BelowThreshold,
            Some(Reason::NoDevice) => PageReason::NoDevice,
            Some(Reason::PageFault) => PageReason::PageFault,
            Some(Reason::NotExecuted) => PageReason::NotExecuted,
            Some(Reason::DeviceError) => PageReason::DeviceError,
            Some(other) => {
                debug_assert!(false, "page lists give no {other:?}");
                PageReason::NotExecuted
            }
        } as u32,
        reserved: 0,
        entries: row.entries,
        bytes: row.bytes,
    }
}
