//! Files of flows: TOML or CSV.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use dray_flow::{EdgeId, Flow, Network};
use dray_pcie::Topology;
use serde::Deserialize;

use crate::carriage::{self, Carriage, Operation, Values};
use crate::entries;
use crate::error::{FabricError, form};
use crate::network::{PACKET, route, topology_edges, with_stages};

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
    /// What its ends reach alone, of which it gets what its way lets through; as much as the edges and the credits of its path
    /// let through if there is none.
    pub demand_gib_s: Option<f64>,
    /// Bytes in flight.
    pub outstanding_bytes: Option<f64>,
    /// Share against others'.
    pub weight: Option<f64>,
    /// Who moves the data; without it devices read from memory, and write to memory and to each other.
    pub operation: Option<Operation>,
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
    /// Who moves the data.
    pub operation: Operation,
    /// What its demand follows from, if not from the file: `credits` of its path, `tags` of its reader, one `socket link` of
    /// several, or a `root complex`.
    pub held_by: Option<&'static str>,
    /// Whether the file says how much it keeps in flight.
    pub window_given: bool,
    /// What the file says of its demand.
    demand: Option<f64>,
}

impl NamedFlow {
    /// The flow with other values of what is not known exactly.
    pub fn with(&self, topology: &Topology, network: &Network, values: Values) -> Flow {
        let window = Some(self.flow.outstanding_bytes).filter(|_| self.window_given);
        let wanted = Wanted {
            operation: self.operation,
            demand: self.demand,
            window,
        };
        let plain = Flow {
            path: self.flow.path.clone(),
            weight: self.flow.weight,
            source: self.flow.source,
            ..Flow::new(Vec::new(), 1.0)
        };
        wanted.of(topology, network, plain, values).0
    }
}

/// What a file says of a flow.
#[derive(Clone, Copy)]
struct Wanted {
    operation: Operation,
    demand: Option<f64>,
    window: Option<f64>,
}

impl Wanted {
    /// `plain` with what it asks for, and what its demand follows from, if not from the file.
    fn of(
        self,
        topology: &Topology,
        network: &Network,
        plain: Flow,
        values: Values,
    ) -> (Flow, Option<&'static str>) {
        let carriage = Carriage::new(topology, &plain.path, self.operation, values);
        let narrowest = narrowest_of(network, &plain.path, &carriage.costs);
        // Behind a root complex that cuts what it forwards the way is narrower than before it.
        let is_cut = carriage.cut_at.is_some_and(|at| {
            let costs = carriage.costs.get(..at).unwrap_or_default();
            narrowest < narrowest_of(network, &plain.path[..at], costs)
        });
        let tags = carriage.window.map(|window| window / carriage.latency);
        // What the flow asks for: what the file says, or what its ends let through.
        let credits = || credit_limit(topology, &plain.path, carriage.packets.payload);
        // The data of reads are completions, which have credits of their own.
        let credits = (carriage.packets.request == 0).then(credits);
        let ends = [(credits, "credits"), (tags, "tags")];
        let ends = ends.into_iter().filter(|_| self.demand.is_none());
        // What its way lets through, whatever it asks for.
        let way = [
            (carriage.socket_link, "socket link"),
            (
                Some(narrowest * carriage.part).filter(|_| carriage.part < 1.0),
                "root complex",
            ),
            // The simulator does not cut TLPs: the sender has the pace.
            (Some(narrowest).filter(|_| is_cut), "root complex"),
        ];
        let limits = ends.chain(way);
        let limits = limits.filter_map(|(limit, what)| Some((limit?, what)));
        let least = limits.min_by(|a, b| a.0.total_cmp(&b.0));
        let asked = self.demand.unwrap_or(f64::INFINITY);
        let least = least.filter(|(limit, _)| *limit < asked && (*limit < narrowest || is_cut));
        let demand = least.map_or(asked, |(limit, _)| limit);
        let bytes = WINDOWS * demand.min(narrowest) * carriage.latency;
        // A flow that starts where it ends is refused elsewhere.
        let usual = (bytes / f64::from(PACKET)).ceil().max(1.0) * f64::from(PACKET);
        let flow = Flow {
            demand,
            outstanding_bytes: self.window.unwrap_or(usual),
            latency: carriage.latency,
            costs: carriage.costs,
            sides: carriage.sides,
            packets: carriage.packets,
            ..plain
        };
        (flow, least.map(|(_, what)| what))
    }
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
        let plain = Flow {
            weight: entry.weight.unwrap_or(1.0),
            source: Some(*sources.entry(source).or_insert(next)),
            ..Flow::new(path, 1.0)
        };
        let usual = || carriage::usual(topology, &plain.path);
        let wanted = Wanted {
            operation: entry.operation.unwrap_or_else(usual),
            demand: entry.demand_gib_s,
            window: entry.outstanding_bytes,
        };
        let (flow, held_by) = wanted.of(topology, network, plain, Values::Usual);
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
            operation: wanted.operation,
            held_by,
            window_given: entry.outstanding_bytes.is_some(),
            demand: entry.demand_gib_s,
        });
    }
    Ok(flows)
}

/// What the credits of the path let through.
fn credit_limit(topology: &Topology, path: &[EdgeId], payload: u32) -> f64 {
    topology.credit_limit_gib_s(&topology_edges(topology, path), payload)
}

/// What the narrowest edge of a path has for a flow of these costs.
fn narrowest_of(network: &Network, path: &[EdgeId], costs: &[f64]) -> f64 {
    let widths = path.iter().enumerate().map(|(hop, &edge)| {
        let cost = costs.get(hop).copied().unwrap_or(1.0);
        network.edge(edge).capacity() / cost
    });
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
