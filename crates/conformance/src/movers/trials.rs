//! The rows of the table that one operation decides.

mod refusals;

use super::forms::{Form, forms};
use super::trial::{Hidden, Trial};

/// All of them, by operation.
pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for form in forms() {
        trials.push(success(&form));
        trials.extend(faults(&form));
    }
    trials.extend(refusals::trials());
    let mut order: Vec<&str> = Vec::new();
    for trial in &trials {
        if !order.contains(&trial.operation) {
            order.push(trial.operation);
        }
    }
    // Rows of one operation are adjacent.
    trials.sort_by_key(|trial| order.iter().position(|name| *name == trial.operation));
    trials
}

fn success(form: &Form) -> Trial {
    trial(form, form.case.clone(), None)
}

fn trial(form: &Form, case: String, hidden: Option<Hidden>) -> Trial {
    let (operation, form) = (form.operation, form.clone());
    Trial {
        operation,
        case,
        plan: Box::new(move |base| form.plan(base)),
        hidden,
    }
}

/// A fault on the first page of each operand, and one on its last page, after which the rest follows.
fn faults(form: &Form) -> Vec<Trial> {
    let mut trials = Vec::new();
    // Of several forms with the same operands, each has its own name.
    let of = |case: &str| match form.case.as_str() {
        "success" | "equal" | "differences" | "blocks of 512 bytes" => case.to_owned(),
        named => format!("{named}: {case}"),
    };
    // A device may write part of a delta record before it meets the fault.
    let delta = form.operation.contains("delta");
    for (n, operand) in form.operands.iter().enumerate() {
        if operand.bytes == 0 {
            continue;
        }
        let (first, last) = form.pages(n).into_inner();
        let all = form.operands[0].bytes as u32;
        let hidden = Hidden {
            page: first,
            write: operand.write,
            most: if delta { all } else { 0 },
            resumes: false,
        };
        let name = operand.name;
        trials.push(trial(
            form,
            of(&format!("page fault on the {name}")),
            Some(hidden),
        ));
        let hidden = Hidden {
            page: last,
            most: all,
            resumes: true,
            ..hidden
        };
        trials.push(trial(
            form,
            of(&format!("page fault on the {name}, resumed")),
            Some(hidden),
        ));
    }
    trials
}
