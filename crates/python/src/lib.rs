//! The module `dray._dray`: what the Python package `dray` has of Rust.

mod platform;
mod question;

use pyo3::prelude::*;

#[pymodule]
fn _dray(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(question::answer, module)?)?;
    module.add_function(wrap_pyfunction!(platform::platform, module)?)?;
    module.add_function(wrap_pyfunction!(platform::platforms, module)?)
}
