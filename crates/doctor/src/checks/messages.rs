//! What did the user's program say?

mod known;

use self::known::{HARMLESS, KNOWN, Known};
use super::sources::{
    DML_17, IDXD_CONFIG_11, IDXD_CONFIG_29, IDXD_CONFIG_40, LRL, PLUGINS_1779, SPDK_2329,
};
use crate::check::{Check, Context, Verdict};
use crate::finding::{Evidence, Finding, Fix};
use crate::survey::Survey;

pub(super) const CHECK: Check = Check {
    id: "messages",
    title: "messages of programs",
    needs: &[],
    why: "What accel-config, DML, SPDK and others say names a symptom; the same words come from many \
causes. A message given with --message or --messages is looked up in a table of known ones. If a \
check above has found the cause, it is not reported again.",
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

fn look_up(line: &str) -> Option<&'static Known> {
    let lower = line.to_ascii_lowercase();
    let mut known = KNOWN.iter();
    known.find(|known| known.words.iter().all(|word| lower.contains(word)))
}

fn is_harmless(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    HARMLESS
        .iter()
        .any(|words| words.iter().all(|word| lower.contains(word)))
}

/// Which checks a message points to, with the message.
pub(super) fn confirmed(survey: &Survey) -> Vec<(&'static str, Evidence)> {
    let messages = survey.messages.as_deref().unwrap_or_default();
    let known = messages
        .lines()
        .filter_map(|line| Some((line, look_up(line)?)));
    known
        .flat_map(|(line, known)| {
            let causes = known.causes.iter();
            causes.map(move |check| (*check, Evidence::new("said", line.trim())))
        })
        .collect()
}

fn judge(context: &Context<'_>) -> Verdict {
    let Ok(messages) = &context.survey.messages else {
        return Verdict::DoesNotApply("none was given (--message)".to_owned());
    };
    let mut findings = Vec::new();
    let (mut explained, mut unknown) = (0, 0);
    let mut named: Vec<&str> = Vec::new();
    for line in messages.lines().filter(|line| !line.trim().is_empty()) {
        if is_harmless(line) {
            continue;
        }
        let Some(known) = look_up(line) else {
            unknown += 1;
            continue;
        };
        if known
            .causes
            .iter()
            .any(|check| context.reported.contains(check))
        {
            explained += 1;
            continue;
        }
        if named.contains(&known.what) {
            continue;
        }
        named.push(known.what);
        let fix = Fix::advice(known.advice).then(known.commands.iter().copied());
        let finding = Finding::error(known.what).seen([Evidence::new("said", line.trim())]);
        findings.push(finding.fix(fix));
    }
    let seen = format!("{explained} explained by what was found above, {unknown} not known");
    match findings.is_empty() && unknown > 0 {
        // Nothing is known of it: that is no reason to call it well.
        true => Verdict::Unknown(seen),
        false => Verdict::of(findings, || seen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What published reports of trouble quote.
    #[test]
    fn messages_of_published_reports_are_recognised() {
        for line in [
            "[    7.927634] idxd 0000:f2:01.0: Unable to turn on user SVA feature.",
            "libaccfg: accfg_device_set_read_buffer_limit: dsa0: write failed: Operation not permitted",
            "device set read_buffer_limit value failed",
            "Parse json and set device fail: -1",
            "Error[0x800c0000] iax1: wq error - no shared wq support",
            "Invalid wq driver name",
            "WQ not in expected state",
            "failed in dsa0/wq0.0",
            "enabled 0 wq(s) out of 1",
            "no available idxd devices, software engine will be used",
            "libaccel-config.so.1: cannot open shared object file: No such file or directory",
            "idxd 0000:6a:01.0: No PMU support: -19",
            "qemu-system-x86_64: Property 'max-x86_64-cpu.enqcmd' not found",
            "warning: TCG doesn't support requested feature: CPUID.07H:ECX.movdir64b [bit 28]",
        ] {
            assert!(look_up(line).is_some(), "{line}");
            assert!(!is_harmless(line), "{line}");
        }
        for line in [
            "[    7.927615] idxd 0000:f2:01.0: enabling device (0144 -> 0146)",
            "[    7.947937] idxd 0000:f2:01.0: Intel(R) Accelerator Device (v100)",
        ] {
            assert!(is_harmless(line) && look_up(line).is_none(), "{line}");
        }
    }
}
