//! Colours, fills and markers: how each series looks.

use crate::svg::{INK, Svg, Tag};
use crate::{Chart, Provenance, Series, SeriesKind};

/// Hues that colour-blind readers can tell apart (Okabe and Ito, 2008), without its yellow, which
/// is too light for lines on white, and with a grey.
const HUES: [[u8; 3]; 7] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [86, 180, 233],
    [110, 110, 110],
];

/// The same and black, for print: as many as there are markers and patterns.
const PRINT_HUES: [[u8; 3]; 8] = [
    HUES[0],
    HUES[1],
    HUES[2],
    HUES[3],
    HUES[4],
    HUES[5],
    HUES[6],
    [0, 0, 0],
];

/// Form of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Circle,
    Square,
    Diamond,
    Up,
    Down,
    Left,
    Right,
    Star,
}

const SHAPES: [Shape; 8] = [
    Shape::Circle,
    Shape::Square,
    Shape::Diamond,
    Shape::Up,
    Shape::Down,
    Shape::Left,
    Shape::Right,
    Shape::Star,
];

/// Bars for print, by number; the first is full.
const PATTERNS: [Option<Weave>; 8] = [
    None,
    Some(Weave::Stripes(45)),
    Some(Weave::Stripes(-45)),
    Some(Weave::Dots),
    Some(Weave::Stripes(90)),
    Some(Weave::Net(45)),
    Some(Weave::Stripes(0)),
    Some(Weave::Net(0)),
];

/// Dashes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dash {
    Long,
    Short,
    Mixed,
}

impl Dash {
    pub(crate) fn in_plot(self) -> &'static str {
        match self {
            Self::Long => "6 4",
            Self::Short => "2 2.5",
            Self::Mixed => "8 3 2 3",
        }
    }

    /// The same in a sample, which is short.
    pub(crate) fn in_legend(self) -> &'static str {
        match self {
            Self::Long => "4 3",
            Self::Short => "2 2",
            Self::Mixed => "5 2 1.5 2",
        }
    }
}

/// A pattern that bars are filled with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    weave: Weave,
    /// Behind it.
    ground: String,
    /// Edge of a tile.
    tile: u8,
}

/// What a tile of a pattern holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weave {
    /// Bars from side to side, turned by so many degrees.
    Stripes(i16),
    /// Stripes both ways, turned by so many degrees.
    Net(i16),
    Dots,
}

/// How a series looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paint {
    /// Its colour, as `#rrggbb`.
    pub(crate) colour: String,
    /// What its bars and markers are filled with: the colour, a hatch in it, or white.
    pub(crate) fill: String,
    /// The edge of its bars and markers.
    pub(crate) edge: Option<String>,
    /// The dashes of its line.
    pub(crate) dash: Option<Dash>,
    /// The pattern that its fill names.
    pattern: Option<Pattern>,
    /// Its markers.
    pub(crate) shape: Shape,
}

impl Paint {
    /// One for each series of a chart.
    pub(crate) fn all(chart: &Chart) -> Vec<Self> {
        let shapes = shapes(chart);
        colours(chart)
            .into_iter()
            .zip(&chart.series)
            .enumerate()
            .map(|(index, (colour, series))| {
                let (fill, edge) = match series.provenance {
                    Provenance::Modelled => (colour.clone(), None),
                    Provenance::Measured => (
                        format!("url(#{})", hatch_id(&chart.id, index)),
                        Some(colour.clone()),
                    ),
                    Provenance::Counted => ("#ffffff".to_owned(), Some(colour.clone())),
                    Provenance::Published => ("#ffffff".to_owned(), Some("#000000".to_owned())),
                };
                Self {
                    colour,
                    fill,
                    edge,
                    dash: (series.provenance == Provenance::Measured).then_some(Dash::Long),
                    pattern: (series.provenance == Provenance::Measured).then(|| Pattern {
                        weave: Weave::Stripes(45),
                        ground: "#ffffff".to_owned(),
                        tile: 4,
                    }),
                    shape: shapes[index],
                }
            })
            .collect()
    }

