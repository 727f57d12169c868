//! Communication patterns of machine learning as jobs, and their time in the simulator.

use dray_pcie::{NodeKind, Topology};

use crate::replay::{Ends, Replays, Send};
use crate::{Bytes, FabricError, JobEntry, NamedJob, des};

/// A pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// A ring: 2 (N - 1) steps, in each of which everyone sends one Nth to the next.
    AllReduce,
    /// Everyone sends one Nth to everyone else at once.
    AllToAll,
    /// Everyone writes all of it to the first host; then everyone gets all of it.
    ParameterServer,
}

/// Bytes of each member, and how many they are.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Of each.
    pub bytes: u64,
    /// How many.
    pub members: usize,
}

impl Size {
    /// Bytes of a member over the time of all, GB/s.
    pub fn algorithm_gb_s(self, seconds: f64) -> f64 {
        self.bytes as f64 / seconds * 1e-9
    }

    /// What each link of a machine with one link a member would carry, as nccl-tests define it (PERFORMANCE.md): to be
    /// compared with the speed of links, whatever the number of members. There it is for collectives without a root.
    pub fn bus_gb_s(self, pattern: Pattern, seconds: f64) -> Option<f64> {
        let members = self.members as f64;
        let share = (members - 1.0) / members;
        let factor = match pattern {
            Pattern::AllReduce => Some(2.0 * share),
            Pattern::AllToAll => Some(share),
            Pattern::ParameterServer => None,
        };
        factor.map(|factor| self.algorithm_gb_s(seconds) * factor)
    }
}

/// The endpoints that take part, and the jobs of the pattern.
///
/// # Errors
/// Fewer than two endpoints of that kind, no host for [`Pattern::ParameterServer`], or bytes that are not a multiple of
/// 64 for each endpoint.
pub fn collective(
    topology: &Topology,
    pattern: Pattern,
    kind: &str,
    bytes: u64,
) -> Result<(Vec<String>, Vec<JobEntry>), FabricError> {
    let refuse = |rule: String, hint: String| Err(FabricError::Pattern { rule, hint });
    let members: Vec<String> = topology
        .nodes()
        .iter()
        .filter(|node| matches!(&node.kind, NodeKind::Endpoint { word, .. } if word == kind))
        .map(|node| node.name.clone())
        .collect();
    let count = members.len() as u64;
    if count < 2 {
        return refuse(
            format!(
                "{} has {count} endpoints of kind `{kind}`; a pattern needs two",
                topology.name
            ),
            format!(
                "`dray fabric show {}` lists the endpoints; --kind chooses among them",
                topology.name
            ),
        );
    }
    if bytes == 0 || !bytes.is_multiple_of(64 * count) || bytes > 1 << 40 {
        let rule = format!(
            "--bytes: {bytes} is not a multiple of 64 bytes for each of {count} endpoints, up to 1 TiB"
        );
        return refuse(rule, "another size of --bytes".to_owned());
    }
    let host = topology
        .sockets()
        .next()
        .map(|node| topology.node(node).name.clone());
    let entries = match (pattern, host) {
        (Pattern::AllReduce, _) => ring(&members, bytes / count),
        (Pattern::AllToAll, _) => all_to_all(&members, bytes / count),
        (Pattern::ParameterServer, Some(host)) => parameter_server(&members, &host, bytes),
        (Pattern::ParameterServer, None) => {
            return refuse(
                format!("{} has no host", topology.name),
                "parameters need a host's memory".to_owned(),
            );
        }
    };
    Ok((members, entries))
}

fn entry(name: String, from: &str, to: &str, bytes: u64, after: Vec<String>) -> JobEntry {
    JobEntry {
        name: Some(name),
        from: from.to_owned(),
        to: to.to_owned(),
        bytes: Bytes::Number(bytes),
        arrival_us: 0.0,
        after: Some(after).filter(|after| !after.is_empty()),
        demand_gib_s: None,
        outstanding_bytes: None,
        operation: None,
    }
}

fn ring(members: &[String], part: u64) -> Vec<JobEntry> {
    let count = members.len();
    let name = |step: usize, from: usize| format!("step{step}.{}", members[from]);
    let steps = (0..2 * (count - 1)).flat_map(|step| (0..count).map(move |from| (step, from)));
    steps
        .map(|(step, from)| {
            let after = match step {
                0 => Vec::new(),
                _ => (0..count).map(|other| name(step - 1, other)).collect(),
            };
            entry(
                name(step, from),
                &members[from],
                &members[(from + 1) % count],
                part,
                after,
            )
        })
        .collect()
}

fn all_to_all(members: &[String], part: u64) -> Vec<JobEntry> {
    let pairs = members
        .iter()
        .flat_map(|from| members.iter().map(move |to| (from, to)));
    pairs
        .filter(|(from, to)| from != to)
        .map(|(from, to)| entry(format!("{from}-{to}"), from, to, part, Vec::new()))
        .collect()
}

fn parameter_server(members: &[String], host: &str, bytes: u64) -> Vec<JobEntry> {
    let pushes: Vec<String> = members
        .iter()
        .map(|member| format!("push.{member}"))
        .collect();
    let push = members
        .iter()
        .zip(&pushes)
        .map(|(member, name)| entry(name.clone(), member, host, bytes, Vec::new()));
    let pull = members.iter().map(|member| {
        entry(
            format!("pull.{member}"),
            host,
            member,
            bytes,
            pushes.clone(),
        )
    });
    push.chain(pull).collect()
}

/// The time in the simulator, seconds: one step after the other, each until all of it has arrived.
///
/// # Errors
/// What the simulator refuses.
pub fn by_steps(
    topology: &Topology,
    jobs: &[NamedJob],
    run: impl FnOnce(&Replays<'_>) -> Result<Vec<Ends>, FabricError>,
) -> Result<f64, FabricError> {
    let mut depth = vec![0; jobs.len()];
    for (index, job) in jobs.iter().enumerate() {
        // The patterns name what they wait for before them.
        depth[index] = job
            .job
            .after
            .iter()
            .map(|&after| depth[after] + 1)
            .max()
            .unwrap_or(0);
    }
    let steps = depth.iter().max().map_or(0, |deepest| deepest + 1);
    let mut replays = Replays::new(topology);
    for step in 0..steps {
        let members = jobs.iter().zip(&depth).filter(|(_, depth)| **depth == step);
        // A step is known by what it sends, so that one like another runs once.
        let sends: Vec<Send> = members
            .enumerate()
            .map(|(index, (job, _))| {
                Ok(Send {
                    job: index,
                    from: topology.find(&job.from)?,
                    to: topology.find(&job.to)?,
                    bytes: job.bytes,
                    start_ns: 0,
                    rate_gib_s: des::pace(&job.flow),
                    window_bytes: des::window(job.job.flow.outstanding_bytes),
                    packets: job.job.flow.packets,
                })
            })
            .collect::<Result<_, FabricError>>()?;
        replays.push(sends)?;
    }
    let mut total_ns = 0;
    for ends in run(&replays)? {
        let last = ends.into_iter().flatten().max();
        total_ns += last.ok_or(FabricError::NothingSent { job: 0 })?;
    }
    Ok(total_ns as f64 * 1e-9)
}
