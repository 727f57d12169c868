//! One row of numbers in a chart.

use crate::Provenance;

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SeriesKind {
    /// One bar per category, beside the bars of other series.
    #[default]
    Bars,
    /// A line with a marker at each value; it breaks at a missing one.
    Line,
    /// Markers only.
    Points,
    /// One part of a bar: the parts of a category stand on each other in the order of the series.
    Stacked,
}

/// Which axis a series is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Axis {
    /// The main axis.
    #[default]
    Left,
    /// The second axis; it needs `Chart::y2_label`.
    Right,
}

/// One row of numbers in a chart, one value per category, in the unit of its axis.
///
/// A published series is drawn as points whatever its kind says. One that has the name of a bar
/// series of the same chart stands over the bars of that series, any other in the middle of its
/// category.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend, without the word for the provenance.
    pub name: String,
    /// Where the numbers come from.
    pub provenance: Provenance,
    /// Whether the numbers rest on a guessed parameter; the legend then says "guess".
    pub guess: bool,
    /// How it is drawn.
    pub kind: SeriesKind,
    /// Which axis it is read from.
    pub axis: Axis,
    /// One value per category; `None` is left out, not drawn as 0.
    pub values: Vec<Option<f64>>,
    /// The 90 % interval of each value, lower end first: empty, or one for each category. It is drawn as a
    /// whisker, of bars that stand on each other not at all.
    pub spans: Vec<Option<(f64, f64)>>,
    /// Series of one family share a hue and differ in shade, light to dark in their order.
    ///
    /// Shades are counted per provenance: the second modelled and the second measured series of a
    /// family have the same colour, and differ in fill.
    pub family: Option<u8>,
    /// Categories whose value lies beyond the axis; a line is marked there at its upper edge. A
    /// note of the chart says what that means.
    pub beyond: Vec<usize>,
}

impl Series {
    /// A series on the left axis, of no family, that rests on no guess.
    pub fn new(
        name: impl Into<String>,
        provenance: Provenance,
        kind: SeriesKind,
        values: Vec<Option<f64>>,
    ) -> Self {
        Self {
            name: name.into(),
            provenance,
            guess: false,
            kind,
            axis: Axis::Left,
            values,
            spans: Vec::new(),
            family: None,
            beyond: Vec::new(),
        }
    }

    /// Marks it as resting on a guessed parameter.
    pub fn guessed(mut self) -> Self {
        self.guess = true;
        self
    }

    /// Puts it on the right axis.
    pub fn right(mut self) -> Self {
        self.axis = Axis::Right;
        self
    }

    /// Gives it the hue of a family.
    pub fn family(mut self, family: u8) -> Self {
        self.family = Some(family);
        self
    }

    /// The interval of a category that is drawn.
    pub(crate) fn span(&self, category: usize) -> Option<(f64, f64)> {
        let drawn = self.drawn_as() != SeriesKind::Stacked;
        self.spans
            .get(category)
            .copied()
            .flatten()
            .filter(|_| drawn)
    }

    /// Both ends of every interval that is drawn.
    pub(crate) fn span_ends(&self) -> impl Iterator<Item = f64> + '_ {
        let spans = (0..self.spans.len()).filter_map(|category| self.span(category));
        spans.flat_map(|(low, high)| [low, high])
    }

    /// What it is drawn as: published numbers are never bars and never joined.
    pub(crate) fn drawn_as(&self) -> SeriesKind {
        match self.provenance {
            Provenance::Published => SeriesKind::Points,
            _ => self.kind,
        }
    }
}
