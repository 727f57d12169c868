//! Files of flows: TOML or CSV.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use dray_flow::{EdgeId, Flow, Network};
use dray_pcie::Topology;
use serde::Deserialize;

use crate::entries;
use crate::error::{FabricError, form};
use crate::network::{PACKET, latency, route, topology_edges, with_stages};

/// What a flow keeps in flight if the file does not say, in bytes that are under way at its rate on idle links. Tags and
/// queues of a device are made so that they do not limit what it is sold for; twice of it leaves room for queues.
const WINDOWS: f64 = 2.0;

/// A flow as a file has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowEntry {
    /// Name in results; `from>to` if there is none.
    pub name: Option<String>,
    /// The node where it starts.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// What it reaches alone; as much as the edges and the credits of its path let through if there is none.
    pub demand_gib_s: Option<f64>,
    /// Bytes in flight.
    pub outstanding_bytes: Option<f64>,
    /// Share against others'.
    pub weight: Option<f64>,
    /// Flows of one source enter the fabric through one queue. Without it, flows from one node to one other do.
    pub source: Option<String>,
    /// Edges, instead of the route of the topology; in CSV separated by blanks.
    #[serde(default, deserialize_with = "entries::words")]
    pub path: Option<Vec<String>>,
}

/// A flow of a file, with its path found.
#[derive(Debug, Clone)]
pub struct NamedFlow {
    /// Name in results, unique.
    pub name: String,
    /// Name of the node where it starts.
    pub from: String,
    /// Name of the node where it ends.
    pub to: String,
    /// Its path and what it asks for; rates in GiB/s.
    pub flow: Flow,
    /// Whether its demand is what the credits of its path let through: the file has none.
    pub held_by_credits: bool,
    /// Whether the file says how much it keeps in flight.
    pub window_given: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowFile {
    #[serde(default)]
    flow: Vec<FlowEntry>,
}

/// Reads the flows of `file`, CSV if its name ends so, over `topology`. Errors name the file, the entry and the rule.
pub fn read_flows(
    file: &Path,
    topology: &Topology,
    network: &Network,
) -> Result<Vec<NamedFlow>, FabricError> {
    let text = entries::text(file)?;
    let origin = file.display().to_string();
    parse_flows(&text, entries::is_csv(file), &origin, topology, network)
}

/// Reads the flows of `text`, TOML or CSV. `origin` is the name of the file in errors.
pub fn parse_flows(
    text: &str,
    csv: bool,
    origin: &str,
    topology: &Topology,
    network: &Network,
) -> Result<Vec<NamedFlow>, FabricError> {
    let entries = if csv {
        entries::csv_entries(text, origin, WHAT)?
    } else {
        let parsed: FlowFile = entries::toml_file(text, origin, WHAT)?;
        parsed.flow
    };
    if entries.is_empty() {
        return Err(FabricError::Empty {
            file: origin.to_owned(),
            what: WHAT,
        });
    }
    resolve_flows(entries, origin, WHAT, topology, network)
}

const WHAT: &str = "flow";

/// Gives each entry its name and its path. `what` is the word for an entry in errors.
pub fn resolve_flows(
    entries: Vec<FlowEntry>,
    origin: &str,
    what: &'static str,
    topology: &Topology,
    network: &Network,
) -> Result<Vec<NamedFlow>, FabricError> {
    let (mut names, mut numbers) = (HashSet::new(), HashMap::new());
    let mut sources: HashMap<String, u32> = HashMap::new();
    let mut flows = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        let place = match &entry.name {
            Some(name) => format!("{what} {} `{}`", index + 1, name.escape_debug()),
            None => format!("{what} {}", index + 1),
        };
        let fail = |rule: String, hint: &str| FabricError::Rule {
            file: origin.to_owned(),
            entry: place.clone(),
            rule,
            hint: hint.to_owned(),
        };
        let name = match entry.name {
            Some(name) if !names.insert(name.clone()) => {
                return Err(fail(
                    "the name is taken by an entry before it; names are unique".into(),
                    form(what),
                ));
            }
            Some(name) => name,
            None => unused(
                &mut names,
                &mut numbers,
                format!("{}>{}", entry.from, entry.to),
            ),
        };
        let path = match &entry.path {
            None => route(topology, network, &entry.from, &entry.to).map_err(|error| {
                let hint = error.hint().unwrap_or_else(|| form(what).to_owned());
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
        let path: Vec<EdgeId> = with_stages(topology, network, &path);
        if let Some(bytes) = entry.outstanding_bytes
            && bytes > 0.0
            && bytes < f64::from(PACKET)
        {
            let rule =
                format!("outstanding_bytes = {bytes} is less than a packet of {PACKET} bytes");
            return Err(fail(rule, form(what)));
        }
        let source = entry
            .source
            .unwrap_or_else(|| format!("{}>{}", entry.from, entry.to));
        let next = sources.len() as u32;
        let (demand, latency) = (entry.demand_gib_s, latency(topology, &path));
        let demand = demand.unwrap_or_else(|| credit_limit(topology, network, &path));
        let window = || {
            let bytes = WINDOWS * demand.min(narrowest(network, &path)) * latency;
            // A flow that starts where it ends is refused below.
            (bytes / f64::from(PACKET)).ceil().max(1.0) * f64::from(PACKET)
        };
        let flow = Flow {
            demand,
            outstanding_bytes: entry.outstanding_bytes.unwrap_or_else(window),
            latency,
            weight: entry.weight.unwrap_or(1.0),
            source: Some(*sources.entry(source).or_insert(next)),
            path,
        };
        let held_by_credits = entry.demand_gib_s.is_none() && flow.demand.is_finite();
        if entry.demand_gib_s.is_some_and(f64::is_infinite) {
            return Err(fail(
                "demand_gib_s is infinite; leave it away for no limit".into(),
                form(what),
            ));
        }
        dray_flow::Flows::new(network)
            .push(&flow)
            .map_err(|error| {
                // The error counts from 0 in a set of one; the place says which it is.
                let rule = error.to_string();
                fail(
                    rule.strip_prefix("flow 0: ").unwrap_or(&rule).to_owned(),
                    form(what),
                )
            })?;
        flows.push(NamedFlow {
            name,
            from: entry.from,
            to: entry.to,
            flow,
            held_by_credits,
            window_given: entry.outstanding_bytes.is_some(),
        });
    }
    Ok(flows)
}

/// What the credits of the path let through, if that is less than its narrowest edge; else infinite.
fn credit_limit(topology: &Topology, network: &Network, path: &[EdgeId]) -> f64 {
    let limit = topology.credit_limit_gib_s(&topology_edges(topology, path), PACKET);
    if limit < narrowest(network, path) {
        limit
    } else {
        f64::INFINITY
    }
}

/// Capacity of the narrowest edge of a path.
fn narrowest(network: &Network, path: &[EdgeId]) -> f64 {
    let widths = path.iter().map(|&edge| network.edge(edge).capacity());
    widths.fold(f64::INFINITY, f64::min)
}

/// A name that no entry before has: `name`, or the first free of `name#2`, `name#3` ... `numbers` has the next number to try.
fn unused(names: &mut HashSet<String>, numbers: &mut HashMap<String, u64>, name: String) -> String {
    if names.insert(name.clone()) {
        return name;
    }
    let number = numbers.entry(name.clone()).or_insert(2);
    loop {
        let numbered = format!("{name}#{number}");
        *number += 1;
        if names.insert(numbered.clone()) {
            return numbered;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network;

    fn parse(text: &str, csv: bool) -> Result<Vec<NamedFlow>, FabricError> {
        let topology = Topology::resolve("validation").unwrap();
        let network = network(&topology).unwrap();
        parse_flows(text, csv, "f", &topology, &network)
    }

    #[test]
    fn entries_without_names_are_numbered() {
        let rows = "name,from,to\n,host,A\n,host,A\nhost>A#3,host,B\n,host,A\n,host,A\n";
        let flows = parse(rows, true).unwrap();
        let names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(
            names,
            ["host>A", "host>A#2", "host>A#3", "host>A#4", "host>A#5"]
        );
        // Flows between the same nodes have one source.
        assert_eq!(flows[0].flow.source, flows[4].flow.source);
        assert_ne!(flows[0].flow.source, flows[2].flow.source);
    }

    #[test]
    fn names_in_quotes_keep_commas_quotes_and_line_ends() {
        let rows = "name,from,to\n\"host, first\",host,A\n\"say \"\"two\"\"\nlines\",host,B\n";
        let flows = parse(rows, true).unwrap();
        let names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["host, first", "say \"two\"\nlines"]);
    }

    #[test]
    fn thirty_thousand_entries_without_names_are_numbered() {
        let mut rows = String::from("from,to\n");
        rows.push_str(&"host,A\n".repeat(30_000));
        let flows = parse(&rows, true).unwrap();
        assert_eq!(flows[29_999].name, "host>A#30000");
    }

    #[test]
    fn errors_name_file_entry_and_rule_and_have_a_hint() {
        let text = "[[flow]]\nname = \"x\"\nfrom = \"host\"\nto = \"A\"\nweight = 0";
        let error = parse(text, false).unwrap_err();
        let words = error.to_string();
        assert!(words.starts_with("f: flow 1 `x`: weight 0"), "{words}");
        assert!(error.hint().is_some());
        assert!(matches!(parse("", false), Err(FabricError::Empty { .. })));
        assert!(matches!(
            parse("flow = 1", false),
            Err(FabricError::Syntax { .. })
        ));
        let error = parse("[[flow]]\nfrom = \"host\"\nto = \"Z\"", false).unwrap_err();
        assert!(
            error.hint().unwrap().contains("dray fabric show"),
            "{error}"
        );
    }
}
