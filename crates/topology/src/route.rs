//! The path of a flow.

use std::collections::{HashMap, VecDeque};

use super::file::RouteEntry;
use super::rules::Rules;
use super::{EdgeId, LinkKind, NodeId, NodeKind, Topology};
use crate::PcieError;

/// How paths are found.
#[derive(Debug, Clone, Default)]
pub(super) enum Routing {
    /// No cycle: one path between any two nodes. The parent edge (towards the root of its tree),
    /// depth and tree of each node.
    Tree(Vec<TreePosition>),
    /// Switches have levels: up, then down; of several ways up the receiver's number chooses.
    Levels(Vec<u32>),
    /// The file has every path.
    Given(HashMap<(NodeId, NodeId), Vec<EdgeId>>),
    /// Nothing yet.
    #[default]
    None,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TreePosition {
    /// Edge from the parent to this node.
    from_parent: Option<EdgeId>,
    depth: u32,
    tree: u32,
}

impl Routing {
    pub(super) fn new(
        topology: &Topology,
        levels: &[Option<u32>],
        routes: &[RouteEntry],
        rules: &Rules<'_>,
    ) -> Result<Self, PcieError> {
        if !routes.is_empty() {
            return given(topology, routes, rules);
        }
        if levels.iter().any(Option::is_some) {
            return by_level(topology, levels, rules);
        }
        tree(topology, rules)
    }
}

impl Topology {
    /// The path of a flow from one node to another, as directed edges in their order.
    ///
    /// # Errors
    ///
    /// No path, or the same node twice.
    pub fn route(&self, from: NodeId, to: NodeId) -> Result<Vec<EdgeId>, PcieError> {
        let no_path = |why: &str| PcieError::NoPath {
            topology: self.name.clone(),
            from: self.node(from).name.clone(),
            to: self.node(to).name.clone(),
            why: why.to_owned(),
        };
        if from == to {
            return Err(no_path("a flow needs two nodes"));
        }
        match &self.routing {
            Routing::Tree(positions) => {
                let [start, end] = [from, to].map(|node| positions[node.0 as usize]);
                if start.tree != end.tree {
                    return Err(no_path("no chain of links joins them"));
                }
                Ok(self.through_ancestor(positions, from, to))
            }
            Routing::Levels(levels) => self
                .up_and_down(levels, from, to)
                .ok_or_else(|| no_path("no way up and then down joins them")),
            Routing::Given(paths) => paths
                .get(&(from, to))
                .cloned()
                .ok_or_else(|| no_path("the fabric has a cycle, and no [[route]] joins them")),
            Routing::None => Err(no_path("the topology is not complete")),
        }
    }

    /// The socket that forwards between devices what comes by `before` and leaves by `next`, if it does. What goes on to
    /// another socket, or comes from one, is none of it.
    pub fn forwards_between_devices(&self, before: EdgeId, next: EdgeId) -> Option<NodeId> {
        let is_socket_link =
            |edge: EdgeId| self.link(self.edge(edge).link).kind == LinkKind::Socket;
        let node = self.edge(before).to;
        let is_socket = matches!(self.node(node).kind, NodeKind::Socket { .. });
        (is_socket && !is_socket_link(before) && !is_socket_link(next)).then_some(node)
    }

    /// [`Topology::route`] between nodes given by name.
    ///
    /// # Errors
    ///
    /// As [`Topology::find`] and [`Topology::route`].
    pub fn route_by_name(&self, from: &str, to: &str) -> Result<Vec<EdgeId>, PcieError> {
        self.route(self.find(from)?, self.find(to)?)
    }

    fn through_ancestor(
        &self,
        positions: &[TreePosition],
        from: NodeId,
        to: NodeId,
    ) -> Vec<EdgeId> {
        let place = |node: NodeId| positions[node.0 as usize];
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let (mut a, mut b) = (from, to);
        while a != b {
            let climb_a = place(a).depth >= place(b).depth;
            let node = if climb_a { a } else { b };
            let Some(edge) = place(node).from_parent else {
                break;
            };
            let parent = self.edge(edge).from;
            if climb_a {
                up.push(self.edge(edge).reverse);
                a = parent;
            } else {
                down.push(edge);
                b = parent;
            }
        }
        up.extend(down.into_iter().rev());
        up
    }

