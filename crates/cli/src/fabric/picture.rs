//! The loaded topology as SVG.

use std::collections::VecDeque;
use std::fmt::Write;

use dray_pcie::{NodeId, NodeKind, Topology};

use crate::complain::Usage;

const ROW: f64 = 120.0;
const COLUMN: f64 = 150.0;
const MARGIN: f64 = 50.0;
const HEAD: f64 = 60.0;
/// More nodes make no picture that can be read.
const MAX_NODES: usize = 300;

/// Draws `topology` with the `loads` of its edges (GiB/s, in their order), which `estimator` gives.
pub(super) fn loaded(
    topology: &Topology,
    loads: &[f64],
    estimator: &str,
) -> anyhow::Result<String> {
    let nodes = topology.nodes().len();
    if nodes > MAX_NODES {
        return Err(Usage::error(
            format!(
                "{} has {nodes} nodes; a picture has room for {MAX_NODES}",
                topology.name
            ),
            "--format csv or json has all edges",
        ));
    }
    let rows = rows(topology);
    let widest = rows.iter().map(Vec::len).max().unwrap_or(1) as f64;
    let width = (widest * COLUMN + 2.0 * MARGIN).max(520.0);
    let height = HEAD + rows.len() as f64 * ROW + 70.0;
    let mut places = vec![(0.0, 0.0); nodes];
    for (row, members) in rows.iter().enumerate() {
        let gap = (width - 2.0 * MARGIN) / members.len() as f64;
        for (column, node) in members.iter().enumerate() {
            places[node.0 as usize] = (
                MARGIN + gap * (column as f64 + 0.5),
                HEAD + 30.0 + row as f64 * ROW,
            );
        }
    }
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{}: load of each edge by {estimator}</text>\n\
         <text x=\"{MARGIN}\" y=\"42\" fill=\"#555\">{}</text>\n",
        escape(&topology.name),
        escape(&topology.title),
    );
    for (index, edge) in topology.edges().iter().enumerate() {
        let part = loads[index] / edge.capacity_gib_s;
        line(
            &mut svg,
            places[edge.from.0 as usize],
            places[edge.to.0 as usize],
            part,
            &format!(
                "{}: {:.2} of {:.2} GiB/s, {:.0} %",
                edge.name,
                loads[index],
                edge.capacity_gib_s,
                part * 100.0
            ),
            loads[index],
        );
    }
    for (node, &(x, y)) in topology.nodes().iter().zip(&places) {
        let fill = match node.kind {
            NodeKind::Socket { .. } => "#d9e8f6",
            NodeKind::Switch => "#f3e3c3",
            NodeKind::HostAdapter | NodeKind::EndpointAdapter => "#e6e0f0",
            NodeKind::Endpoint { .. } => "#dcefdc",
        };
        let _ = writeln!(
            svg,
            "<g><title>{} {}</title><rect x=\"{:.1}\" y=\"{:.1}\" width=\"88\" height=\"28\" rx=\"4\" fill=\"{fill}\" \
             stroke=\"#444\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text></g>",
            node.kind.word(),
            escape(&node.name),
            x - 44.0,
            y - 14.0,
            y + 4.0,
            escape(&node.name),
        );
    }
    legend(&mut svg, height);
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// Nodes by their distance from the nearest socket.
fn rows(topology: &Topology) -> Vec<Vec<NodeId>> {
    let mut depth: Vec<Option<usize>> = vec![None; topology.nodes().len()];
    let mut queue: VecDeque<NodeId> = topology.sockets().collect();
    for root in &queue {
        depth[root.0 as usize] = Some(0);
    }
    let mut order = Vec::new();
    while let Some(node) = queue.pop_front() {
        let next = depth[node.0 as usize].unwrap_or(0) + 1;
        order.push(node);
        for &edge in &topology.node(node).outputs {
            let to = topology.edge(edge).to;
            if depth[to.0 as usize].is_none() {
                depth[to.0 as usize] = Some(next);
                queue.push_back(to);
            }
        }
    }
    for (index, depth) in depth.iter_mut().enumerate() {
        if depth.is_none() {
            *depth = Some(0);
            order.push(NodeId(index as u32));
        }
    }
    let count = depth
        .iter()
        .flatten()
        .max()
        .map_or(0, |deepest| deepest + 1);
    let mut rows = vec![Vec::new(); count];
    for node in order {
        rows[depth[node.0 as usize].unwrap_or(0)].push(node);
    }
    rows
}

/// One direction of a link, a little to the right of the middle as it goes.
fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), part: f64, title: &str, load: f64) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1.0);
    let (ox, oy) = (-dy / length * 5.0, dx / length * 5.0);
    let (x1, y1) = (
        from.0 + ox + dx / length * 16.0,
        from.1 + oy + dy / length * 16.0,
    );
    let (x2, y2) = (
        to.0 + ox - dx / length * 16.0,
        to.1 + oy - dy / length * 16.0,
    );
    let width = 1.0 + 5.0 * part.clamp(0.0, 1.0);
    let _ = write!(
        svg,
        "<g><title>{}</title><line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{}\" \
         stroke-width=\"{width:.1}\"/>",
        escape(title),
        colour(part),
    );
    if load > 0.0 {
        // Where it goes to, so that the two directions of a link do not cover each other.
        let (x, y) = (
            from.0 + 0.62 * dx + 2.6 * ox,
            from.1 + 0.62 * dy + 2.6 * oy + 4.0,
        );
        let _ = write!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" stroke=\"white\" stroke-width=\"3\" \
             paint-order=\"stroke\">{load:.2}</text>"
        );
    }
    svg.push_str("</g>\n");
}

fn colour(part: f64) -> &'static str {
    match part {
        part if part > 0.999 => "#b2182b",
        part if part > 0.75 => "#e08214",
        part if part > 0.0 => "#2166ac",
        _ => "#cccccc",
    }
}

fn legend(svg: &mut String, height: f64) {
    let entries = [
        (1.0, "full"),
        (0.8, "above 75 %"),
        (0.3, "in use"),
        (0.0, "idle"),
    ];
    for (index, (part, word)) in entries.into_iter().enumerate() {
        let (x, y) = (MARGIN + index as f64 * 110.0, height - 24.0);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.0}\" y1=\"{y:.0}\" x2=\"{:.0}\" y2=\"{y:.0}\" stroke=\"{}\" stroke-width=\"{:.1}\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\">{word}</text>",
            x + 26.0,
            colour(part),
            1.0 + 5.0 * part,
            x + 32.0,
            y + 4.0,
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.0}\" y=\"{:.0}\" fill=\"#555\">GiB/s</text>",
        MARGIN + 450.0,
        height - 20.0
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
