//! How large things are drawn.

use crate::ChartSize;

/// Sizes in pixels.
#[derive(Debug)]
pub(crate) struct Style {
    pub(crate) width: f64,
    pub(crate) plot_height: f64,
    pub(crate) title: f64,
    pub(crate) label: f64,
    pub(crate) small: f64,
    pub(crate) foot: f64,
    pub(crate) marker: f64,
    /// Steps on a linear axis.
    pub(crate) steps: u32,
}

impl Style {
    pub(crate) fn of(size: ChartSize) -> Self {
        match size {
            ChartSize::Full => Self {
                width: 860.0,
                plot_height: 300.0,
                title: 15.0,
                label: 12.0,
                small: 11.5,
                foot: 10.0,
                marker: 4.4,
                steps: 7,
            },
            ChartSize::Half => Self {
                width: 420.0,
                plot_height: 180.0,
                title: 13.0,
                label: 11.0,
                small: 10.5,
                foot: 10.0,
                marker: 3.8,
                steps: 5,
            },
        }
    }
}
