//! Can the nodes be opened?

use super::sources::{IDXD_CONFIG_8, IDXD_CONFIG_16, IDXD_CONFIG_73};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix, Saying};
use crate::machine::{FileKind, Unreadable};
use crate::survey::Survey;
use crate::survey::device::Queue;

pub(super) const CHECK: Check = Check {
    id: "nodes",
    title: "/dev/dsa",
    needs: &["queues", "container"],
    why: "An enabled queue of type user has the character device /dev/dsa/wqX.Y, which udev makes with \
mode 0600 and owner root. Others than root need permissions, which last only until the queue is \
enabled anew: a udev rule gives them for good. Libraries then see the queue and cannot open it, and \
say only that there is none.",
    sources: &[IDXD_CONFIG_16, IDXD_CONFIG_8, IDXD_CONFIG_73],
    judge,
};

fn judge(context: &Context<'_>) -> Verdict {
    let survey = context.survey;
    let queues = survey.devices.enabled_queues().map(|(_, queue)| queue);
    let queues: Vec<_> = queues.filter(|queue| queue.is_user()).collect();
    if queues.is_empty() {
        return Verdict::DoesNotApply("no work queue of type user is enabled".to_owned());
    }
    let findings: Vec<_> = queues
        .iter()
        .filter_map(|queue| finding(survey, queue))
        .collect();
    Verdict::of(findings, || {
        let nodes = queues.iter().map(|queue| queue.node_path());
        nodes.collect::<Vec<_>>().join(", ")
    })
}

fn finding(survey: &Survey, queue: &Queue) -> Option<Finding> {
    let path = queue.node_path();
    let stat = match &queue.node {
        Ok(stat) => stat,
        Err(Unreadable::Missing) => {
            let what = format!("{} is enabled, and there is no {path}", queue.full_name());
            let evidence = Evidence::new(path, "does not exist");
            let fix = Fix::advice(
                "udev makes it: see that it runs, and let it look again. Kernels before 5.14 made none in some configurations.",
            )
            .then(["sudo udevadm trigger --subsystem-match=dsa", "ls -l /dev/dsa"]);
            return Some(
                Finding::error(what)
                    .seen([evidence])
                    .fix(fix)
                    .confirmed_by(Saying::NO_NODE),
            );
        }
        Err(reason) => {
            let what = format!("{path} cannot be looked at");
            let evidence = Evidence::new(path, reason.to_string());
            return Some(Finding::warning(what).seen([evidence]));
        }
    };
    let shown = format!(
        "mode {:04o}, user {}, group {}",
        stat.mode, stat.uid, stat.gid
    );
    if stat.kind != FileKind::CharacterDevice {
        let what = format!("{path} is no character device: something else was put there");
        let fix = Fix::advice("Remove it, and enable the queue anew.");
        let evidence = Evidence::new(path, "not a character device");
        return Some(Finding::error(what).seen([evidence]).fix(fix));
    }
    if survey.process.may_open(stat.mode, stat.uid, stat.gid)? {
        return None;
    }
    let uid = survey
        .process
        .uid
        .map_or("this user".to_owned(), |uid| format!("user {uid}"));
    let what = format!("{uid} may not open {path} for reading and writing");
    let fix = Fix::advice("Give a group the nodes for good, and be a member of it:").then([
        "echo 'SUBSYSTEM==\"dsa\", KERNEL==\"wq*\", MODE=\"0660\", GROUP=\"dsa\"' | sudo tee /etc/udev/rules.d/60-dsa.rules".to_owned(),
        "sudo groupadd -f dsa && sudo usermod -aG dsa $USER    # then log in again".to_owned(),
        format!(
            "sudo udevadm control --reload && sudo accel-config disable-wq {0} && sudo accel-config enable-wq {0}",
            queue.full_name()
        ),
    ]);
    Some(
        Finding::error(what)
            .confirmed_by(Saying::NODE_DENIED)
            .seen([Evidence::new(path, shown)])
            .fix(fix),
    )
}
