//! A topology as text.

use std::fmt::Write;

use super::{EdgeId, Link, NodeId, NodeKind, Topology};

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
}

pub(super) fn describe(kind: &NodeKind) -> String {
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
