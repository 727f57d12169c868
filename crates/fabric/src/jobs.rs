//! Files of jobs: TOML or CSV.

use std::collections::HashMap;
use std::path::Path;

use dray_experiment::parse_bytes;
use dray_flow::{EdgeId, Job, Network};
use dray_pcie::Topology;
use serde::{Deserialize, Serialize};

use crate::carriage::{Operation, Values};
use crate::entries;
use crate::error::{FabricError, form};
use crate::flows::{FlowEntry, NamedFlow, resolve_flows};
use crate::network::{PACKET, topology_edges};

/// 2^30 bytes: rates are in GiB/s, sizes in GiB, times in seconds.
pub const GIB: f64 = (1u64 << 30) as f64;

/// Bytes as a number, or as `64M`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Bytes {
    /// A number.
    Number(u64),
    /// A number with a unit.
    Text(String),
}

/// A job as a file has it.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JobEntry {
    /// Name in results; `from>to` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The node where it starts.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// What it moves: a multiple of 64.
    pub bytes: Bytes,
    /// When it is known, microseconds.
    #[serde(default)]
    pub arrival_us: f64,
    /// Names of jobs that must end first; in CSV separated by blanks.
    #[serde(
        default,
        deserialize_with = "entries::words",
        skip_serializing_if = "Option::is_none"
    )]
    pub after: Option<Vec<String>>,
    /// What it reaches alone; as much as the edges and the credits of its path let through if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand_gib_s: Option<f64>,
    /// Bytes in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outstanding_bytes: Option<f64>,
    /// Who moves the data; without it devices read from memory, and write to memory and to each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct JobFile {
    #[serde(default)]
    job: Vec<JobEntry>,
}

/// A job with its name, its ends and its bytes.
#[derive(Debug, Clone)]
pub struct NamedJob {
    /// Name in results, unique.
    pub name: String,
    /// Name of the node where it starts.
    pub from: String,
    /// Name of the node where it ends.
    pub to: String,
    /// What it moves.
    pub bytes: u64,
    /// What it reaches alone, if the file says so.
    pub demand_gib_s: Option<f64>,
    /// The flow that it is while it runs.
    pub flow: NamedFlow,
    /// The same in GiB and seconds, with its path.
    pub job: Job,
}

impl NamedJob {
    /// The job with other values of what is not known exactly.
    pub(crate) fn with(&self, topology: &Topology, network: &Network, values: Values) -> Job {
        Job {
            flow: self.flow.with(topology, network, values),
            ..self.job.clone()
        }
    }
}

/// Reads the jobs of `file`, CSV if its name ends so, over `topology`. Errors name the file, the entry and the rule.
pub fn read_jobs(
    file: &Path,
    topology: &Topology,
    network: &Network,
) -> Result<Vec<NamedJob>, FabricError> {
    let text = entries::text(file)?;
    let origin = file.display().to_string();
    parse_jobs(&text, entries::is_csv(file), &origin, topology, network)
}

/// Reads the jobs of `text`, TOML or CSV. `origin` is the name of the file in errors.
pub fn parse_jobs(
    text: &str,
    csv: bool,
    origin: &str,
    topology: &Topology,
    network: &Network,
) -> Result<Vec<NamedJob>, FabricError> {
    let entries: Vec<JobEntry> = if csv {
        entries::csv_entries(text, origin, WHAT)?
    } else {
        let parsed: JobFile = entries::toml_file(text, origin, WHAT)?;
        parsed.job
    };
    if entries.is_empty() {
        return Err(FabricError::Empty {
            file: origin.to_owned(),
            what: WHAT,
        });
    }
    resolve_jobs(&entries, origin, topology, network)
}

const WHAT: &str = "job";

/// As a file that [`read_jobs`] takes.
pub fn jobs_to_toml(entries: &[JobEntry]) -> Result<String, toml::ser::Error> {
    toml::to_string(&JobFile {
        job: entries.to_vec(),
    })
}

/// Checks each entry and finds its path.
pub fn resolve_jobs(
    entries: &[JobEntry],
    origin: &str,
    topology: &Topology,
    network: &Network,
) -> Result<Vec<NamedJob>, FabricError> {
    let as_flow = |entry: &JobEntry| FlowEntry {
        name: entry.name.clone(),
        from: entry.from.clone(),
        to: entry.to.clone(),
        demand_gib_s: entry.demand_gib_s,
        outstanding_bytes: entry.outstanding_bytes,
        weight: None,
        operation: entry.operation,
        source: None,
        path: None,
    };
    let flows = resolve_flows(
        entries.iter().map(as_flow).collect(),
        origin,
        WHAT,
        topology,
        network,
    )?;
    let index: HashMap<&str, usize> = flows
        .iter()
        .enumerate()
        .map(|(at, flow)| (flow.name.as_str(), at))
        .collect();
    let mut jobs = Vec::with_capacity(entries.len());
    for (at, (entry, named)) in entries.iter().zip(&flows).enumerate() {
        let NamedFlow {
            name,
            from,
            to,
            flow,
            ..
        } = named;
        let fail = |rule: String| FabricError::Rule {
            file: origin.to_owned(),
            entry: format!("job {} `{}`", at + 1, name.escape_debug()),
            rule,
            hint: form(WHAT).to_owned(),
        };
        let bytes = match &entry.bytes {
            Bytes::Number(bytes) => *bytes,
            Bytes::Text(text) => {
                parse_bytes(text).map_err(|error| fail(format!("bytes: {error}")))?
            }
        };
        if bytes == 0 {
            return Err(fail("bytes = 0; a transfer has at least 64 bytes".into()));
        }
        if !bytes.is_multiple_of(64) {
            return Err(fail(format!("bytes = {bytes} is no multiple of 64")));
        }
        if bytes > 1 << 50 {
            return Err(fail(format!("bytes = {bytes} is above 1 PiB")));
        }
        if !(0.0..=1e12).contains(&entry.arrival_us) {
            return Err(fail(format!(
                "arrival_us = {} is not between 0 and 1e12",
                entry.arrival_us
            )));
        }
        let after = entry
            .after
            .iter()
            .flatten()
            .map(|other| {
                let found = index.get(other.as_str()).copied();
                found.ok_or_else(|| {
                    let names = flows.iter().map(|flow| flow.name.as_str());
                    fail(format!(
                        "after: no job is named `{}`; {}",
                        other.escape_debug(),
                        dray_suggest::suggest(other, names)
                    ))
                })
            })
            .collect::<Result<_, FabricError>>()?;
        jobs.push(NamedJob {
            name: name.clone(),
            from: from.clone(),
            to: to.clone(),
            bytes,
            demand_gib_s: entry.demand_gib_s,
            flow: named.clone(),
            job: Job {
                after,
                latency: latency_s(topology, &flow.path),
                ..Job::new(flow.clone(), bytes as f64 / GIB, entry.arrival_us * 1e-6)
            },
        });
    }
    Ok(jobs)
}

/// From a job's last packet's start to its arrival, seconds.
fn latency_s(topology: &Topology, path: &[EdgeId]) -> f64 {
    topology.latency_ns(&topology_edges(topology, path), PACKET) * 1e-9
}
