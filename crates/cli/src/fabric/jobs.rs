//! Files of jobs: TOML or CSV.

use std::collections::HashMap;
use std::path::Path;

use dray_experiment::parse_bytes;
use dray_flow::{EdgeId, Job, Network};
use dray_pcie::Topology;
use serde::{Deserialize, Serialize};

use super::des::PACKET;
use super::flows::{self, FlowEntry, NamedFlow};
use crate::complain::Usage;

const HINT: &str =
    "a job is [[job]] with from, to, bytes and arrival_us; or CSV with these columns";

/// 2^30 bytes: rates are in GiB/s, sizes in GiB, times in seconds.
pub(super) const GIB: f64 = (1u64 << 30) as f64;

/// Bytes as a number, or as `64M`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum Bytes {
    Number(u64),
    Text(String),
}

/// A job as a file has it.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) bytes: Bytes,
    /// When it is known, microseconds.
    #[serde(default)]
    pub(super) arrival_us: f64,
    /// Names of jobs that must end first; in CSV separated by blanks.
    #[serde(
        default,
        deserialize_with = "flows::path",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) after: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) demand_gib_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outstanding_bytes: Option<f64>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct JobFile {
    #[serde(default)]
    job: Vec<JobEntry>,
}

/// A job with its name, its ends and its bytes.
#[derive(Debug, Clone)]
pub(super) struct NamedJob {
    pub(super) name: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) bytes: u64,
    pub(super) job: Job,
}

/// Reads the jobs of `file` over `topology`. Errors name the file, the entry and the rule.
pub(super) fn read(
    file: &Path,
    topology: &Topology,
    network: &Network,
) -> anyhow::Result<Vec<NamedJob>> {
    let origin = file.display().to_string();
    let text = flows::text(file)?;
    let entries = if flows::is_csv(file) {
        flows::csv_entries(&text, &origin, HINT)?
    } else {
        let parsed: JobFile = flows::toml_file(&text, &origin, HINT)?;
        parsed.job
    };
    if entries.is_empty() {
        return Err(Usage::error(
            format!("{origin}: no job; a file of jobs has at least one"),
            HINT,
        ));
    }
    resolve(&entries, &origin, topology, network)
}

/// As a file that [`read`] takes.
pub(super) fn to_toml(entries: &[JobEntry]) -> anyhow::Result<String> {
    Ok(toml::to_string(&JobFile {
        job: entries.to_vec(),
    })?)
}

/// Checks each entry and finds its path.
pub(super) fn resolve(
    entries: &[JobEntry],
    origin: &str,
    topology: &Topology,
    network: &Network,
) -> anyhow::Result<Vec<NamedJob>> {
    let as_flow = |entry: &JobEntry| FlowEntry {
        name: entry.name.clone(),
        from: entry.from.clone(),
        to: entry.to.clone(),
        demand_gib_s: entry.demand_gib_s,
        outstanding_bytes: entry.outstanding_bytes,
        weight: None,
        source: None,
        path: None,
    };
    let flows = flows::resolve(
        entries.iter().map(as_flow).collect(),
        origin,
        "job",
        topology,
        network,
    )?;
    let index: HashMap<&str, usize> = flows
        .iter()
        .enumerate()
        .map(|(at, flow)| (flow.name.as_str(), at))
        .collect();
    let mut jobs = Vec::with_capacity(entries.len());
    for (
        at,
        (
            entry,
            NamedFlow {
                name,
                from,
                to,
                flow,
            },
        ),
    ) in entries.iter().zip(&flows).enumerate()
    {
        let fail = |rule: String| {
            Usage::error(
                format!("{origin}: job {} `{}`: {rule}", at + 1, name.escape_debug()),
                HINT,
            )
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
                    fail(format!("after: no job is named `{}`", other.escape_debug()))
                })
            })
            .collect::<anyhow::Result<_>>()?;
        jobs.push(NamedJob {
            name: name.clone(),
            from: from.clone(),
            to: to.clone(),
            bytes,
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
    let path: Vec<_> = path.iter().map(|edge| dray_pcie::EdgeId(edge.0)).collect();
    topology.latency_ns(&path, PACKET) * 1e-9
}
