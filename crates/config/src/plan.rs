//! Writes in an order that the driver takes.

use dray_idxd::driver::Driver;

use crate::error::Refused;
use crate::tree::attribute;

/// A write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeWrite {
    /// The file, relative to `/sys`.
    pub path: String,
    /// What is written.
    pub value: String,
}

/// Writes that a model of the machine has taken, one after the other.
#[derive(Debug, Clone)]
pub struct Plan {
    model: Driver,
    steps: Vec<AttributeWrite>,
    notes: Vec<String>,
}

impl Plan {
    /// Nothing yet, on a model of the machine as it is.
    pub fn new(model: Driver) -> Plan {
        Plan {
            model,
            steps: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The writes, in their order.
    pub fn steps(&self) -> &[AttributeWrite] {
        &self.steps
    }

    /// What was left out, and why.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The machine as it will be.
    pub fn model(&self) -> &Driver {
        &self.model
    }

    /// The machine as it will be, and nothing else.
    pub fn into_model(self) -> Driver {
        self.model
    }

    pub(crate) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// The value of an attribute at this point; none where there is no such.
    pub(crate) fn value(&self, object: &str, name: &str) -> Option<String> {
        let bytes = self.model.read(&attribute(object, name)).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        Some(text.trim_end_matches('\n').to_owned())
    }

    pub(crate) fn number(&self, object: &str, name: &str) -> Option<i64> {
        self.value(object, name)?.parse().ok()
    }

    /// Whether an object is bound to a driver.
    pub(crate) fn is_bound(&self, object: &str, driver: &str) -> bool {
        let path = format!("bus/dsa/drivers/{driver}/{object}");
        self.model.list(&path).is_ok()
    }

    /// Writes an attribute unless it has that value.
    pub(crate) fn set(
        &mut self,
        object: &str,
        name: &str,
        value: impl ToString,
    ) -> Result<(), Refused> {
        let value = value.to_string();
        match self.value(object, name) {
            Some(now) if now == value => Ok(()),
            _ => self.write(attribute(object, name), value),
        }
    }

    pub(crate) fn bind(&mut self, driver: &str, object: &str) -> Result<(), Refused> {
        self.write(format!("bus/dsa/drivers/{driver}/bind"), object.to_owned())
    }

    pub(crate) fn unbind(&mut self, driver: &str, object: &str) -> Result<(), Refused> {
        let path = format!("bus/dsa/drivers/{driver}/unbind");
        self.write(path, object.to_owned())
    }

    fn write(&mut self, path: String, value: String) -> Result<(), Refused> {
        match self.model.try_write(&path, value.as_bytes()) {
            Ok(()) => {
                self.steps.push(AttributeWrite { path, value });
                Ok(())
            }
            Err(failure) => Err(Refused {
                path,
                value,
                errno: failure.errno,
                when: failure.when,
                status: failure.status,
            }),
        }
    }
}
