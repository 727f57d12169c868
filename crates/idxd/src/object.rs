//! One JSON object with a known set of keys.

use crate::ProfileError;
use crate::tree::Node;

/// A known key: its name now, and the name that older files use.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) older: &'static str,
}

/// A key that never had another name.
pub(crate) const fn key(name: &'static str) -> Key {
    Key { name, older: "" }
}

/// A key that was renamed ("bandwidth tokens" became read buffers in revision 1.2).
pub(crate) const fn renamed(name: &'static str, older: &'static str) -> Key {
    Key { name, older }
}

/// An object whose keys were checked: all known, none twice, `dev` first.
pub(crate) struct Object<'a> {
    origin: &'a str,
    path: String,
    fields: Vec<(&'static str, &'a Node)>,
    /// The value of `dev`.
    pub(crate) dev: &'a str,
}

impl<'a> Object<'a> {
    pub(crate) fn new(
        origin: &'a str,
        path: String,
        node: &'a Node,
        keys: &'static [Key],
    ) -> Result<Self, ProfileError> {
        let Node::Object(fields) = node else {
            return Err(value_error(origin, &path, "value", node, "an object"));
        };
        let dev = dev_of(origin, &path, fields)?;
        // A device is named by its name alone, what is below it by place and name.
        let path = match path.contains('/') {
            true => format!("{path} ({dev})"),
            false => dev.to_owned(),
        };
        let mut known = Vec::with_capacity(fields.len());
        for (name, node) in fields {
            let Some(key) = keys.iter().find(|key| key.is(name)) else {
                return Err(unknown_key(origin, path, name, keys));
            };
            if known.iter().any(|&(seen, _)| seen == key.name) {
                return Err(ProfileError::DuplicateKey {
                    origin: origin.to_owned(),
                    path,
                    key: name.clone(),
                });
            }
            known.push((key.name, node));
        }
        Ok(Self {
            origin,
            path,
            fields: known,
            dev,
        })
    }

    fn get(&self, key: &str) -> Option<&'a Node> {
        let (_, node) = self.fields.iter().find(|(name, _)| *name == key)?;
        Some(node)
    }

    pub(crate) fn integer(&self, key: &'static str) -> Result<Option<i64>, ProfileError> {
        match self.get(key) {
            None => Ok(None),
            Some(Node::Integer(value)) => Ok(Some(*value)),
            Some(other) => Err(self.error(key, other, "an integer of at most 63 bits")),
        }
    }

    pub(crate) fn text(&self, key: &'static str) -> Result<Option<String>, ProfileError> {
        match self.get(key) {
            None => Ok(None),
            Some(Node::Text(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.error(key, other, "text in quotes")),
        }
    }

    /// A register: text in hexadecimal, as accel-config prints it, or an integer.
    pub(crate) fn register(&self, key: &'static str) -> Result<Option<u64>, ProfileError> {
        let (node, value) = match self.get(key) {
            None => return Ok(None),
            Some(node @ Node::Text(text)) => (node, parse_hex(text)),
            Some(node @ Node::Integer(value)) => (node, u64::try_from(*value).ok()),
            Some(node) => (node, None),
        };
        match value {
            Some(value) => Ok(Some(value)),
            None => Err(self.error(key, node, "hexadecimal in quotes, such as \"0x100\"")),
        }
    }

    /// A bitmap of operations, as the kernel prints it.
    pub(crate) fn operations(
        &self,
        key: &'static str,
    ) -> Result<Option<dray_spec::OpCap>, ProfileError> {
        let expected = "eight words of 8 hexadecimal digits in quotes, separated by commas";
        match self.get(key) {
            None => Ok(None),
            Some(node @ Node::Text(text)) => match text.parse() {
                Ok(bits) => Ok(Some(bits)),
                Err(_) => Err(self.error(key, node, expected)),
            },
            Some(other) => Err(self.error(key, other, expected)),
        }
    }

    /// The elements of a list and where each stands; empty if there is no such key.
    pub(crate) fn list(
        &self,
        key: &'static str,
        within: &str,
    ) -> Result<Vec<(String, &'a Node)>, ProfileError> {
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(Node::List(items)) => {
                let name = |index| format!("{within}/{key}[{index}]");
                Ok(items
                    .iter()
                    .enumerate()
                    .map(|(index, node)| (name(index), node))
                    .collect())
            }
            Some(other) => Err(self.error(key, other, "a list")),
        }
    }

    fn error(&self, key: &str, node: &Node, expected: &str) -> ProfileError {
        value_error(self.origin, &self.path, key, node, expected)
    }
}

impl Key {
    fn is(&self, name: &str) -> bool {
        name == self.name || (!self.older.is_empty() && name == self.older)
    }
}

/// The value of `dev`, which has to come first: accel-config applies every other key to the
/// object that `dev` named last.
fn dev_of<'a>(
    origin: &str,
    path: &str,
    fields: &'a [(String, Node)],
) -> Result<&'a str, ProfileError> {
    match fields.first() {
        Some((name, Node::Text(dev))) if name == "dev" => Ok(dev),
        Some((name, other)) if name == "dev" => {
            Err(value_error(origin, path, "dev", other, "a name in quotes"))
        }
        Some((name, _)) => Err(ProfileError::DevNotFirst {
            origin: origin.to_owned(),
            path: path.to_owned(),
            first: name.clone(),
        }),
        None => Err(value_error(
            origin,
            path,
            "value",
            &Node::Object(Vec::new()),
            "an object with \"dev\"",
        )),
    }
}

pub(crate) fn value_error(
    origin: &str,
    path: &str,
    key: &str,
    node: &Node,
    expected: &str,
) -> ProfileError {
    ProfileError::Value {
        origin: origin.to_owned(),
        path: path.to_owned(),
        key: key.to_owned(),
        value: node.to_string(),
        expected: expected.to_owned(),
    }
}

fn unknown_key(origin: &str, path: String, name: &str, keys: &'static [Key]) -> ProfileError {
    let known: Vec<&'static str> = keys.iter().map(|key| key.name).collect();
    let nearest = dray_suggest::nearest(name, known.iter().copied()).map(str::to_owned);
    ProfileError::UnknownKey {
        origin: origin.to_owned(),
        path,
        key: name.chars().take(64).collect(),
        nearest,
        known,
    }
}

fn parse_hex(text: &str) -> Option<u64> {
    let digits = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}
