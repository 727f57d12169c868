//! Does every memory node have a queue?

use super::sources::{DML_33, PERF_MICROS, USER_GUIDE};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::survey::host::NODES;

pub(super) const CHECK: Check = Check {
    id: "numa",
    title: "memory nodes",
    needs: &["queues"],
    why: "A device belongs to a socket. DML uses only devices of the node on which the calling thread \
runs, so a thread of a node without an enabled queue falls back to software or fails; submitting \
to another socket costs latency and bandwidth. A node of -1 means that the firmware did not say \
where the device is.",
    sources: &[DML_33, PERF_MICROS, USER_GUIDE],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    let nodes = &survey.host.nodes_with_cpus;
    let enabled: Vec<_> = survey
        .devices
        .enabled_queues()
        .map(|(device, _)| device)
        .collect();
    if nodes.len() < 2 {
        return Verdict::DoesNotApply("one memory node".to_owned());
    }
    let mut findings = Vec::new();
    if let Some(device) = enabled
        .iter()
        .find(|device| matches!(device.numa_node, Ok(..0)))
    {
        let what = format!(
            "the firmware does not say to which node {} belongs",
            device.name
        );
        let evidence = Evidence::of(device.path("numa_node"), &device.numa_node);
        let fix = Fix::advice(
            "Use a newer firmware; until then bind threads to the socket of the function's bus.",
        );
        findings.push(Finding::note(what).seen([evidence]).fix(fix));
    }
    // With clusters in the socket the device is of one of its nodes; the others are near.
    let served: Vec<_> = enabled
        .iter()
        .filter_map(|d| d.numa_node.as_ref().ok())
        .collect();
    let all = survey.devices.all().iter();
    let idle = all.filter(|device| !served.contains(&device.numa_node.as_ref().unwrap_or(&-1)));
    for device in idle {
        let Ok(node @ 0..) = device.numa_node else {
            continue;
        };
        if !nodes.contains(&node) {
            continue;
        }
        let what = format!(
            "{} of node {node} has no enabled queue, and no other device of that node has",
            device.name
        );
        let evidence = Evidence::new(format!("{NODES}/node{node}/cpulist"), "has processors");
        let fix = Fix::advice(
            "Configure it like the others, or bind the program to the nodes that have one.",
        )
        .then([format!(
            "numactl -N {} -m {0} PROGRAM",
            served.first().map_or(0, |n| **n)
        )]);
        findings.push(
            Finding::note(what)
                .confirmed_by(Saying::NUMA)
                .seen([evidence])
                .fix(fix),
        );
    }
    Verdict::of(findings, || format!("{} nodes", nodes.len()))
}