    /// One for each series of a chart for print, by the number that its name has in all pictures.
    ///
    /// Bars differ in pattern, lines in marker and dashes, so that a grey print tells them apart.
    /// Filled: modelled; an open marker or a black edge: measured; white: counted; a black open
    /// marker: published.
    pub(crate) fn for_print(chart: &Chart, numbers: &[usize]) -> Vec<Self> {
        let looks = chart.series.iter().zip(numbers).enumerate();
        looks
            .map(|(index, (series, number))| {
                let rgb = PRINT_HUES[number % PRINT_HUES.len()];
                // The second round of hues meets other patterns and markers.
                let form = number + number / PRINT_HUES.len();
                let hue = shade(rgb, 0, 1);
                let bars = matches!(series.drawn_as(), SeriesKind::Bars | SeriesKind::Stacked);
                let pattern = PATTERNS[form % PATTERNS.len()]
                    .filter(|_| bars && series.provenance != Provenance::Counted)
                    .map(|weave| Pattern {
                        weave,
                        ground: shade(rgb, 0, 4),
                        tile: 6,
                    });
                let white = || "#ffffff".to_owned();
                let filled = match pattern {
                    Some(_) => format!("url(#{})", hatch_id(&chart.id, index)),
                    None => hue.clone(),
                };
                let black = || Some("#000000".to_owned());
                let (fill, edge) = match (series.provenance, bars) {
                    (Provenance::Modelled, true) => (filled, Some(hue.clone())),
                    (Provenance::Modelled, false) => (filled, None),
                    (Provenance::Measured, true) => (filled, black()),
                    (Provenance::Measured | Provenance::Counted, _) => (white(), Some(hue.clone())),
                    (Provenance::Published, _) => (white(), black()),
                };
                Self {
                    colour: hue,
                    fill,
                    edge,
                    dash: [None, Some(Dash::Long), Some(Dash::Short), Some(Dash::Mixed)]
                        [number / PRINT_HUES.len() % 4],
                    pattern,
                    shape: SHAPES[form % SHAPES.len()],
                }
            })
            .collect()
    }

    /// Draws its marker around a point; `mark` is what the page knows of it.
    pub(crate) fn marker(
        &self,
        svg: &mut Svg,
        (x, y): (f64, f64),
        radius: f64,
        tooltip: &str,
        mark: Option<&Mark>,
    ) {
        let d = outline(self.shape, x, y, radius);
        let tag = svg.tag("path").word("d", &d).word("fill", &self.fill);
        let tag = match mark {
            Some(mark) => mark.on(tag),
            None => tag,
        };
        match &self.edge {
            Some(edge) => tag.word("stroke", edge).number("stroke-width", 1.3),
            // A white edge keeps a marker apart from bars and lines of its own colour.
            None => tag.word("stroke", "#ffffff").number("stroke-width", 0.8),
        }
        .tooltip(tooltip);
    }
}

/// What a bar or a marker shows, for a page's script: attributes that no picture depends on.
#[derive(Debug)]
pub(crate) struct Mark {
    /// Index of the series.
    pub(crate) series: usize,
    /// Index of the category.
    pub(crate) category: usize,
    /// The value as it is shown.
    pub(crate) value: String,
}

impl Mark {
    pub(crate) fn on<'a>(&self, tag: Tag<'a>) -> Tag<'a> {
        tag.word("data-s", &self.series.to_string())
            .word("data-c", &self.category.to_string())
            .word("data-v", &self.value)
    }
}

/// Writes the hatches that the series of a chart are filled with.
pub(crate) fn hatches(svg: &mut Svg, chart: &Chart, paints: &[Paint]) {
    let patterns = paints.iter().enumerate();
    let mut hatched = patterns
        .filter_map(|(index, paint)| Some((index, paint, paint.pattern.as_ref()?)))
        .peekable();
    if hatched.peek().is_none() {
        return;
    }
    svg.tag("defs").open();
    for (index, paint, pattern) in hatched {
        let id = hatch_id(&chart.id, index);
        pattern.draw(svg, &id, &paint.colour);
    }
    svg.end("defs");
}