    /// Breadth first over (node, already going down), with ties broken by the receiver's number:
    /// the same pair always takes the same path.
    fn up_and_down(&self, levels: &[u32], from: NodeId, to: NodeId) -> Option<Vec<EdgeId>> {
        let count = self.nodes().len();
        let state = |node: NodeId, down: bool| node.0 as usize + count * usize::from(down);
        let mut came: Vec<Option<(EdgeId, bool)>> = vec![None; 2 * count];
        let mut queue = VecDeque::from([(from, false)]);
        while let Some((node, down)) = queue.pop_front() {
            if node == to {
                let (mut node, mut down) = (node, down);
                let mut path = Vec::new();
                while let Some((edge, before)) = came[state(node, down)].filter(|_| node != from) {
                    path.push(edge);
                    (node, down) = (self.edge(edge).from, before);
                }
                path.reverse();
                return Some(path);
            }
            if node != from && !self.node(node).kind.forwards() {
                continue;
            }
            let level = levels[node.0 as usize];
            let outputs = &self.node(node).outputs;
            let first = to.0 as usize % outputs.len().max(1);
            for index in 0..outputs.len() {
                let edge = outputs[(first + index) % outputs.len()];
                let next = self.edge(edge).to;
                let next_level = levels[next.0 as usize];
                let goes_down = next_level < level;
                let turns_up = down && !goes_down;
                let place = state(next, goes_down);
                if next_level == level || turns_up || next == from || came[place].is_some() {
                    continue;
                }
                came[place] = Some((edge, down));
                queue.push_back((next, goes_down));
            }
        }
        None
    }
}

/// Places every node in a tree; a second path between two nodes is an error.
fn tree(topology: &Topology, rules: &Rules<'_>) -> Result<Routing, PcieError> {
    let unknown = TreePosition {
        from_parent: None,
        depth: 0,
        tree: u32::MAX,
    };
    let mut positions = vec![unknown; topology.nodes().len()];
    for root in 0..positions.len() {
        if positions[root].tree != u32::MAX {
            continue;
        }
        positions[root].tree = root as u32;
        let mut stack = vec![NodeId(root as u32)];
        while let Some(node) = stack.pop() {
            let here = positions[node.0 as usize];
            for edge_id in &topology.node(node).outputs {
                let edge = topology.edge(*edge_id);
                if here.from_parent == Some(edge.reverse) {
                    continue;
                }
                let next = &mut positions[edge.to.0 as usize];
                if next.tree != u32::MAX {
                    let rule = format!(
                        "closes a cycle of links, so that there are two paths; give `level` to every switch and adapter, or a [[route]] for every pair that talks ({})",
                        edge.name
                    );
                    return Err(rules.error(link_name(topology, edge_id), rule));
                }
                *next = TreePosition {
                    from_parent: Some(*edge_id),
                    depth: here.depth + 1,
                    tree: here.tree,
                };
                stack.push(edge.to);
            }
        }
    }
    Ok(Routing::Tree(positions))
}

fn link_name(topology: &Topology, edge: &EdgeId) -> String {
    let link = topology.edge(*edge).link;
    let [upper, lower] = topology.link(link).ends.map(|end| &topology.node(end).name);
    format!("link {upper} - {lower}")
}

/// Endpoints and sockets stand at level 0; every adapter and switch has a level.
fn by_level(
    topology: &Topology,
    levels: &[Option<u32>],
    rules: &Rules<'_>,
) -> Result<Routing, PcieError> {
    use super::NodeKind::{Endpoint, Socket};
    let mut all = Vec::with_capacity(levels.len());
    for (node, level) in topology.nodes().iter().zip(levels) {
        let level = match (&node.kind, level) {
            (Socket { .. } | Endpoint { .. }, _) => 0,
            (_, Some(level)) if *level > 0 => *level,
            (kind, _) => {
                let entry = format!("{} `{}`", kind.word(), node.name);
                let rule =
                    "has no `level` of 1 or more, but others have; levels are given to all or none";
                return Err(rules.error(entry, rule));
            }
        };
        all.push(level);
    }
    Ok(Routing::Levels(all))
}

/// Reads the routes of the file and makes sure that no set of them can wait in a circle.
fn given(
    topology: &Topology,
    routes: &[RouteEntry],
    rules: &Rules<'_>,
) -> Result<Routing, PcieError> {
    let mut paths = HashMap::new();
    for route in routes {
        let entry = format!("route {} - {}", route.from, route.to);
        let names: Vec<&String> = [&route.from]
            .into_iter()
            .chain(&route.via)
            .chain([&route.to])
            .collect();
        let mut nodes = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            let id = topology
                .find(name)
                .map_err(|error| rules.error(&entry, error.to_string()))?;
            let inner = index > 0 && index + 1 < names.len();
            if nodes.contains(&id) || (inner && !topology.node(id).kind.forwards()) {
                let rule =
                    format!("`{name}` stands where it cannot: twice, or an endpoint on the way");
                return Err(rules.error(entry, rule));
            }
            nodes.push(id);
        }
        let mut path = Vec::with_capacity(nodes.len());
        for pair in nodes.windows(2) {
            let outputs = &topology.node(pair[0]).outputs;
            match outputs
                .iter()
                .find(|edge| topology.edge(**edge).to == pair[1])
            {
                Some(edge) => path.push(*edge),
                None => {
                    let [a, b] = [pair[0], pair[1]].map(|node| &topology.node(node).name);
                    return Err(rules.error(entry, format!("no link joins `{a}` and `{b}`")));
                }
            }
        }
        let ends = (nodes[0], nodes[nodes.len() - 1]);
        if paths.insert(ends, path).is_some() {
            return Err(rules.error(entry, "stands twice"));
        }
    }
    no_circle(topology, &paths, rules)?;
    Ok(Routing::Given(paths))
}

/// Edges that wait for each other in a circle could hold each other's credits for ever (Dally and
/// Seitz 1987).
fn no_circle(
    topology: &Topology,
    paths: &HashMap<(NodeId, NodeId), Vec<EdgeId>>,
    rules: &Rules<'_>,
) -> Result<(), PcieError> {
    let count = topology.edges().len();
    let mut after: Vec<Vec<EdgeId>> = vec![Vec::new(); count];
    for path in paths.values() {
        for pair in path.windows(2) {
            after[pair[0].0 as usize].push(pair[1]);
        }
    }
    let mut waits: Vec<usize> = vec![0; count];
    for next in after.iter().flatten() {
        waits[next.0 as usize] += 1;
    }
    let mut free: Vec<usize> = (0..count).filter(|edge| waits[*edge] == 0).collect();
    let mut removed = 0;
    while let Some(edge) = free.pop() {
        removed += 1;
        for next in &after[edge] {
            waits[next.0 as usize] -= 1;
            if waits[next.0 as usize] == 0 {
                free.push(next.0 as usize);
            }
        }
    }
    match (0..count).find(|edge| waits[*edge] > 0) {
        Some(edge) if removed < count => Err(rules.error(
            format!("edge {}", topology.edges()[edge].name),
            "the routes wait for each other in a circle here, which can stop the fabric for ever; change a [[route]]",
        )),
        _ => Ok(()),
    }
}
