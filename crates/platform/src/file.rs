//! Platform files: parameters with unit, range and source, and the shape of the machine.

use std::collections::BTreeMap;
use std::path::Path;

use dray_output::read_text;
use serde::Deserialize;

use crate::dsa::{EngineTiming, resource_count};
use crate::parameter::SCHEMA;
use crate::{
    Parameter, Parameters, PlatformError, RecordedParameters, Requester, Service, SharedBandwidth,
    Topology, Transfer,
};

const BUILT_IN: &[(&str, &str)] = &[
    ("spr-2s", include_str!("../../../platforms/spr-2s.toml")),
    ("emr-2s", include_str!("../../../platforms/emr-2s.toml")),
    ("dsa2-2s", include_str!("../../../platforms/dsa2-2s.toml")),
];

/// A machine: its parameters with their sources, and its topology.
#[derive(Debug, Clone)]
pub struct PlatformFile {
    /// Short name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// File or built-in name that it came from.
    pub origin: String,
    /// Base device for profiles that state no capabilities: "spr" or "dsa2".
    pub device: String,
    /// Sockets, devices, cores and nodes.
    pub topology: Topology,
    list: Vec<Parameter>,
    parameters: Parameters,
    timing: EngineTiming,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    name: String,
    title: String,
    extends: Option<String>,
    device: Option<String>,
    topology: Option<Topology>,
    #[serde(default)]
    parameters: BTreeMap<String, RawParameter>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawParameter {
    value: f64,
    unit: Option<String>,
    range: [f64; 2],
    source: String,
    #[serde(default)]
    guess: bool,
}

/// Names of the platforms that are part of the program.
pub fn builtin_names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

/// A platform that is part of the program.
pub fn builtin(name: &str) -> Result<PlatformFile, PlatformError> {
    match BUILT_IN.iter().find(|(known, _)| *known == name) {
        Some((name, text)) => PlatformFile::parse(text, name),
        None => Err(PlatformError::Unknown {
            name: name.to_owned(),
            hint: dray_suggest::suggest(name, builtin_names()),
        }),
    }
}

/// Longest file that is read; the built-in ones have some 20 KiB.
const MAX_BYTES: u64 = 1 << 20;

impl PlatformFile {
    /// A built-in name, or the path of a file.
    pub fn resolve(name_or_path: &str) -> Result<PlatformFile, PlatformError> {
        let looks_like_path = name_or_path.contains('/') || name_or_path.ends_with(".toml");
        match looks_like_path || Path::new(name_or_path).is_file() {
            true => {
                let text = read_text(Path::new(name_or_path), MAX_BYTES).map_err(|source| {
                    PlatformError::Read {
                        file: name_or_path.to_owned(),
                        source,
                    }
                })?;
                PlatformFile::parse(&text, name_or_path)
            }
            false => builtin(name_or_path),
        }
    }

    /// Parses the text of a platform file; `origin` names it in errors. A file that `extends`
    /// a built-in platform states only what differs.
    pub fn parse(text: &str, origin: &str) -> Result<PlatformFile, PlatformError> {
        let raw: RawFile = toml::from_str(text).map_err(|e| PlatformError::Syntax {
            file: origin.to_owned(),
            message: e.to_string(),
        })?;
        let base = match raw.extends.as_deref() {
            // A built-in may extend one that comes before it; that rules out circles.
            Some(name) if name != raw.name => Some(builtin(name)?),
            _ => None,
        };
        let topology = raw
            .topology
            .or(base.as_ref().map(|b| b.topology))
            .ok_or_else(|| PlatformError::Syntax {
                file: origin.to_owned(),
                message: "[topology] is missing: sockets, devices_per_socket, cores_per_socket, \
                          cxl_nodes"
                    .to_owned(),
            })?;
        check_topology(&topology, origin)?;
        for name in raw.parameters.keys() {
            if !SCHEMA.iter().any(|(known, ..)| known == name) {
                return Err(unknown(origin, name));
            }
        }
        let mut list = Vec::with_capacity(SCHEMA.len());
        for (position, (name, unit, help)) in SCHEMA.iter().enumerate() {
            let parameter = match (raw.parameters.get(*name), &base) {
                (Some(given), _) => {
                    check_unit(origin, name, unit.name(), given.unit.as_deref())?;
                    Parameter {
                        name,
                        value: given.value,
                        unit: *unit,
                        range: given.range,
                        source: given.source.as_str().into(),
                        guess: given.guess,
                    }
                }
                (None, Some(base)) => base.list[position].clone(),
                (None, None) => {
                    return Err(PlatformError::MissingParameter {
                        file: origin.to_owned(),
                        name: (*name).to_owned(),
                        unit: unit.name().to_owned(),
                        help: help.trim().to_owned(),
                    });
                }
            };
            check_value(origin, &parameter, parameter.value)?;
            list.push(parameter);
        }
        let device = raw.device.or(base.map(|b| b.device));
        let parameters = integers(&list);
        Ok(PlatformFile {
            name: raw.name,
            title: raw.title,
            origin: origin.to_owned(),
            device: device.unwrap_or_else(|| "spr".to_owned()),
            topology,
            timing: EngineTiming::new(&parameters),
            parameters,
            list,
        })
    }