impl Pattern {
    fn draw(&self, svg: &mut Svg, id: &str, colour: &str) {
        let edge = f64::from(self.tile);
        let tag = svg
            .tag("pattern")
            .word("id", id)
            .number("width", edge)
            .number("height", edge)
            .word("patternUnits", "userSpaceOnUse");
        match self.weave {
            Weave::Stripes(0) | Weave::Net(0) | Weave::Dots => tag.open(),
            Weave::Stripes(turn) | Weave::Net(turn) => tag
                .word("patternTransform", &format!("rotate({turn})"))
                .open(),
        }
        let mut rect = |width: f64, height: f64, fill: &str| {
            svg.tag("rect")
                .number("width", width)
                .number("height", height)
                .word("fill", fill)
                .empty();
        };
        rect(edge, edge, &self.ground);
        match self.weave {
            Weave::Stripes(_) => rect(1.6, edge, colour),
            Weave::Net(_) => {
                rect(1.2, edge, colour);
                rect(edge, 1.2, colour);
            }
            Weave::Dots => rect(2.6, 2.6, colour),
        }
        svg.end("pattern");
    }
}

/// Ids carry the chart's, because many charts are put into one page.
fn hatch_id(chart: &str, series: usize) -> String {
    format!("{chart}--hatch-{series}")
}

/// One colour per series: families share a hue, the others take what hues are left.
fn colours(chart: &Chart) -> Vec<String> {
    let families: Vec<usize> = chart
        .series
        .iter()
        .filter_map(|s| s.family)
        .map(|family| usize::from(family) % HUES.len())
        .collect();
    let mut free = (0..HUES.len()).filter(|hue| !families.contains(hue));
    let mut overflow = 0;
    let mut seen: Vec<(u8, Provenance)> = Vec::new();
    chart
        .series
        .iter()
        .map(|series| {
            if series.provenance == Provenance::Published {
                return INK.to_owned();
            }
            match series.family {
                Some(family) => {
                    let key = (family, series.provenance);
                    let rank = seen.iter().filter(|k| **k == key).count();
                    seen.push(key);
                    let members = chart
                        .series
                        .iter()
                        .filter(|s| (s.family, s.provenance) == (Some(family), key.1))
                        .count();
                    shade(HUES[usize::from(family) % HUES.len()], rank, members)
                }
                None => match free.next() {
                    Some(hue) => shade(HUES[hue], 0, 1),
                    None => {
                        overflow += 1;
                        shade(HUES[(overflow - 1) % HUES.len()], 1, 2)
                    }
                },
            }
        })
        .collect()
}

/// One shape per series; published points have the shape of the line that they belong to.
fn shapes(chart: &Chart) -> Vec<Shape> {
    let marked = |s: &Series| matches!(s.drawn_as(), SeriesKind::Line | SeriesKind::Points);
    let published = |s: &Series| s.provenance == Provenance::Published;
    let mut used = [0; 2];
    let own: Vec<Shape> = chart
        .series
        .iter()
        .map(|series| {
            let counter = &mut used[usize::from(published(series))];
            let shape = SHAPES[*counter % SHAPES.len()];
            *counter += usize::from(marked(series));
            shape
        })
        .collect();
    chart
        .series
        .iter()
        .enumerate()
        .map(|(index, series)| {
            let partner = chart.series.iter().position(|other| {
                published(series) && marked(other) && !published(other) && other.name == series.name
            });
            own[partner.unwrap_or(index)]
        })
        .collect()
}

