//! Two documents side by side, or one beside the virtual device and the model.

use dray_device::{Capabilities, DeviceConfig, WorkQueueConfig, WorkQueueMode};
use dray_spec::OpCap;
use serde::Serialize;

use crate::AttestError;
use crate::litmus::Litmus;
use crate::machine::Queue;
use crate::points::Points;
use crate::report::{Attest, Plan, Step, attest_virtual};
use crate::rows::Row;

/// Times that differ by less than this share are the same, where repetitions spread less.
const SAME_SHARE: f64 = 0.05;

/// What of two documents differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttestComparison {
    /// What the two are: `a` and `b`.
    pub of: [String; 2],
    /// What the queues are and is not the same.
    pub queues: Vec<Difference>,
    /// Rules that deviate in one of them.
    pub rows: Vec<Difference>,
    /// Cases of order with other outcomes.
    pub litmus: Vec<Difference>,
    /// Times that differ.
    pub points: Vec<PointDifference>,
    /// One of the two is a virtual device, whose times are the emulation's and are not compared.
    pub emulated: bool,
    /// Points that both have.
    pub points_in_both: usize,
    /// Parameters whose intervals have nothing in common.
    pub parameters: Vec<Difference>,
}

/// Something that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What it is about.
    pub what: String,
    /// Section of the specification.
    pub section: Option<String>,
    /// One of the two is not as the specification says.
    pub deviates: bool,
    /// In the first.
    pub a: String,
    /// In the second.
    pub b: String,
}

/// A time that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointDifference {
    /// Figure.
    pub figure: String,
    /// What was done.
    pub point: String,
    /// The first.
    pub a_ns: f64,
    /// The second.
    pub b_ns: f64,
    /// The second in terms of the first.
    pub ratio: f64,
}

impl AttestComparison {
    /// Whether one of the two deviates from the specification.
    pub fn deviates(&self) -> bool {
        let mut all = self.rows.iter().chain(&self.litmus);
        all.any(|difference| difference.deviates)
    }

    /// Sets two documents side by side.
    pub fn of(names: [String; 2], a: &Attest, b: &Attest) -> AttestComparison {
        // Times of an emulation are compared with nothing.
        let emulated = a.machine.is_virtual || b.machine.is_virtual;
        let (points, points_in_both) = match (&a.points, &b.points) {
            (Some(a), Some(b)) if !emulated => points(a, b),
            _ => (Vec::new(), 0),
        };
        AttestComparison {
            of: names,
            queues: queues(&a.queue, &b.queue),
            rows: rows(&a.rows, &b.rows),
            litmus: litmus(&a.litmus, &b.litmus),
            points,
            points_in_both,
            parameters: match emulated {
                true => Vec::new(),
                false => parameters(a, b),
            },
            emulated,
        }
    }

    /// Sets a document beside a virtual device that is configured as its queue is, and its times beside the modelled
    /// ones.
    ///
    /// # Errors
    /// The queue is described as no device can be; the virtual device cannot be started; interrupted.
    pub fn with_virtual(
        name: String,
        a: &Attest,
        told: &dyn Fn(Step) -> bool,
    ) -> Result<AttestComparison, AttestError> {
        let config = a.queue.config().ok_or(AttestError::Described)?;
        let mut b = attest_virtual(config, None, Plan::default(), told)?;
        b.points = a.points.clone().map(modelled);
        b.queue = a.queue.clone();
        b.machine = a.machine.clone();
        let names = [name, "the virtual device, and the model's times".to_owned()];
        Ok(AttestComparison::of(names, a, &b))
    }
}

/// The points as they are modelled.
fn modelled(mut points: Points) -> Points {
    points.measured.retain_mut(|point| {
        let Some(modelled) = point.modelled_period_ns else {
            return false;
        };
        point.period_ns = modelled;
        point.period_low_ns = modelled;
        point.period_high_ns = modelled;
        true
    });
    points
}

