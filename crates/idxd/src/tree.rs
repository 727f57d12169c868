//! JSON as it was written: key order and repeated keys are kept, because accel-config gives
//! both a meaning.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Integer(i64),
    /// An integer that does not fit into `Integer`, or a fraction, as text.
    OtherNumber(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl fmt::Display for Node {
    /// Short enough for an error message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 40;
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::OtherNumber(text) => f.write_str(text),
            Self::Text(text) if text.chars().count() <= SHOWN => write!(f, "{text:?}"),
            Self::Text(text) => {
                let start: String = text.chars().take(SHOWN).collect();
                write!(f, "{start:?}...")
            }
            Self::List(items) => write!(f, "a list of {}", items.len()),
            Self::Object(fields) => write!(f, "an object with {} keys", fields.len()),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(match i64::try_from(value) {
            Ok(value) => Node::Integer(value),
            Err(_) => Node::OtherNumber(value.to_string()),
        })
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::OtherNumber(format!("{value:?}")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = access.next_entry()? {
            fields.push(field);
        }
        Ok(Node::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_and_repeats() {
        let node: Node = serde_json::from_str(r#"{"b":1,"a":[null,true],"b":"x"}"#).unwrap();
        assert_eq!(
            node,
            Node::Object(vec![
                ("b".into(), Node::Integer(1)),
                ("a".into(), Node::List(vec![Node::Null, Node::Bool(true)])),
                ("b".into(), Node::Text("x".into())),
            ])
        );
    }

    #[test]
    fn large_and_fractional_numbers_stay_readable() {
        let node: Node = serde_json::from_str("[18446744073709551615, 1.5, 1e300]").unwrap();
        let Node::List(items) = node else {
            panic!("a list")
        };
        let shown: Vec<String> = items.iter().map(Node::to_string).collect();
        assert_eq!(shown, ["18446744073709551615", "1.5", "1e300"]);
    }
}