/// The shade of a hue for one of several members: alone the hue itself, else from light to dark.
fn shade(hue: [u8; 3], rank: usize, members: usize) -> String {
    // In thousandths of the way from light to dark; the hue itself is in the middle.
    let place = (2 * rank + 1) * 500 / members.max(1);
    let mix = |channel: u8| {
        let channel = usize::from(channel);
        if place <= 500 {
            let white = (500 - place) * 160 / 100;
            (channel * (1000 - white) + 255 * white) / 1000
        } else {
            let black = (place - 500) * 130 / 100;
            channel * (1000 - black) / 1000
        }
    };
    let [red, green, blue] = hue.map(mix);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn outline(shape: Shape, x: f64, y: f64, r: f64) -> String {
    let c = crate::number::coordinate;
    let corners = |points: &[(f64, f64)]| {
        let mut d = String::new();
        for (index, (dx, dy)) in points.iter().enumerate() {
            d.push(if index == 0 { 'M' } else { 'L' });
            d.push_str(&format!("{} {}", c(x + dx * r), c(y + dy * r)));
        }
        d.push('Z');
        d
    };
    match shape {
        Shape::Circle => format!(
            "M{} {}a{r} {r} 0 1 0 {w} 0a{r} {r} 0 1 0 -{w} 0Z",
            c(x - r),
            c(y),
            r = c(r),
            w = c(2.0 * r),
        ),
        Shape::Square => corners(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        Shape::Diamond => corners(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]),
        Shape::Up => corners(&[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)]),
        Shape::Down => corners(&[(0.0, 1.15), (1.1, -0.85), (-1.1, -0.85)]),
        Shape::Left => corners(&[(-1.15, 0.0), (0.85, 1.1), (0.85, -1.1)]),
        Shape::Right => corners(&[(1.15, 0.0), (-0.85, 1.1), (-0.85, -1.1)]),
        Shape::Star => corners(&[
            (0.0, -1.3),
            (0.32, -0.44),
            (1.24, -0.4),
            (0.52, 0.17),
            (0.76, 1.05),
            (0.0, 0.55),
            (-0.76, 1.05),
            (-0.52, 0.17),
            (-1.24, -0.4),
            (-0.32, -0.44),
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(series: Vec<Series>) -> Chart {
        Chart {
            id: "c".into(),
            series,
            ..Chart::default()
        }
    }

    fn series(provenance: Provenance) -> Series {
        Series::new("s", provenance, SeriesKind::Bars, vec![Some(1.0)])
    }

    #[test]
    fn series_without_family_get_unused_hues() {
        let chart = chart(vec![
            series(Provenance::Modelled),
            series(Provenance::Modelled).family(0),
        ]);
        assert_eq!(colours(&chart), ["#d55e00", "#0072b2"]);
    }

    #[test]
    fn colours_of_a_family_get_darker_in_order() {
        let chart = chart(
            (0..4)
                .map(|_| series(Provenance::Modelled).family(0))
                .collect(),
        );
        let colours = colours(&chart);
        let blue = |c: &String| u8::from_str_radix(&c[5..], 16).unwrap();
        assert!(
            colours.windows(2).all(|w| blue(&w[0]) > blue(&w[1])),
            "{colours:?}"
        );
    }

    #[test]
    fn a_modelled_and_a_measured_member_of_a_rank_share_the_colour() {
        let chart = chart(vec![
            series(Provenance::Modelled).family(2),
            series(Provenance::Measured).family(2),
        ]);
        let paints = Paint::all(&chart);
        assert_eq!(paints[0].colour, paints[1].colour);
        assert_eq!(paints[1].fill, "url(#c--hatch-1)");
        assert!(paints[1].dash.is_some() && paints[0].dash.is_none());
    }

    #[test]
    fn ten_series_have_ten_colours() {
        let chart = chart((0..10).map(|_| series(Provenance::Modelled)).collect());
        let mut colours = colours(&chart);
        colours.sort();
        colours.dedup();
        assert_eq!(colours.len(), 10);
    }

    #[test]
    fn published_points_are_white_with_a_black_edge() {
        let paints = Paint::all(&chart(vec![series(Provenance::Published)]));
        assert_eq!(paints[0].fill, "#ffffff");
        assert_eq!(paints[0].edge.as_deref(), Some("#000000"));
    }
}
