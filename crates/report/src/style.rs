//! How large things are drawn.

use crate::{ChartSize, PaperWidth};

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
    /// Whether a long legend may stand beside the plot.
    pub(crate) beside: bool,
    /// On paper: points to a pixel. There is no badge then, and no rule above the foot.
    pub(crate) points: Option<f64>,
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
                beside: true,
                points: None,
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
                beside: false,
                points: None,
            },
        }
    }

    /// Text of 7 to 8.4 points at the width that the picture has on paper.
    pub(crate) fn paper(width: PaperWidth) -> Self {
        const POINTS: f64 = 0.7;
        Self {
            width: width.points() / POINTS,
            plot_height: match width {
                PaperWidth::Column => 180.0,
                PaperWidth::Page => 220.0,
            },
            title: 12.0,
            label: 11.0,
            small: 10.5,
            foot: 10.0,
            marker: 4.2,
            points: Some(POINTS),
            ..Self::of(ChartSize::Half)
        }
    }
}
