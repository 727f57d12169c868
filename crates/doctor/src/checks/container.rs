//! Does the container show what is needed?

use super::sources::{PLUGINS_919, PLUGINS_1019, PLUGINS_1779};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying, count};
use crate::machine::Unreadable;

pub(super) const CHECK: Check = Check {
    id: "container",
    title: "container",
    needs: &["queues"],
    why: "A container has its own /dev: the nodes of /dev/dsa have to be passed on, one by one or as a \
whole, with permission of the device cgroup, and nodes that appear later do not follow. Queues are \
configured on the host, where /sys can be written; libraries only read /sys/bus/dsa. In Kubernetes \
the device plugin passes nodes on.",
    sources: &[PLUGINS_919, PLUGINS_1019, PLUGINS_1779],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    let Some((path, text)) = &survey.process.container else {
        return Verdict::DoesNotApply("this is no container".to_owned());
    };
    let users = survey
        .devices
        .enabled_queues()
        .filter(|(_, queue)| queue.is_user());
    let users: Vec<_> = users.map(|(_, queue)| queue).collect();
    let (hidden, shown): (Vec<_>, Vec<_>) = users
        .into_iter()
        .partition(|queue| queue.node == Err(Unreadable::Missing));
    let mut findings = Vec::new();
    if let (Some(queue), true) = (hidden.first(), shown.is_empty()) {
        let node = queue.node_path();
        let what = "the work queues are enabled, and none is passed on to this container";
        let evidence = [
            Evidence::new(path.clone(), text.clone()),
            Evidence::new(node.clone(), "does not exist"),
        ];
        let fix = Fix::advice("Pass a node on when the container is started:").then([
            format!("docker run --device={node} ..."),
            "# Kubernetes: resources: limits: dsa.intel.com/wq-user-dedicated: 1".to_owned(),
        ]);
        findings.push(
            Finding::error(what)
                .confirmed_by(Saying::IN_CONTAINER)
                .seen(evidence)
                .fix(fix),
        );
    }
    Verdict::of(findings, || {
        let writable = match survey.process.is_writable("/sys") {
            Some(true) => "/sys can be written",
            Some(false) => "/sys is read-only, configure on the host",
            None => "/sys is not a mount of its own",
        };
        format!("{} passed on; {writable}", count(shown.len(), "node"))
    })
}
