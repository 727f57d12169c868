//! `dray config validate`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dray_config::{Assumed, ConfigError, Plan, findings, fit, model};
use dray_idxd::driver::{Driver, Options, Personality};
use dray_idxd::{DeviceProfile, Finding, Profile};
use dray_output::counted;
use serde::Serialize;

use super::machine::SysfsTree;
use super::profiles::iaa_notes;
use crate::complain::Usage;
use crate::print::{self, TextOrJson};
use crate::terminal::{self, Verdict};

/// Arguments of `validate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Validate {
    /// The profile: a file, or a name such as 4e1w-s.
    file: String,
    /// The device: what `list -i` printed there. By default the device of that name here, or where
    /// there is none what the profile says of it.
    #[arg(long, value_name = "FILE")]
    device: Option<PathBuf>,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    format: TextOrJson,
}

/// What is said of a profile.
#[derive(Default, Serialize)]
struct Answer {
    file: String,
    /// Settings that would be refused.
    findings: Vec<Finding>,
    /// Where the profile's device differs from the one that is there.
    warnings: Vec<String>,
    notes: Vec<String>,
}

/// The devices that a profile is judged on, and a model of their driver.
struct Judge {
    devices: Vec<DeviceProfile>,
    model: Driver,
}

impl Judge {
    fn find(described: Option<&Path>) -> anyhow::Result<Judge> {
        if let Some(file) = described {
            let profile = Profile::load(file).map_err(ConfigError::from)?;
            let (model, _) = model(&profile, Assumed::default());
            return Ok(Judge {
                devices: profile.device_profiles().to_vec(),
                model,
            });
        }
        match SysfsTree::look() {
            Ok(machine) => Ok(Judge {
                devices: machine.profile.device_profiles().to_vec(),
                model: machine.plan().into_model(),
            }),
            Err(error) => match error.downcast_ref() {
                Some(ConfigError::NoDriver { .. }) => Ok(Judge {
                    devices: Vec::new(),
                    model: Driver::new(Options::new(Personality::NEWEST), Vec::new()),
                }),
                _ => Err(error),
            },
        }
    }

    fn kernel(&self) -> Personality {
        self.model.options().personality
    }

    /// What is left out of a profile without findings when it is loaded.
    fn notes(&self, fitted: &[DeviceProfile]) -> anyhow::Result<Vec<String>> {
        let known = |device: &DeviceProfile| self.devices.iter().any(|d| d.dev == device.dev);
        if !fitted.iter().all(known) {
            let profile = Profile::of(fitted.to_vec());
            return Ok(dray_run::notes(&profile, self.kernel())?);
        }
        let mut plan = Plan::new(self.model.clone());
        for device in fitted {
            plan.disable_device(&device.dev, true)?;
            dray_config::load(&mut plan, device, true)?;
        }
        Ok(plan.notes().to_vec())
    }
}

pub(super) fn validate(args: &Validate) -> anyhow::Result<ExitCode> {
    let answer = judged(args)?;
    match args.format {
        TextOrJson::Json => print::all(&mut io::stdout().lock(), &print::document(&answer)?)?,
        TextOrJson::Text => terminal::judged(&text(&answer), |line| {
            let is_answer = line.ends_with("would be refused");
            let verdict = if answer.findings.is_empty() {
                Verdict::Good
            } else {
                Verdict::Bad
            };
            is_answer.then_some(verdict)
        })?,
    }
    Ok(match answer.findings.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn judged(args: &Validate) -> anyhow::Result<Answer> {
    let profile = Profile::resolve(&args.file).map_err(ConfigError::from)?;
    let judge = Judge::find(args.device.as_deref())?;
    let mut answer = Answer {
        file: args.file.clone(),
        notes: iaa_notes(&profile),
        ..Answer::default()
    };
    let mut fitted = Vec::new();
    for device in profile.device_profiles() {
        let there = judge.devices.iter().find(|other| other.dev == device.dev);
        match (there, &args.device) {
            (Some(there), _) => {
                let (device, differences) = fit(device, there);
                let differences = differences.iter().map(ToString::to_string);
                answer.warnings.extend(differences);
                fitted.push(device);
            }
            (None, Some(file)) => {
                return Err(Usage::error(
                    format!("{} describes no {}", file.display(), device.dev),
                    "what `dray config list -i` prints on the machine is the description",
                ));
            }
            (None, None) => {
                answer.notes.push(format!(
                    "no {} here; the profile's own description counts",
                    device.dev
                ));
                fitted.push(device.clone());
            }
        }
    }
    answer.findings = findings(&fitted, judge.kernel());
    if answer.findings.is_empty() {
        answer.notes.extend(judge.notes(&fitted)?);
    }
    Ok(answer)
}

/// The findings and their number; the rest is said on standard error.
fn text(answer: &Answer) -> String {
    for warning in &answer.warnings {
        eprintln!("warning: {warning}");
    }
    for note in &answer.notes {
        eprintln!("note: {note}");
    }
    let findings = answer.findings.iter();
    let findings: String = findings.map(|finding| format!("{finding}\n")).collect();
    let refused = match answer.findings.len() {
        0 => "nothing".to_owned(),
        number => counted(number, "setting"),
    };
    format!("{findings}{}: {refused} would be refused\n", answer.file)
}
