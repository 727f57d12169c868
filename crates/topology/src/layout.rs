//! Where the boxes of a picture stand.

use super::{LinkKind, NodeId, NodeKind, Topology};

/// Width and height of a node's box.
pub(super) const BOX: (f64, f64) = (116.0, 40.0);
/// Distances between boxes of a row, and between rows.
pub(super) const GAP: (f64, f64) = (18.0, 78.0);
pub(super) const MARGIN: f64 = 24.0;
/// Room for the title and what is below it.
const TITLE: f64 = 44.0;
/// Room over the first row for links within it.
const ARC: f64 = 40.0;

/// Upper left corners of the boxes, and the size of the whole.
pub(super) struct Layout {
    /// By node.
    pub(super) places: Vec<(f64, f64)>,
    pub(super) width: f64,
    pub(super) height: f64,
    /// How far links within a row may rise over it.
    pub(super) arc: f64,
}

impl Layout {
    /// Leaves stand side by side; a node stands over the middle of what is below it.
    pub(super) fn new(topology: &Topology) -> Self {
        let rows = rows(topology);
        let mut xs = vec![f64::NAN; topology.nodes.len()];
        let mut next = MARGIN;
        // The sockets of a host stand side by side: none is above the other.
        let mut has_upper = vec![false; topology.nodes.len()];
        for link in topology
            .links
            .iter()
            .filter(|link| link.kind != LinkKind::Socket)
        {
            has_upper[link.ends[1].0 as usize] = true;
        }
        for index in 0..topology.nodes.len() {
            if !has_upper[index] && xs[index].is_nan() {
                place(topology, NodeId(index as u32), &mut xs, &mut next);
            }
        }
        for x in xs.iter_mut().filter(|x| x.is_nan()) {
            *x = next;
            next += BOX.0 + GAP.0;
        }
        let within = topology.links.iter().any(|link| {
            let [a, b] = link.ends.map(|end| rows[end.0 as usize]);
            a == b
        });
        let top = TITLE + MARGIN + if within { ARC } else { 0.0 };
        let y = |row: usize| top + row as f64 * (BOX.1 + GAP.1);
        let places = xs.iter().zip(&rows).map(|(x, row)| (*x, y(*row)));
        let mut places: Vec<(f64, f64)> = places.collect();
        spread(&mut places);
        let widest = places.iter().map(|(x, _)| *x).fold(0.0, f64::max);
        let lowest = places.iter().map(|(_, y)| *y).fold(0.0, f64::max);
        Self {
            places,
            width: (widest + BOX.0 + MARGIN).max(420.0),
            height: lowest + BOX.1,
            arc: ARC - 20.0,
        }
    }
}

/// By node: how far it is below the sockets. The sockets of a host are in one row.
fn rows(topology: &Topology) -> Vec<usize> {
    let mut rows = vec![0usize; topology.nodes.len()];
    for _ in 0..topology.nodes.len().min(64) {
        let mut changed = false;
        for link in topology
            .links
            .iter()
            .filter(|link| link.kind != LinkKind::Socket)
        {
            let [upper, lower] = link.ends.map(|end| end.0 as usize);
            if rows[lower] <= rows[upper] && rows[upper] < 62 {
                rows[lower] = rows[upper] + 1;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    rows
}

fn place(topology: &Topology, node: NodeId, xs: &mut [f64], next: &mut f64) {
    // So that a circle ends.
    xs[node.0 as usize] = *next;
    let outputs = topology.node(node).outputs.iter();
    let (mut below, mut beside) = (Vec::new(), Vec::new());
    for edge in outputs.map(|edge| topology.edge(*edge)) {
        let link = topology.link(edge.link);
        if link.kind == LinkKind::Socket {
            beside.push(edge.to);
        } else if link.ends[0] == node {
            below.push(edge.to);
        }
    }
    for child in &below {
        if xs[child.0 as usize].is_nan() {
            place(topology, *child, xs, next);
        }
    }
    if below.is_empty() {
        *next += BOX.0 + GAP.0;
    } else {
        let xs_below = || below.iter().map(|child| xs[child.0 as usize]);
        let low = xs_below().fold(f64::INFINITY, f64::min);
        let high = xs_below().fold(f64::NEG_INFINITY, f64::max);
        xs[node.0 as usize] = (low + high) / 2.0;
    }
    // The other sockets of the host come next.
    for other in beside {
        let at = other.0 as usize;
        let alone = topology.node(other).outputs.iter().all(|edge| {
            let edge = topology.edge(*edge);
            topology.link(edge.link).kind == LinkKind::Socket
        });
        if xs[at].is_nan() && matches!(topology.node(other).kind, NodeKind::Socket { .. }) {
            if alone {
                // Over nothing: beside the first, where it has room.
                xs[at] = xs[node.0 as usize] + 0.5;
            } else {
                place(topology, other, xs, next);
            }
        }
    }
}

/// Moves boxes of one row apart.
fn spread(places: &mut [(f64, f64)]) {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (places[*a], places[*b]);
        a.1.total_cmp(&b.1).then(a.0.total_cmp(&b.0))
    });
    for pair in 1..order.len() {
        let (before, here) = (places[order[pair - 1]], places[order[pair]]);
        let least = before.0 + BOX.0 + GAP.0;
        if (before.1 - here.1).abs() < 1.0 && here.0 < least {
            places[order[pair]].0 = least;
        }
    }
}
