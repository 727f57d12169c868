//! A profile as JSON text, laid out as accel-config lays it out.

use std::fmt::Display;
use std::io;

use serde::{Serialize, Serializer};
use serde_json::ser::{Formatter, PrettyFormatter};

use crate::DeviceProfile;

/// The text that `accel-config list` would print, with a newline at the end.
pub(crate) fn to_json(devices: &[DeviceProfile]) -> String {
    let mut bytes = Vec::new();
    let formatter = JsonC {
        pretty: PrettyFormatter::new(),
    };
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    devices
        .serialize(&mut serializer)
        .expect("a Vec takes every byte, and all keys are strings");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// json-c's pretty form: two spaces of indentation, none after the colon.
struct JsonC {
    pretty: PrettyFormatter<'static>,
}

impl Formatter for JsonC {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.pretty.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.pretty.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b":")
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(writer)
    }
}

/// For `skip_serializing_if`: a key that the profile does not have is not written.
pub(crate) fn is_absent<T>(value: &Option<T>) -> bool {
    value.is_none()
}

/// A register, as accel-config prints it.
pub(crate) fn hex<S: Serializer>(value: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(&format_args!("{value:#x}")),
        None => serializer.serialize_none(),
    }
}

/// Anything that has a text form.
pub(crate) fn text<T: Display, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}
