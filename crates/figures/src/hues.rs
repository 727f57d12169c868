//! Which series share a hue.

use dray_experiment::{Experiment, Point, Value};

use crate::task::Backend;

/// Hues: one for each value of the first parameter where several make the series or its values are
/// names; shades of one where they are numbers. Then one for the core.
#[derive(Debug)]
pub(crate) struct Hues {
    name: Option<String>,
    values: Vec<Value>,
    cores: u8,
}

impl Hues {
    /// For the series made of these parameters.
    pub(crate) fn new(experiment: &Experiment, names: &[String], beside_core: bool) -> Hues {
        let values = |name: &String| experiment.values(name);
        let first = names.iter().find(|name| values(name).len() > 1);
        let places = names.iter().any(|name| name.ends_with("_node"));
        let numbers = |name: &String| values(name).iter().all(|v| v.integer().is_some());
        let alone = |name: &String| {
            names.iter().filter(|n| values(n).len() > 1).count() == 1 && numbers(name)
        };
        let name = first
            .filter(|name| !(alone(name) || places && beside_core))
            .cloned();
        let values = name.as_ref().map(values).unwrap_or_default();
        Hues {
            cores: values.len().max(1) as u8,
            name,
            values,
        }
    }

    /// The hue of a series.
    pub(crate) fn of(&self, backend: Backend, point: &Point) -> u8 {
        let Some(name) = &self.name else {
            return match backend {
                Backend::Model => 0,
                Backend::Device => 4,
                _ => 1,
            };
        };
        match (backend, name.as_str(), point.get(name)) {
            (Backend::Model | Backend::Device, "op", Some(op)) => kind_of(&op.to_string()),
            (Backend::Model | Backend::Device, _, Some(value)) => {
                self.values.iter().position(|v| v == value).unwrap_or(0) as u8
            }
            _ => self.cores,
        }
    }
}

/// Operations of one kind share a hue.
fn kind_of(op: &str) -> u8 {
    match op {
        "memmove" => 0,
        "fill" | "nt_fill" => 1,
        "compare" | "compval" => 2,
        "dualcast" => 3,
        "crc" | "copy_crc" => 5,
        _ => 6,
    }
}
