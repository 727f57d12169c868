//! Where a number comes from.

/// Where a number comes from; each kind has its own look in every chart.
///
/// Modelled: solid fill, solid line. Measured here: hatched fill, dashed line. Counted: bars and
/// markers with an edge of their colour and no fill. Published: open markers with a black edge,
/// never bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provenance {
    /// Computed by the model of a platform.
    Modelled,
    /// Measured on the machine that wrote the report.
    Measured,
    /// Counted by a kernel in a guest: events, and no times.
    Counted,
    /// Taken from a publication.
    Published,
}

impl Provenance {
    /// All kinds, in the order in which they are listed.
    pub const ALL: [Self; 4] = [
        Self::Modelled,
        Self::Measured,
        Self::Counted,
        Self::Published,
    ];

    /// The same at the foot of a picture for print that shows several kinds: how each looks.
    pub(crate) fn on_paper(self) -> &'static str {
        match self {
            Self::Modelled => "filled: modelled",
            Self::Measured => "open, or with a black edge: measured here",
            Self::Counted => "white: counted in a guest",
            Self::Published => "black and open: published",
        }
    }

    /// The word that stands in legends and tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Modelled => "modelled",
            Self::Measured => "measured here",
            Self::Counted => "counted in a guest",
            Self::Published => "published",
        }
    }
}
