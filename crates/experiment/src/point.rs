//! One point of an experiment: a value for each parameter.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::value::Value;

/// The parameters of one run, in the order of the experiment, each named once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point(Vec<(String, Value)>);

impl Point {
    /// A point of these parameters; of a name given twice the last value counts.
    pub fn new(parameters: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut point = Self::default();
        for (name, value) in parameters {
            point.put(name, value);
        }
        point
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }

    /// The value of a parameter that is a number.
    pub fn integer(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(Value::integer)
    }

    /// The value of a parameter that is a word.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::text)
    }

    /// The point with another value for a parameter, which comes last if it is new.
    pub fn with(&self, name: &str, value: impl Into<Value>) -> Self {
        let mut point = self.clone();
        point.put(name.to_owned(), value.into());
        point
    }

    /// The parameters in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The point as one line, the same for the same values in any order: `batch=4,mode=sync`.
    ///
    /// Names are sorted. Two points with different values have different keys.
    pub fn key(&self) -> String {
        let mut parts: Vec<(&str, &Value)> = self.iter().collect();
        parts.sort_unstable();
        let mut key = String::new();
        for (name, value) in parts {
            if !key.is_empty() {
                key.push(',');
            }
            escape(name, &mut key);
            key.push('=');
            match value {
                Value::Integer(number) => key.push_str(&number.to_string()),
                // A word of digits is not the number.
                Value::Text(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                    key.push('\'');
                    key.push_str(text);
                    key.push('\'');
                }
                Value::Text(text) => escape(text, &mut key),
            }
        }
        key
    }

    fn put(&mut self, name: String, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }
}

/// Keeps the separators of a key apart from the same characters in names and words.
fn escape(text: &str, into: &mut String) {
    if !text.bytes().any(|byte| is_separator(byte.into())) {
        return into.push_str(text);
    }
    for letter in text.chars() {
        if is_separator(letter) {
            into.push('\\');
        }
        into.push(letter);
    }
}

fn is_separator(letter: char) -> bool {
    matches!(letter, ',' | '=' | '\'' | '\\')
}

impl fmt::Display for Point {
    /// The parameters in their order, as `op=memmove, size=4096`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{name}={value}")?;
        }
        Ok(())
    }
}

impl FromIterator<(String, Value)> for Point {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(parameters: I) -> Self {
        Self::new(parameters)
    }
}

impl Serialize for Point {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Point {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Pairs::new()).map(Self::new)
    }
}

/// Reads a map as pairs in the order written, which no map of the standard library keeps.
pub(crate) struct Pairs<T>(std::marker::PhantomData<T>);

impl<T> Pairs<T> {
    pub(crate) fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Pairs<T> {
    type Value = Vec<(String, T)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point() -> Point {
        Point::default()
            .with("op", "memmove")
            .with("mode", "sync")
            .with("size", 4096)
    }

    #[test]
    fn parameters_keep_their_order() {
        let changed = point().with("mode", "async").with("batch", 4);
        assert_eq!(
            changed.to_string(),
            "op=memmove, mode=async, size=4096, batch=4"
        );
        assert_eq!(changed.text("mode"), Some("async"));
        assert_eq!(changed.integer("size"), Some(4096));
        assert_eq!(changed.integer("mode"), None);
        assert_eq!(changed.text("size"), None);
        assert_eq!(changed.get("none"), None);
    }

    #[test]
    fn the_key_does_not_depend_on_the_order_of_parameters() {
        let other = Point::default()
            .with("size", 4096)
            .with("op", "memmove")
            .with("mode", "sync");
        assert_eq!(point().key(), "mode=sync,op=memmove,size=4096");
        assert_eq!(other.key(), point().key());
    }

    #[test]
    fn json_keeps_order_and_types() {
        let written = serde_json::to_string(&point().with("name", "12")).unwrap();
        assert_eq!(
            written,
            r#"{"op":"memmove","mode":"sync","size":4096,"name":"12"}"#
        );
        let read: Point = serde_json::from_str(&written).unwrap();
        assert_eq!(read, point().with("name", "12"));
    }

    fn any_point() -> impl Strategy<Value = Point> {
        let value = prop_oneof![
            (0u64..20).prop_map(Value::Integer),
            "[a1,='\\\\]{0,3}".prop_map(Value::Text),
        ];
        prop::collection::vec(("[a,='\\\\]{0,2}", value), 0..4).prop_map(Point::new)
    }

    proptest! {
        #[test]
        fn different_points_have_different_keys(left in any_point(), right in any_point()) {
            let sorted = |point: &Point| {
                let mut pairs: Vec<_> = point.0.clone();
                pairs.sort();
                pairs
            };
            prop_assert_eq!(left.key() == right.key(), sorted(&left) == sorted(&right));
        }
    }
}
