//! `dray fabric show`: a topology as text, as a picture, as its file.

use std::path::PathBuf;
use std::process::ExitCode;

use dray_output::Output;
use dray_pcie::{LinkId, NodeKind, Topology, built_in, built_in_names};
use serde_json::{Value, json};

use crate::complain::Usage;
use crate::print::{self, TextOrJson};
use crate::said::Stdout;

const EXAMPLES: &str = "\
Examples:
  dray fabric show testbed                     the paper's test bed as a tree
  dray fabric show gpu8 --svg gpu8.svg         and as a picture
  dray fabric show validation --toml > my.toml the file itself, to change

Built in: local, testbed, validation, fat-tree, gpu8.
Exit codes: 0 ok, 1 failed, 2 usage or bad input.";

/// Arguments of `dray fabric show`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A topology file, or a built-in topology.
    #[arg(value_name = "FILE|NAME")]
    topology: String,
    /// Draw it into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print the file of a built-in topology instead.
    #[arg(long)]
    toml: bool,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t = TextOrJson::Text, conflicts_with = "toml")]
    format: TextOrJson,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let out = &mut Stdout;
    if args.toml {
        let Some(text) = built_in(&args.topology) else {
            return Err(Usage::error(
                format!(
                    "--toml: `{0}` is not built in; {1}",
                    args.topology,
                    dray_suggest::suggest(&args.topology, built_in_names())
                ),
                "dray fabric show testbed --toml",
            ));
        };
        print::all(out, text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let svg = args.svg.as_deref().map(Output::prepare).transpose()?;
    let topology = Topology::resolve(&args.topology)?;
    if let Some(svg) = svg {
        svg.write(topology.to_svg().as_bytes())?;
    }
    let text = match args.format {
        TextOrJson::Text => print::wrapped(&topology.to_text()),
        TextOrJson::Json => print::document(&document(&topology))?,
    };
    print::all(out, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Nodes and links: the graph as it was read, with what the file leaves to the defaults.
fn document(topology: &Topology) -> Value {
    let nodes = topology.nodes().iter().map(|node| {
        let (host, device) = match &node.kind {
            NodeKind::Socket { host, .. } => (Some(host), None),
            NodeKind::Endpoint { word, .. } => (None, Some(word)),
            _ => (None, None),
        };
        json!({
            "name": node.name, "kind": node.kind.word(), "host": host, "device": device,
            "forward_ns": node.forward_ns,
        })
    });
    let links = topology.links().iter().enumerate().map(|(index, link)| {
        let id = LinkId(index as u32);
        let direction = |from| {
            let mut edges = topology.edges().iter();
            let edge = edges.find(|edge| edge.link == id && edge.from == from);
            edge.map(|edge| json!({ "gib_s": edge.capacity_gib_s, "given": edge.capacity_given }))
        };
        let [upper, lower] = link.ends;
        json!({
            "upper": topology.node(upper).name, "lower": topology.node(lower).name,
            "generation": link.generation, "width": link.width, "mps_bytes": link.mps,
            "mrrs_bytes": link.mrrs, "latency_ns": link.latency_ns,
            "down": direction(upper), "up": direction(lower), "not_read": link.unread,
        })
    });
    json!({
        "topology": topology.name, "title": topology.title, "source": topology.source,
        "nodes": nodes.collect::<Vec<_>>(), "links": links.collect::<Vec<_>>(),
    })
}
