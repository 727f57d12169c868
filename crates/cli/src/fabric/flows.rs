//! Files of flows: TOML or CSV.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use dray_flow::{EdgeId, Flow, Network};
use dray_pcie::Topology;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::des::PACKET;
use super::network::{latency, route};
use crate::complain::Usage;

const HINT: &str =
    "a flow is [[flow]] with from, to and, if it is known, demand_gib_s; or CSV with these columns";

/// What a flow keeps in flight if the file does not say: 32 reads of 512 bytes.
pub(super) const OUTSTANDING_BYTES: f64 = 16384.0;

/// A flow as a file has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FlowEntry {
    /// Name in results; `from>to` if there is none.
    pub(super) name: Option<String>,
    /// The node where it starts.
    pub(super) from: String,
    /// The node where it ends.
    pub(super) to: String,
    /// What it reaches alone; as much as the edges and the credits of its path let through if there is none.
    pub(super) demand_gib_s: Option<f64>,
    /// Bytes in flight.
    pub(super) outstanding_bytes: Option<f64>,
    /// Share against others'.
    pub(super) weight: Option<f64>,
    /// Flows of one source enter the fabric through one queue. Without it, flows from one node to one other do.
    pub(super) source: Option<String>,
    /// Edges, instead of the route of the topology; in CSV separated by blanks.
    #[serde(default, deserialize_with = "path")]
    pub(super) path: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PathField {
    List(Vec<String>),
    Words(String),
}

pub(super) fn path<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    let field: Option<PathField> = Option::deserialize(deserializer)?;
    Ok(match field {
        None => None,
        Some(PathField::List(list)) => Some(list),
        Some(PathField::Words(words)) if words.trim().is_empty() => None,
        Some(PathField::Words(words)) => {
            Some(words.split_whitespace().map(str::to_owned).collect())
        }
    })
}

/// A flow of a file, with its path found.
#[derive(Debug, Clone)]
pub(super) struct NamedFlow {
    pub(super) name: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) flow: Flow,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowFile {
    #[serde(default)]
    flow: Vec<FlowEntry>,
}

/// Reads the flows of `file` over `topology`. Errors name the file, the entry and the rule.
pub(super) fn read(
    file: &Path,
    topology: &Topology,
    network: &Network,
) -> anyhow::Result<Vec<NamedFlow>> {
    let origin = file.display().to_string();
    let text = text(file)?;
    let entries = if is_csv(file) {
        csv_entries(&text, &origin, HINT)?
    } else {
        let parsed: FlowFile = toml_file(&text, &origin, HINT)?;
        parsed.flow
    };
    if entries.is_empty() {
        return Err(Usage::error(
            format!("{origin}: no flow; a file of flows has at least one"),
            HINT,
        ));
    }
    resolve(entries, &origin, "flow", topology, network)
}

/// Gives each entry its name and its path. `what` is the word for an entry in errors.
pub(super) fn resolve(
    entries: Vec<FlowEntry>,
    origin: &str,
    what: &str,
    topology: &Topology,
    network: &Network,
) -> anyhow::Result<Vec<NamedFlow>> {
    let mut names = HashSet::new();
    let mut sources: HashMap<String, u32> = HashMap::new();
    let mut flows = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        let place = match &entry.name {
            Some(name) => format!("{origin}: {what} {} `{}`", index + 1, name.escape_debug()),
            None => format!("{origin}: {what} {}", index + 1),
        };
        let fail = |rule: String, hint: &str| Usage::error(format!("{place}: {rule}"), hint);
        let name = match entry.name {
            Some(name) if !names.insert(name.clone()) => {
                return Err(fail(
                    "the name is taken by an entry before it; names are unique".into(),
                    HINT,
                ));
            }
            Some(name) => name,
            None => unused(&mut names, &format!("{}>{}", entry.from, entry.to)),
        };
        let path = match &entry.path {
            None => route(topology, &entry.from, &entry.to).map_err(|error| {
                let hint = error.hint().unwrap_or_else(|| HINT.to_owned());
                fail(error.to_string(), &hint)
            })?,
            Some(edges) => edges
                .iter()
                .map(|edge| {
                    network.find(edge).ok_or_else(|| {
                        let hint = format!(
                            "`dray fabric show {}` lists the links; an edge is FROM>TO",
                            topology.name
                        );
                        fail(
                            format!("{} has no edge `{}`", topology.name, edge.escape_debug()),
                            &hint,
                        )
                    })
                })
                .collect::<Result<_, _>>()?,
        };
        let path: Vec<EdgeId> = path;
        let source = entry
            .source
            .unwrap_or_else(|| format!("{}>{}", entry.from, entry.to));
        let next = sources.len() as u32;
        let flow = Flow {
            demand: entry
                .demand_gib_s
                .unwrap_or_else(|| credit_limit(topology, network, &path)),
            outstanding_bytes: entry.outstanding_bytes.unwrap_or(OUTSTANDING_BYTES),
            latency: latency(topology, &path),
            weight: entry.weight.unwrap_or(1.0),
            source: Some(*sources.entry(source).or_insert(next)),
            path,
        };
        if entry.demand_gib_s.is_some_and(f64::is_infinite) {
            return Err(fail(
                "demand_gib_s is infinite; leave it away for no limit".into(),
                HINT,
            ));
        }
        dray_flow::Flows::new(network)
            .push(&flow)
            .map_err(|error| {
                // The error counts from 0 in a set of one; the place says which it is.
                let rule = error.to_string();
                fail(
                    rule.strip_prefix("flow 0: ").unwrap_or(&rule).to_owned(),
                    HINT,
                )
            })?;
        flows.push(NamedFlow {
            name,
            from: entry.from,
            to: entry.to,
            flow,
        });
    }
    Ok(flows)
}

/// What the credits of the path let through, if that is less than its narrowest edge; else infinite.
fn credit_limit(topology: &Topology, network: &Network, path: &[EdgeId]) -> f64 {
    let edges: Vec<_> = path.iter().map(|edge| dray_pcie::EdgeId(edge.0)).collect();
    let limit = topology.credit_limit_gib_s(&edges, PACKET);
    let widths = path.iter().map(|&edge| network.edge(edge).capacity());
    let narrowest = widths.fold(f64::INFINITY, f64::min);
    if limit < narrowest {
        limit
    } else {
        f64::INFINITY
    }
}

fn unused(names: &mut HashSet<String>, name: &str) -> String {
    let numbered = (2..).map(|number| format!("{name}#{number}"));
    let free = std::iter::once(name.to_owned())
        .chain(numbered)
        .find(|name| !names.contains(name));
    // The numbers do not end.
    let free = free.unwrap_or_default();
    names.insert(free.clone());
    free
}

pub(super) fn text(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).map_err(|error| {
        Usage::error(
            format!("cannot read {}: {error}", file.display()),
            "check the path",
        )
    })
}

pub(super) fn is_csv(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

pub(super) fn toml_file<T: DeserializeOwned>(
    text: &str,
    origin: &str,
    hint: &str,
) -> anyhow::Result<T> {
    toml::from_str(text)
        .map_err(|error| Usage::error(format!("{origin}: {}", error.to_string().trim_end()), hint))
}

pub(super) fn csv_entries<T: DeserializeOwned>(
    text: &str,
    origin: &str,
    hint: &str,
) -> anyhow::Result<Vec<T>> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    reader
        .deserialize()
        .map(|row| row.map_err(|error| Usage::error(format!("{origin}: {error}"), hint)))
        .collect()
}
