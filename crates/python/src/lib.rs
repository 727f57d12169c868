//! The module `dray._dray`: what the Python package `dray` has of Rust.

mod buffer;
mod completion;
mod ending;
mod mover;
mod open;
mod operation;
mod platform;
mod question;
mod request;
mod signal;
mod stack;

use pyo3::prelude::*;

#[pymodule]
fn _dray(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add(
        "OperationError",
        py.get_type::<completion::OperationError>(),
    )?;
    module.add_class::<completion::Completion>()?;
    module.add_class::<mover::Mover>()?;
    module.add_class::<operation::Operation>()?;
    module.add_class::<signal::Signal>()?;
    module.add_function(wrap_pyfunction!(ending::end, module)?)?;
    module.add_function(wrap_pyfunction!(ending::forked, module)?)?;
    module.add_function(wrap_pyfunction!(mover::join_left, module)?)?;
    module.add_function(wrap_pyfunction!(question::answer, module)?)?;
    module.add_function(wrap_pyfunction!(platform::platform, module)?)?;
    module.add_function(wrap_pyfunction!(platform::platforms, module)?)
}
