//! A topology as SVG.

use std::fmt::Write;

use super::layout::{BOX, Layout, MARGIN};
use super::text::describe;
use super::{EdgeId, Link, NodeKind, Topology};

/// What a picture says of an edge: the share of its capacity that is used, from 0 to 1, and a label.
type Load<'a> = dyn Fn(EdgeId) -> Option<(f64, String)> + 'a;

/// Font size of the labels of links, and the width of a letter and the height of a line in it.
const LABEL: (f64, f64, f64) = (9.0, 5.3, 10.0);

/// Where along a link its label may stand, the best place first.
const PLACES: [f64; 9] = [0.72, 0.6, 0.8, 0.5, 0.4, 0.86, 0.3, 0.2, 0.14];

/// Left, upper, right and lower side of a part of the picture that is taken.
#[derive(Clone, Copy)]
struct Area([f64; 4]);

impl Area {
    fn meets(&self, other: &Self) -> bool {
        let ([left, top, right, bottom], [l, t, r, b]) = (self.0, other.0);
        left < r && l < right && top < b && t < bottom
    }
}

impl Topology {
    /// The fabric as an SVG document.
    pub fn to_svg(&self) -> String {
        self.to_svg_with(
            &|_| None,
            "GiB/s down / up; ~ derived from generation, width and MPS",
        )
    }

