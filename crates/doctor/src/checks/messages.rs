//! What did the user's program say?

use super::CHECKS;
use super::sources::{
    DML_17, IDXD_CONFIG_11, IDXD_CONFIG_29, IDXD_CONFIG_40, LRL, PLUGINS_1779, SPDK_2329,
};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding};
use crate::survey::Survey;
use crate::text::{Explained, Explanation, Texts};

pub(super) const CHECK: Check = Check {
    id: "messages",
    title: "messages of programs",
    needs: &[],
    why: "What accel-config, DML, SPDK and others say names a symptom; the same words come from many \
causes. A message given with --message is looked up among those of the kernel, of accel-config and of \
the programs that use a device. If a check above has found the cause, it is not reported again. \
`dray doctor FILE` explains all messages of a log.",
    sources: &[
        LRL,
        IDXD_CONFIG_11,
        IDXD_CONFIG_29,
        IDXD_CONFIG_40,
        DML_17,
        PLUGINS_1779,
        SPDK_2329,
    ],
    judge,
};

fn explain(messages: &str) -> Explanation {
    let mut texts = Texts::new();
    texts.message(messages);
    texts.finish()
}

fn said(explained: &Explained) -> Evidence {
    Evidence::new("said", explained.seen[0].says.as_str())
}

/// Which checks a message points to, with the message.
pub(super) fn confirmed(survey: &Survey) -> Vec<(&'static str, Evidence)> {
    let messages = survey.messages.as_deref().unwrap_or_default();
    let explanation = explain(messages);
    let pairs = explanation.findings.iter().flat_map(|explained| {
        let checks = CHECKS.iter().map(|check| check.id);
        checks
            .filter(|id| explained.checks.iter().any(|known| known == id))
            .map(|id| (id, said(explained)))
    });
    pairs.collect()
}

fn judge(context: &Context<'_>) -> Verdict {
    let Ok(messages) = &context.survey.messages else {
        return Verdict::DoesNotApply("none was given (--message)".to_owned());
    };
    let explanation = explain(messages);
    let found_above = |explained: &&Explained| {
        let mut checks = explained.checks.iter();
        checks.any(|check| context.reported.contains(&check.as_str()))
    };
    let (above, open): (Vec<_>, Vec<_>) = explanation.findings.iter().partition(found_above);
    let findings = open.into_iter().map(|explained| {
        Finding::new(explained.severity, explained.what.as_str())
            .seen([said(explained)])
            .fix(explained.fix.clone())
    });
    let explained: u64 = above.iter().map(|explained| explained.count).sum();
    let unknown = explanation.unknown.count;
    let seen = format!("{explained} explained by what was found above, {unknown} not known");
    let findings: Vec<Finding> = findings.collect();
    match findings.is_empty() && unknown > 0 {
        // Nothing is known of it: that is no reason to call it well.
        true => Verdict::Unknown(seen),
        false => Verdict::of(findings, || seen),
    }
}