    /// The same machine with another value for one parameter, within its range.
    pub fn with(&self, name: &str, value: f64) -> Result<PlatformFile, PlatformError> {
        let mut changed = self.clone();
        let parameter = changed
            .list
            .iter_mut()
            .find(|p| p.name == name)
            .ok_or_else(|| unknown(&self.origin, name))?;
        check_value(&self.origin, parameter, value)?;
        parameter.value = value;
        changed.parameters = integers(&changed.list);
        changed.timing = changed.timing.with(&changed.parameters);
        Ok(changed)
    }

    /// The same machine with a parameter as it was measured.
    ///
    /// # Errors
    /// An unknown parameter, or a value that cannot be.
    pub fn measured(
        &self,
        name: &str,
        value: f64,
        range: [f64; 2],
        source: &str,
    ) -> Result<PlatformFile, PlatformError> {
        let mut changed = self.clone();
        let parameter = changed
            .list
            .iter_mut()
            .find(|p| p.name == name)
            .ok_or_else(|| unknown(&self.origin, name))?;
        parameter.range = [range[0].min(value), range[1].max(value)];
        parameter.guess = false;
        parameter.source = source.into();
        changed.with(name, value)
    }

    /// All parameters with unit, range and source.
    pub fn list(&self) -> &[Parameter] {
        &self.list
    }

    /// What a parameter means, in one sentence.
    pub fn help(name: &str) -> &'static str {
        SCHEMA
            .iter()
            .find(|(known, ..)| *known == name)
            .map_or("", |(.., help)| help.trim())
    }

    /// All parameters as integers.
    #[inline]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// All parameters as integers, which record what is read of them.
    pub fn recorded_parameters(&self) -> RecordedParameters {
        RecordedParameters::new(self.parameters.clone())
    }

    /// Bandwidth shares for this machine, with a flow slot for each of `engines`.
    pub fn shared_bandwidth(&self, engines: usize) -> SharedBandwidth {
        SharedBandwidth::new(resource_count(&self.topology), engines)
    }

    /// What `transfer` costs an engine; see [`Service`].
    pub fn service(&self, requester: Requester, transfer: &Transfer) -> Service {
        self.timing
            .service(&self.parameters, &self.topology, requester, transfer)
    }
}

fn integers(list: &[Parameter]) -> Parameters {
    let values: Vec<f64> = list.iter().map(|p| p.value).collect();
    Parameters::from_values(&values)
}

fn unknown(origin: &str, name: &str) -> PlatformError {
    PlatformError::UnknownParameter {
        file: origin.to_owned(),
        name: name.to_owned(),
        hint: dray_suggest::suggest(name, SCHEMA.iter().map(|(known, ..)| *known)),
    }
}

fn check_unit(
    origin: &str,
    name: &str,
    expected: &str,
    found: Option<&str>,
) -> Result<(), PlatformError> {
    match found == Some(expected) {
        true => Ok(()),
        false => Err(PlatformError::Unit {
            file: origin.to_owned(),
            name: name.to_owned(),
            found: found.unwrap_or("none").to_owned(),
            expected: expected.to_owned(),
        }),
    }
}

fn check_value(origin: &str, parameter: &Parameter, value: f64) -> Result<(), PlatformError> {
    let [low, high] = parameter.range;
    // Bandwidths are divided by, and nothing physical is negative or beyond a second.
    let floor = match parameter.unit {
        crate::Unit::GigabytesPerSecond => 0.01,
        _ => 0.0,
    };
    let fix = if !(low.is_finite() && high.is_finite() && low >= floor && high <= 1e9) {
        format!("its range must lie within [{floor}, 1e9]")
    } else if low > high {
        "its range is upside down: write range = [smallest, largest]".to_owned()
    } else if !(value >= low && value <= high) {
        "give a value in the range, or widen the range and state its source".to_owned()
    } else {
        return Ok(());
    };
    Err(PlatformError::Range {
        file: origin.to_owned(),
        name: parameter.name.to_owned(),
        value,
        unit: parameter.unit.name().to_owned(),
        low,
        high,
        fix,
    })
}

fn check_topology(topology: &Topology, origin: &str) -> Result<(), PlatformError> {
    let checks = [
        ("sockets", topology.sockets, 1, 8),
        ("devices_per_socket", topology.devices_per_socket, 1, 8),
        ("cores_per_socket", topology.cores_per_socket, 1, 512),
        ("cxl_nodes", topology.cxl_nodes, 0, 8),
    ];
    for (field, value, low, high) in checks {
        if value < low || value > high {
            return Err(PlatformError::Topology {
                file: origin.to_owned(),
                field,
                value: value.into(),
                low: low.into(),
                high: high.into(),
            });
        }
    }
    Ok(())
}
