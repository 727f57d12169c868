//! Platform files as data.

use dray_platform::{PlatformFile, builtin_names};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Names of the platforms that are part of dray.
#[pyfunction]
pub(crate) fn platforms() -> Vec<&'static str> {
    builtin_names()
}

/// A platform as JSON, by its name or file, with other values for some of its parameters.
///
/// Raises ValueError: no such platform or parameter, or a value that cannot be.
#[pyfunction]
pub(crate) fn platform(name: &str, values: Vec<(String, f64)>) -> PyResult<String> {
    let refused = |error: dray_platform::PlatformError| PyValueError::new_err(error.to_string());
    let mut platform = PlatformFile::resolve(name).map_err(refused)?;
    for (parameter, value) in values {
        platform = platform.with(&parameter, value).map_err(refused)?;
    }
    let topology = platform.topology;
    let parameters = platform.list().iter().map(|p| {
        serde_json::json!({
            "name": p.name, "value": p.value, "unit": p.unit.name(), "low": p.range[0], "high": p.range[1],
            "guess": p.guess, "source": &*p.source, "meaning": PlatformFile::help(p.name),
        })
    });
    let document = serde_json::json!({
        "name": platform.name, "title": platform.title, "device": platform.device,
        "topology": {
            "sockets": topology.sockets, "devices_per_socket": topology.devices_per_socket,
            "cores_per_socket": topology.cores_per_socket, "cxl_nodes": topology.cxl_nodes,
        },
        "parameters": parameters.collect::<Vec<_>>(),
    });
    Ok(document.to_string())
}