impl Queue {
    /// A device with such a queue as its queue 0; `None` for what no device is.
    fn config(&self) -> Option<DeviceConfig> {
        let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        let mut words = self.op_cap.split('_').rev();
        let mut op_cap = [0; 4];
        for word in &mut op_cap {
            *word = number(words.next()?)?;
        }
        let mode = match self.mode.as_str() {
            "dedicated" => WorkQueueMode::Dedicated,
            "shared" => WorkQueueMode::Shared,
            _ => return None,
        };
        let engines = u16::try_from(self.engines).ok().filter(|n| *n <= 64)?;
        let queue = WorkQueueConfig {
            threshold: self.threshold,
            priority: self.priority,
            max_batch_size: self.max_batch_descriptors,
            max_transfer_size: self.max_transfer_bytes,
            op_config: OpCap(op_cap).0,
            ..WorkQueueConfig::new(0, mode, self.entries)
        };
        let config = DeviceConfig {
            capabilities: Capabilities {
                version: self.version,
                gen_cap: number(&self.gen_cap)?,
                op_cap,
                max_engines: self.device_engines.max(engines),
                max_work_queues: self.device_work_queues,
                work_queue_size: self.device_entries,
                ..Capabilities::sapphire_rapids()
            },
            ..DeviceConfig::sapphire_rapids(engines, vec![queue])
        };
        let enabled = dray_device::Device::new(config.clone());
        enabled.is_ok().then_some(config)
    }
}

fn queues(a: &Queue, b: &Queue) -> Vec<Difference> {
    let of = |q: &Queue| {
        [
            ("version", q.version.to_string()),
            ("gen_cap", q.gen_cap.clone()),
            ("op_cap", q.op_cap.clone()),
            ("mode", q.mode.clone()),
            ("submitted by", q.submitted_by.clone()),
            ("entries", q.entries.to_string()),
            ("block on fault", q.block_on_fault.to_string()),
            ("largest transfer, bytes", q.max_transfer_bytes.to_string()),
            (
                "largest batch, descriptors",
                q.max_batch_descriptors.to_string(),
            ),
            ("engines", q.engines.to_string()),
        ]
    };
    let pairs = of(a).into_iter().zip(of(b));
    let different = pairs.filter(|((_, a), (_, b))| a != b);
    different
        .map(|((what, a), (_, b))| Difference {
            what: what.to_owned(),
            section: None,
            deviates: false,
            a,
            b,
        })
        .collect()
}

fn rows(a: &[Row], b: &[Row]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for row in a {
        let other = b.iter().find(|other| other.rule == row.rule);
        let deviates = row.failed > 0 || other.is_some_and(|other| other.failed > 0);
        if deviates {
            differences.push(Difference {
                what: row.rule.clone(),
                section: Some(row.section.clone()),
                deviates,
                a: told(row),
                b: other.map_or("not in the document".to_owned(), told),
            });
        }
    }
    differences
}

fn told(row: &Row) -> String {
    let tried = row.held + row.failed;
    match (tried, row.failures.first()) {
        (0, _) => "not tried".to_owned(),
        (_, None) => format!("{} of {tried} cases held", row.held),
        (_, Some(first)) => format!("{} of {tried} cases failed: {first}", row.failed),
    }
}

fn litmus(a: &[Litmus], b: &[Litmus]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for case in a {
        let Some(other) = b.iter().find(|other| other.case == case.case) else {
            continue;
        };
        let forbidden = [case, other].map(|case| case.forbidden().next().is_some());
        let same = case.seen.keys().eq(other.seen.keys());
        let tried = case.needs.is_none() && other.needs.is_none();
        if forbidden.contains(&true) || (tried && !same) {
            differences.push(Difference {
                what: format!("{}: {}", case.case, case.rule),
                section: Some(case.section.clone()),
                deviates: forbidden.contains(&true),
                a: seen(case),
                b: seen(other),
            });
        }
    }
    differences
}

fn seen(case: &Litmus) -> String {
    if let Some(needs) = &case.needs {
        return format!("not tried: it needs {needs}");
    }
    let seen = case.seen.iter();
    let seen = seen.map(|(outcome, count)| format!("{outcome:?} {count} times"));
    seen.collect::<Vec<_>>().join(", ")
}

