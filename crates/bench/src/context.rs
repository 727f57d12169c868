//! What a result was made on.

use dray_experiment::Provenance;
use serde::Serialize;

/// Head of a result. A modelled one holds nothing that differs from machine to machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Context {
    /// When; measured results only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Where; measured results only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// Program.
    pub executable: String,
    /// Cores: of the model, or of this machine.
    pub num_cpus: u32,
    /// Their nominal frequency; measured results only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mhz_per_cpu: Option<u32>,
    /// Whether the frequency changes with load; measured results only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_scaling_enabled: Option<bool>,
    /// Kind of build.
    pub library_build_type: String,
    /// Where the times come from.
    pub dray_time: Provenance,
    /// Version of the program.
    pub dray_version: String,
    /// Modelled machine, or processor.
    pub dray_platform: String,
    /// Configuration of the device, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dray_profile: Option<String>,
    /// What makes the numbers doubtful.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dray_warnings: Vec<String>,
    /// The user's own.
    #[serde(flatten)]
    pub extra: std::collections::BTreeMap<String, serde_json::Value>,
}

impl Context {
    /// Of results in modelled time.
    pub fn modelled(platform: &str, profile: &str, cores: u32) -> Context {
        Context {
            date: None,
            host_name: None,
            executable: "dray bench".to_owned(),
            num_cpus: cores,
            mhz_per_cpu: None,
            cpu_scaling_enabled: None,
            library_build_type: "release".to_owned(),
            dray_time: Provenance::Modelled,
            dray_version: env!("CARGO_PKG_VERSION").to_owned(),
            dray_platform: platform.to_owned(),
            dray_profile: Some(profile.to_owned()),
            dray_warnings: Vec::new(),
            extra: std::collections::BTreeMap::new(),
        }
    }
}
