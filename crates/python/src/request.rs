//! Operations by name.

use dray::Request;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::buffer::{Access, Exported};

/// Which operands an operation has, and what it does with them.
struct Shape {
    name: &'static str,
    source: Option<Access>,
    destination: Option<Access>,
    second: Option<Access>,
}

const fn shape(
    name: &'static str,
    source: Option<Access>,
    destination: Option<Access>,
    second: Option<Access>,
) -> Shape {
    Shape {
        name,
        source,
        destination,
        second,
    }
}

const READ: Option<Access> = Some(Access::Read);
const WRITE: Option<Access> = Some(Access::Write);

const SHAPES: [Shape; 13] = [
    shape("noop", None, None, None),
    shape("copy", READ, WRITE, None),
    shape("dualcast", READ, WRITE, WRITE),
    shape("fill", None, WRITE, None),
    shape("compare", READ, READ, None),
    shape("compare_pattern", READ, None, None),
    shape("crc32c", READ, None, None),
    shape("copy_crc32c", READ, WRITE, None),
    shape("crc64", READ, None, None),
    shape("copy_crc64", READ, WRITE, None),
    shape("create_delta", READ, READ, WRITE),
    shape("apply_delta", READ, WRITE, None),
    shape("cache_flush", None, READ, None),
];

/// What an operation is given.
pub(crate) struct Operands<'a, 'py> {
    pub(crate) source: Option<&'a Bound<'py, PyAny>>,
    pub(crate) destination: Option<&'a Bound<'py, PyAny>>,
    pub(crate) second: Option<&'a Bound<'py, PyAny>>,
    /// The pattern, the seed, the bytes of a delta record.
    pub(crate) number: u64,
}

fn exported(
    of: &'static str,
    access: Option<Access>,
    object: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Exported>> {
    match (access, object) {
        (Some(access), Some(object)) => Exported::of(object, access).map(Some),
        (None, None) => Ok(None),
        (Some(_), None) => Err(PyTypeError::new_err(format!("a {of} is needed"))),
        (None, Some(_)) => Err(PyTypeError::new_err(format!("it has no {of}"))),
    }
}

/// An operation on exported buffers.
///
/// # Errors
/// ValueError: an unknown name, a number that does not fit, a buffer that is written and overlaps another one. As
/// [`Exported::of`].
pub(crate) fn request(name: &str, given: &Operands<'_, '_>) -> PyResult<Request<Exported>> {
    let Some(shape) = SHAPES.iter().find(|shape| shape.name == name) else {
        return Err(PyValueError::new_err(format!("no operation {name}")));
    };
    let source = exported("source", shape.source, given.source)?;
    let destination = exported("destination", shape.destination, given.destination)?;
    let second = exported("second buffer", shape.second, given.second)?;
    let operands = [
        (&source, shape.source),
        (&destination, shape.destination),
        (&second, shape.second),
    ];
    apart(&operands)?;
    let number = given.number;
    let short = || {
        u32::try_from(number)
            .map_err(|_| PyValueError::new_err(format!("{number} is more than 32 bits hold")))
    };
    let seed = match shape.name {
        "crc32c" | "copy_crc32c" | "apply_delta" => short()?,
        _ => 0,
    };
    Ok(match (shape.name, source, destination, second) {
        ("copy", Some(from), Some(to), _) => Request::copy(from, to),
        ("dualcast", Some(from), Some(to), Some(too)) => Request::dualcast(from, to, too),
        ("fill", _, Some(to), _) => Request::fill(number, to),
        ("compare", Some(one), Some(other), _) => Request::compare(one, other),
        ("compare_pattern", Some(from), ..) => Request::compare_pattern(from, number),
        ("crc32c", Some(from), ..) => Request::crc32c(from, seed),
        ("copy_crc32c", Some(from), Some(to), _) => Request::copy_crc32c(from, to, seed),
        ("crc64", Some(from), ..) => Request::crc64(from, number),
        ("copy_crc64", Some(from), Some(to), _) => Request::copy_crc64(from, to, number),
        ("create_delta", Some(one), Some(other), Some(record)) => {
            Request::create_delta(one, other, record)
        }
        ("apply_delta", Some(record), Some(to), _) => Request::apply_delta(record, seed, to),
        ("cache_flush", _, Some(of), _) => Request::cache_flush(of),
        _ => Request::noop(),
    })
}

/// What is written shares no byte with another operand.
fn apart(operands: &[(&Option<Exported>, Option<Access>)]) -> PyResult<()> {
    let ranges: Vec<(usize, usize, bool)> = operands
        .iter()
        .filter_map(|(exported, access)| {
            let (start, len) = exported.as_ref()?.range();
            Some((start, start + len, *access == Some(Access::Write)))
        })
        .collect();
    for (index, one) in ranges.iter().enumerate() {
        for other in &ranges[index + 1..] {
            let overlap = one.0 < other.1 && other.0 < one.1;
            if overlap && (one.2 || other.2) {
                return Err(PyValueError::new_err("buffers of one operation overlap"));
            }
        }
    }
    Ok(())
}
