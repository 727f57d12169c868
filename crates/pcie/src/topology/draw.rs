//! A topology as text and as SVG.

use std::fmt::Write;

use super::{EdgeId, Link, NodeId, NodeKind, Topology};

/// Width of a node's box, and the distances between boxes.
const BOX: (f64, f64) = (116.0, 40.0);
const GAP: (f64, f64) = (18.0, 78.0);
const MARGIN: f64 = 24.0;
const TITLE: f64 = 44.0;

impl Topology {
    /// The fabric as a tree of text, a line per node with the link above it.
    ///
    /// Fabrics with more than one path between nodes repeat a node below each of its upper nodes,
    /// without what is below it.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.title);
        if !self.source.is_empty() {
            let _ = writeln!(text, "source: {}", self.source);
        }
        let sockets = self.sockets().count();
        let endpoints = self.endpoints().count();
        let _ = writeln!(
            text,
            "{} nodes ({sockets} sockets, {endpoints} endpoints), {} links, {} directed edges\n",
            self.nodes.len(),
            self.links.len(),
            self.edges.len()
        );
        let mut seen = vec![false; self.nodes.len()];
        for root in self.roots() {
            self.branch(root, None, 0, &mut seen, &mut text);
        }
        text
    }

    fn branch(
        &self,
        node: NodeId,
        by: Option<EdgeId>,
        depth: usize,
        seen: &mut [bool],
        text: &mut String,
    ) {
        let state = self.node(node);
        let indent = "  ".repeat(depth);
        let label = format!("{indent}{} [{}]", state.name, describe(&state.kind));
        let link = by.map_or(String::new(), |edge| self.describe_link(edge));
        let again = std::mem::replace(&mut seen[node.0 as usize], true);
        let mark = if again { " (see above)" } else { "" };
        let _ = writeln!(text, "{}", format!("{label:<44} {link}{mark}").trim_end());
        if again {
            return;
        }
        for edge in &state.outputs {
            let [upper, _] = self.link(self.edge(*edge).link).ends;
            if upper == node {
                self.branch(self.edge(*edge).to, Some(*edge), depth + 1, seen, text);
            }
        }
    }

    /// Generation, width, sizes and both capacities of a link, seen from above.
    fn describe_link(&self, down: EdgeId) -> String {
        let edge = self.edge(down);
        let up = self.edge(edge.reverse);
        let link = self.link(edge.link);
        let mark = |given: bool| if given { "" } else { "~" };
        let mut text = format!(
            "{}, {}{:.2} GiB/s down, {}{:.2} up, {} ns",
            speed(link),
            mark(edge.capacity_given),
            edge.capacity_gib_s,
            mark(up.capacity_given),
            up.capacity_gib_s,
            link.latency_ns
        );
        if !link.unread.is_empty() {
            let _ = write!(text, ", not read: {}", link.unread.join(" "));
        }
        text
    }

    /// Nodes without an upper node; if a circle of uppers leaves none, the first node.
    fn roots(&self) -> Vec<NodeId> {
        let mut has_upper = vec![false; self.nodes.len()];
        for link in &self.links {
            has_upper[link.ends[1].0 as usize] = true;
        }
        let roots = (0..self.nodes.len()).filter(|node| !has_upper[*node]);
        let roots: Vec<NodeId> = roots.map(|node| NodeId(node as u32)).collect();
        if roots.is_empty() {
            vec![NodeId(0)]
        } else {
            roots
        }
    }

    /// The fabric as an SVG document.
    pub fn to_svg(&self) -> String {
        self.to_svg_with(&|_| None)
    }

    /// The fabric as an SVG document in which each directed edge may have a load: a share of its
    /// capacity from 0 to 1 and a label.
    pub fn to_svg_with(&self, load: &dyn Fn(EdgeId) -> Option<(f64, String)>) -> String {
        let (places, rows) = self.places();
        let widest = places.iter().map(|(x, _)| *x).fold(0.0, f64::max) + BOX.0;
        let (width, height) = (
            widest + MARGIN,
            TITLE + rows as f64 * (BOX.1 + GAP.1) - GAP.1 + 2.0 * MARGIN + 18.0,
        );
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
        for link in &self.links {
            self.draw_link(&mut svg, link, &places, load);
        }
        for (node, (x, y)) in self.nodes.iter().zip(&places) {
            let fill = match node.kind {
                NodeKind::Socket { .. } => "#dbeafe",
                NodeKind::HostAdapter => "#e0e7ff",
                NodeKind::Switch => "#fef3c7",
                NodeKind::EndpointAdapter => "#fde8d7",
                NodeKind::Endpoint { .. } => "#dcfce7",
            };
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"{fill}\" stroke=\"#444\"/>\
                 <text x=\"{cx:.1}\" y=\"{:.1}\" font-size=\"12\" font-weight=\"600\" text-anchor=\"middle\" fill=\"#111\">{}</text>\
                 <text x=\"{cx:.1}\" y=\"{:.1}\" font-size=\"10\" text-anchor=\"middle\" fill=\"#444\">{}</text>",
                BOX.0,
                BOX.1,
                y + 17.0,
                escape(&node.name),
                y + 31.0,
                escape(&describe(&node.kind)),
                cx = x + BOX.0 / 2.0
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{:.0}\" font-size=\"10\" fill=\"#555\">GiB/s down / up; ~ derived from generation, width and MPS</text>\n</svg>",
            height - 8.0
        );
        svg
    }

    fn draw_link(
        &self,
        svg: &mut String,
        link: &Link,
        places: &[(f64, f64)],
        load: &dyn Fn(EdgeId) -> Option<(f64, String)>,
    ) {
        let [upper, lower] = link.ends;
        let found = self
            .node(upper)
            .outputs
            .iter()
            .find(|edge| self.edge(**edge).to == lower);
        let Some(down) = found.copied() else { return };
        let up = self.edge(down).reverse;
        let [(ux, uy), (lx, ly)] = [upper, lower].map(|node| places[node.0 as usize]);
        let level = (uy - ly).abs() < 1.0;
        let (from, to) = match level {
            true => ((ux + BOX.0, uy + BOX.1 / 2.0), (lx, ly + BOX.1 / 2.0)),
            false => ((ux + BOX.0 / 2.0, uy + BOX.1), (lx + BOX.0 / 2.0, ly)),
        };
        for (edge, shift) in [(down, -2.5), (up, 2.5)] {
            let loaded = load(edge);
            let (colour, thick) = match &loaded {
                None => ("#888", 1.5),
                Some((share, _)) if *share >= 0.999 => ("#b91c1c", 4.0),
                Some((share, _)) if *share >= 0.7 => ("#d97706", 3.0),
                Some((share, _)) if *share > 0.0 => ("#15803d", 2.0),
                Some(_) => ("#bbb", 1.0),
            };
            let (dx, dy) = if level { (0.0, shift) } else { (shift, 0.0) };
            let title = loaded.map_or(String::new(), |(_, label)| format!(": {label}"));
            let _ = writeln!(
                svg,
                "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"{thick}\"><title>{}</title></line>",
                from.0 + dx,
                from.1 + dy,
                to.0 + dx,
                to.1 + dy,
                escape(&format!(
                    "{} {:.2} GiB/s{title}",
                    self.edge(edge).name,
                    self.edge(edge).capacity_gib_s
                ))
            );
        }
        let capacity = |edge: EdgeId| {
            let edge = self.edge(edge);
            format!(
                "{}{:.1}",
                if edge.capacity_given { "" } else { "~" },
                edge.capacity_gib_s
            )
        };
        // Near the lower end, where the lines of one switch are apart.
        let (x, y) = if level {
            ((from.0 + to.0) / 2.0, from.1 - 8.0)
        } else {
            (
                from.0 + (to.0 - from.0) * 0.72,
                from.1 + (to.1 - from.1) * 0.72,
            )
        };
        for (line, words) in [
            speed_short(link),
            format!("{} / {}", capacity(down), capacity(up)),
        ]
        .iter()
        .enumerate()
        {
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"9\" text-anchor=\"middle\" fill=\"#222\" stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
                y + 10.0 * line as f64,
                escape(words)
            );
        }
    }

    /// Upper left corners of the boxes, and the number of rows: leaves stand side by side, a node
    /// stands over the middle of what is below it.
    fn places(&self) -> (Vec<(f64, f64)>, usize) {
        let mut depth = vec![0usize; self.nodes.len()];
        for _ in 0..self.nodes.len().min(64) {
            let mut changed = false;
            for link in self.links.iter().filter(|link| link.kind != "socket") {
                let [upper, lower] = link.ends.map(|end| end.0 as usize);
                if depth[lower] <= depth[upper] && depth[upper] < 62 {
                    depth[lower] = depth[upper] + 1;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let mut xs = vec![f64::NAN; self.nodes.len()];
        let mut next = MARGIN;
        for root in self.roots() {
            self.place(root, &mut xs, &mut next);
        }
        for x in xs.iter_mut().filter(|x| x.is_nan()) {
            *x = next;
            next += BOX.0 + GAP.0;
        }
        let rows = depth.iter().max().copied().unwrap_or(0) + 1;
        let y = |row: usize| TITLE + MARGIN + row as f64 * (BOX.1 + GAP.1);
        let mut places: Vec<(f64, f64)> = xs
            .iter()
            .zip(&depth)
            .map(|(x, row)| (*x, y(*row)))
            .collect();
        spread(&mut places);
        (places, rows)
    }

    fn place(&self, node: NodeId, xs: &mut [f64], next: &mut f64) {
        xs[node.0 as usize] = *next;
        let below: Vec<NodeId> = self
            .node(node)
            .outputs
            .iter()
            .map(|edge| self.edge(*edge))
            .filter(|edge| {
                self.link(edge.link).ends[0] == node && self.link(edge.link).kind != "socket"
            })
            .map(|edge| edge.to)
            .collect();
        for child in &below {
            if xs[child.0 as usize].is_nan() {
                self.place(*child, xs, next);
            }
        }
        if below.is_empty() {
            *next += BOX.0 + GAP.0;
            return;
        }
        let (low, high) = below
            .iter()
            .map(|child| xs[child.0 as usize])
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
                (low.min(x), high.max(x))
            });
        xs[node.0 as usize] = (low + high) / 2.0;
    }
}

/// Moves boxes of one row apart.
fn spread(places: &mut [(f64, f64)]) {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| {
        let key = |index: &usize| (places[*index].1, places[*index].0);
        key(a)
            .partial_cmp(&key(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    for pair in 1..order.len() {
        let (before, here) = (places[order[pair - 1]], places[order[pair]]);
        let least = before.0 + BOX.0 + GAP.0;
        if (before.1 - here.1).abs() < 1.0 && here.0 < least {
            places[order[pair]].0 = least;
        }
    }
}

fn describe(kind: &NodeKind) -> String {
    match kind {
        NodeKind::Endpoint { word, parameters } => match &parameters.engine {
            Some(engine) => format!("{word}, {} tags", engine.tags),
            None => word.clone(),
        },
        kind => kind.word().to_owned(),
    }
}

fn speed(link: &Link) -> String {
    match link.generation {
        0 => "between sockets".to_owned(),
        generation => format!(
            "Gen{generation} x{} MPS {} MRRS {}",
            link.width, link.mps, link.mrrs
        ),
    }
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