fn points(a: &Points, b: &Points) -> (Vec<PointDifference>, usize) {
    let mut different = Vec::new();
    let mut both = 0;
    for point in &a.measured {
        let same = |other: &&crate::PointResult| {
            other.figure == point.figure && other.point == point.point
        };
        let Some(other) = b.measured.iter().find(same) else {
            continue;
        };
        both += 1;
        let ratio = other.period_ns / point.period_ns;
        // Repetitions that overlap say nothing.
        let overlap = point.period_low_ns <= other.period_high_ns
            && other.period_low_ns <= point.period_high_ns;
        if !overlap && (ratio - 1.0).abs() > SAME_SHARE {
            different.push(PointDifference {
                figure: point.figure.clone(),
                point: point.point.clone(),
                a_ns: point.period_ns,
                b_ns: other.period_ns,
                ratio,
            });
        }
    }
    different.sort_by(|x, y| y.ratio.ln().abs().total_cmp(&x.ratio.ln().abs()));
    (different, both)
}

fn parameters(a: &Attest, b: &Attest) -> Vec<Difference> {
    let (Some(a), Some(b)) = (&a.calibration, &b.calibration) else {
        return Vec::new();
    };
    let mut differences = Vec::new();
    for parameter in &a.parameters {
        let other = b
            .parameters
            .iter()
            .find(|other| other.name == parameter.name);
        let apart = other.filter(|o| o.low > parameter.high || o.high < parameter.low);
        if let Some(other) = apart {
            let interval = |p: &crate::CalibratedParameter| {
                format!("{:.4} to {:.4} {}", p.low, p.high, p.unit)
            };
            differences.push(Difference {
                what: parameter.name.clone(),
                section: None,
                deviates: false,
                a: interval(parameter),
                b: interval(other),
            });
        }
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn case(seen: &[(&str, usize)]) -> Litmus {
        let seen = seen
            .iter()
            .map(|(outcome, count)| ((*outcome).to_owned(), *count));
        Litmus {
            case: "drain".into(),
            section: "3.12".into(),
            rule: "a drain ends last".into(),
            allowed: vec!["01 new".into()],
            seen: seen.collect::<BTreeMap<_, _>>(),
            needs: None,
        }
    }

    #[test]
    fn an_outcome_that_is_forbidden_or_new_is_a_difference() {
        let good = [case(&[("01 new", 200)])];
        let bad = [case(&[("01 new", 190), ("none old", 10)])];
        assert_eq!(litmus(&good, &good), []);
        let found = litmus(&good, &bad);
        assert_eq!(found.len(), 1);
        assert!(found[0].deviates && found[0].section.as_deref() == Some("3.12"));
        assert_eq!(found[0].b, "\"01 new\" 190 times, \"none old\" 10 times");
        // In both, it deviates all the same.
        assert_eq!(litmus(&bad, &bad).len(), 1);
    }

    #[test]
    fn times_within_the_spread_are_the_same() {
        let point = |period_ns: f64, spread: f64| crate::PointResult {
            figure: "fig2".into(),
            point: "size=4096".into(),
            period_ns,
            period_low_ns: period_ns - spread,
            period_high_ns: period_ns + spread,
            latency_ns: None,
            throughput_gbps: None,
            modelled_period_ns: Some(100.0),
        };
        let of = |point| Points {
            platform: "spr-2s".into(),
            not_reached: 0,
            failed: Vec::new(),
            measured: vec![point],
        };
        assert_eq!(
            points(&of(point(100.0, 1.0)), &of(point(103.0, 1.0))),
            (vec![], 1)
        );
        assert_eq!(
            points(&of(point(100.0, 20.0)), &of(point(130.0, 20.0))),
            (vec![], 1)
        );
        let (found, both) = points(&of(point(100.0, 1.0)), &of(point(130.0, 1.0)));
        assert_eq!((found[0].ratio, both), (1.3, 1));
    }
}
