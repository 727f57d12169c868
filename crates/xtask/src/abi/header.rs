//! What a header of C declares: as much of the language as the headers here use.

use anyhow::{Context, ensure};

/// A structure: its name, and type and name of its fields in order.
type Structure = (String, Vec<(String, String)>);

/// What a header declares.
#[derive(Debug, Default)]
pub(super) struct Header {
    /// Values of enumerations, and macros without parameters.
    pub(super) constants: Vec<String>,
    /// Enumerations and other names for numbers.
    pub(super) types: Vec<String>,
    /// Structures that are not opaque.
    pub(super) structures: Vec<Structure>,
    /// Each name, and its declaration without names of parameters.
    pub(super) functions: Vec<(String, String)>,
}

impl Header {
    /// # Errors
    /// A declaration of a kind that is not known here: nothing is left out.
    pub(super) fn parsed(text: &str) -> anyhow::Result<Header> {
        let text = without_comments(text);
        let mut header = Header::default();
        header.constants.extend(macros(&text).map(str::to_owned));
        let code = code(&text);
        let mut rest = code.as_str();
        while let Some(at) = rest.find([';', '{']) {
            let (declaration, after) = (rest[..at].trim(), &rest[at + 1..]);
            let is_body = rest[at..].starts_with('{');
            rest = match is_body {
                true => header.body(declaration, after)?,
                false => {
                    header.line(declaration)?;
                    after
                }
            };
        }
        ensure!(rest.trim().is_empty(), "{rest}: no declaration");
        Ok(header)
    }

    /// A type with a body; what comes behind it.
    fn body<'a>(&mut self, declaration: &str, text: &'a str) -> anyhow::Result<&'a str> {
        let (body, after) = text.split_once('}').context("a body has an end")?;
        let (name, after) = after.split_once(';').context("a type has an end")?;
        let name = name.trim().to_owned();
        ensure!(
            !name.is_empty() && !body.contains('{'),
            "{declaration}: its body"
        );
        if declaration.starts_with("typedef enum") {
            let words = body
                .split(',')
                .filter_map(|word| word.split_whitespace().next());
            self.constants.extend(words.map(str::to_owned));
            self.types.push(name);
        } else if declaration.starts_with("typedef struct") {
            let fields = body
                .split(';')
                .map(str::trim)
                .filter(|field| !field.is_empty());
            let fields: Option<Vec<_>> = fields.map(field).collect();
            self.structures
                .push((name, fields.with_context(|| format!("{body}: a field"))?));
        } else {
            anyhow::bail!("{declaration}: neither enum nor struct");
        }
        Ok(after)
    }

    /// A declaration without a body.
    fn line(&mut self, declaration: &str) -> anyhow::Result<()> {
        let Some(rest) = declaration.strip_prefix("typedef ") else {
            let (name, types) = function(declaration)?;
            self.functions.push((name, types));
            return Ok(());
        };
        if !rest.starts_with("struct ") {
            let (_, name) = rest.rsplit_once(' ').context("a type has a name")?;
            self.types.push(name.to_owned());
        }
        Ok(())
    }
}

fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut code = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    code + rest
}

/// Macros that stand for a value.
fn macros(text: &str) -> impl Iterator<Item = &str> {
    let definitions = text
        .lines()
        .filter_map(|line| line.strip_prefix("#define "));
    definitions.filter_map(|definition| {
        let (name, value) = definition.trim().split_once(' ')?;
        (!name.contains('(') && !value.is_empty()).then_some(name)
    })
}

/// The text without lines of the preprocessor and blocks for C++, with single spaces.
fn code(text: &str) -> String {
    let mut is_cpp = false;
    let mut words: Vec<&str> = Vec::new();
    for line in text.lines() {
        match line.split_whitespace().next() {
            Some("#ifdef") => is_cpp = line.contains("__cplusplus"),
            Some("#endif") => is_cpp = false,
            Some(word) if word.starts_with('#') || is_cpp => {}
            _ => words.extend(line.split_whitespace()),
        }
    }
    words.join(" ")
}

/// Type and name.
fn field(text: &str) -> Option<(String, String)> {
    let text = text.split(" __attribute__").next()?;
    let (kind, name) = text.rsplit_once([' ', '*'])?;
    let star = if text.contains('*') { " *" } else { "" };
    let kind = kind.trim().trim_end_matches('*').trim();
    let (name, array) = name.split_at(name.find('[').unwrap_or(name.len()));
    Some((format!("{kind}{star}{array}"), name.to_owned()))
}

/// The name, and the declaration with the types of its parameters, whose names nobody relies on.
fn function(declaration: &str) -> anyhow::Result<(String, String)> {
    let parts = declaration
        .strip_suffix(')')
        .and_then(|d| d.split_once('('));
    let (head, parameters) = parts.with_context(|| format!("{declaration}: no function"))?;
    let types = parameters.split(", ").map(|parameter| {
        let end = parameter.rfind([' ', '*']);
        parameter[..end.map_or(parameter.len(), |at| at + 1)].trim()
    });
    let types = types.collect::<Vec<_>>().join(", ");
    let name = head.rsplit([' ', '*']).next().context("a name")?;
    Ok((name.to_owned(), format!("{head}({types})")))
}