    /// The fabric as an SVG document in which each directed edge may have a load. `note` stands below it.
    pub fn to_svg_with(
        &self,
        load: &dyn Fn(EdgeId) -> Option<(f64, String)>,
        note: &str,
    ) -> String {
        let layout = Layout::new(self);
        let (width, height) = (layout.width, layout.height + 34.0);
        let mut svg = String::new();
        let _ = writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             font-family=\"system-ui, sans-serif\" role=\"img\" aria-labelledby=\"t d\">"
        );
        let _ = writeln!(
            svg,
            "<title id=\"t\">{}</title>",
            escape(&format!("{}: {}", self.name, self.title))
        );
        let _ = writeln!(
            svg,
            "<desc id=\"d\">{} nodes and {} links.</desc>",
            self.nodes.len(),
            self.links.len()
        );
        let _ = writeln!(svg, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>");
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"26\" font-size=\"15\" font-weight=\"600\" fill=\"#111\">{}</text>\
             <text x=\"{MARGIN}\" y=\"43\" font-size=\"11\" fill=\"#555\">{}</text>",
            escape(&self.name),
            escape(&self.title)
        );
        let mut taken: Vec<Area> = layout
            .places
            .iter()
            .map(|(x, y)| Area([*x, *y, x + BOX.0, y + BOX.1]))
            .collect();
        let mut labels = String::new();
        for link in &self.links {
            self.draw_link(&mut svg, &mut labels, &mut taken, link, &layout, load);
        }
        for (node, (x, y)) in self.nodes.iter().zip(&layout.places) {
            let fill = match node.kind {
                NodeKind::Socket { .. } => "#dbeafe",
                NodeKind::HostAdapter => "#e0e7ff",
                NodeKind::Switch => "#fef3c7",
                NodeKind::EndpointAdapter => "#fde8d7",
                NodeKind::Endpoint { .. } => "#dcfce7",
            };
            let _ = writeln!(
                svg,
                "<g><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"{fill}\" stroke=\"#444\"/>\
                 <text x=\"{cx:.1}\" y=\"{:.1}\" font-size=\"12\" font-weight=\"600\" text-anchor=\"middle\" fill=\"#111\">{}</text>\
                 <text x=\"{cx:.1}\" y=\"{:.1}\" font-size=\"10\" text-anchor=\"middle\" fill=\"#444\">{}</text></g>",
                escape(&node.name),
                BOX.0,
                BOX.1,
                y + 17.0,
                escape(&shortened(&node.name)),
                y + 31.0,
                escape(&shortened(&describe(&node.kind))),
                cx = x + BOX.0 / 2.0
            );
        }
        svg.push_str(&labels);
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{:.0}\" font-size=\"10\" fill=\"#555\">{}</text>\n</svg>",
            height - 8.0,
            escape(note)
        );
        svg
    }

    fn draw_link(
        &self,
        svg: &mut String,
        labels: &mut String,
        taken: &mut Vec<Area>,
        link: &Link,
        layout: &Layout,
        load: &Load<'_>,
    ) {
        let [upper, lower] = link.ends;
        let outputs = &self.node(upper).outputs;
        let found = outputs.iter().find(|edge| {
            let edge = self.edge(**edge);
            edge.to == lower && std::ptr::eq(self.link(edge.link), link)
        });
        let Some(down) = found.copied() else { return };
        let up = self.edge(down).reverse;
        let [(ux, uy), (lx, ly)] = link.ends.map(|node| layout.places[node.0 as usize]);
        let level = (uy - ly).abs() < 1.0;
        // Boxes of one row are joined over the row.
        let (from, to) = match level {
            true => ((ux + BOX.0 / 2.0, uy), (lx + BOX.0 / 2.0, ly)),
            false => ((ux + BOX.0 / 2.0, uy + BOX.1), (lx + BOX.0 / 2.0, ly)),
        };
        let rise = (14.0 + (from.0 - to.0).abs() * 0.03).min(layout.arc);
        // The outer of two lines is the higher one.
        let side = (to.0 - from.0).signum();
        for (edge, shift) in [(down, -2.5), (up, 2.5)] {
            let loaded = load(edge);
            let (colour, thick) = match &loaded {
                None => ("#888", 1.5),
                Some((share, _)) => colour(*share),
            };
            let title = loaded.map_or(String::new(), |(_, label)| format!(": {label}"));
            let path = if level {
                let top = from.1 - rise + shift;
                format!(
                    "M{:.1} {:.1} V{top:.1} H{:.1} V{:.1}",
                    from.0 + shift * side,
                    from.1,
                    to.0 - shift * side,
                    to.1
                )
            } else {
                format!(
                    "M{:.1} {:.1} L{:.1} {:.1}",
                    from.0 + shift,
                    from.1,
                    to.0 + shift,
                    to.1
                )
            };
            let _ = writeln!(
                svg,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{thick}\"><title>{}</title></path>",
                escape(&format!(
                    "{} {:.2} GiB/s{title}",
                    self.edge(edge).name,
                    self.edge(edge).capacity_gib_s
                ))
            );
        }
        let words = [speed_short(link), self.numbers(down, up, load)];
        let longest = words.iter().map(|line| line.chars().count()).max();
        let half = longest.unwrap_or(0) as f64 * LABEL.1 / 2.0;
        let area = |x: f64, y: f64| Area([x - half, y - LABEL.2, x + half, y + LABEL.2 + 2.0]);
        let places = PLACES.iter().map(|part| match level {
            true => (
                from.0 + (to.0 - from.0) * (part - PLACES[0] + 0.5),
                from.1 - rise - 17.0,
            ),
            false => (
                from.0 + (to.0 - from.0) * part,
                from.1 + (to.1 - from.1) * part - 2.0,
            ),
        });
        // A label without room is left out: the title of the line has it.
        let mut free =
            places.filter(|(x, y)| !taken.iter().any(|other| other.meets(&area(*x, *y))));
        let Some((x, y)) = free.next() else { return };
        taken.push(area(x, y));
        for (line, words) in words.iter().enumerate() {
            let _ = writeln!(
                labels,
                "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"{}\" text-anchor=\"middle\" fill=\"#222\" stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
                y + LABEL.2 * line as f64,
                LABEL.0,
                escape(words)
            );
        }
    }

    /// What both directions of a link carry: their loads if there are any, or their capacities.
    fn numbers(&self, down: EdgeId, up: EdgeId, load: &Load<'_>) -> String {
        if let (Some((_, down)), Some((_, up))) = (load(down), load(up)) {
            return format!("{down} / {up}");
        }
        let capacity = |edge: EdgeId| {
            let edge = self.edge(edge);
            let mark = if edge.capacity_given { "" } else { "~" };
            format!("{mark}{:.1}", edge.capacity_gib_s)
        };
        format!("{} / {}", capacity(down), capacity(up))
    }
}

/// Colour and width of an edge that is used up to `share` of its capacity.
fn colour(share: f64) -> (&'static str, f64) {
    match share {
        share if share >= 0.999 => ("#b91c1c", 4.0),
        share if share >= 0.7 => ("#d97706", 3.0),
        share if share > 0.0 => ("#15803d", 2.0),
        _ => ("#bbb", 1.0),
    }
}

/// What fits into a box.
fn shortened(text: &str) -> String {
    const MOST: usize = 17;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let kept: String = text.chars().take(MOST - 1).collect();
    format!("{kept}…")
}

fn speed_short(link: &Link) -> String {
    match link.generation {
        0 => "sockets".to_owned(),
        generation => format!("Gen{generation} x{}", link.width),
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}
