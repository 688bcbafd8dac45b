//! From the text of a file, or of one flag, to the fields of a configuration.

use std::{fs, path::Path};

use toml::{Table, Value};

use super::{NodeConfig, NodeConfigError, field};

impl NodeConfig {
    /// Takes every field that a file names.
    ///
    /// # Errors
    /// The file cannot be read, is no TOML, or names a field or a value that there is not.
    pub fn read_file(&mut self, path: &Path) -> Result<(), NodeConfigError> {
        let text = fs::read_to_string(path);
        let text = text.map_err(|source| NodeConfigError::Unreadable { path: path.to_owned(), source })?;
        self.read(&text)
    }

    /// Takes every field that a text names.
    ///
    /// # Errors
    /// It is no TOML, or names a field or a value that there is not.
    pub fn read(&mut self, text: &str) -> Result<(), NodeConfigError> {
        let table: Table = text
            .parse()
            .map_err(|error: toml::de::Error| NodeConfigError::Syntax { what: error.to_string() })?;
        table.iter().try_for_each(|(name, value)| self.take(name, value))
    }

    /// Sets one field, as a flag does: the value is written as in a file, or is a string without its quotes.
    ///
    /// # Errors
    /// There is no such field, or it has no such value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), NodeConfigError> {
        let parsed = format!("value = {value}").parse::<Table>();
        let parsed = parsed.ok().and_then(|mut table| table.remove("value"));
        self.take(name, &parsed.unwrap_or_else(|| Value::String(value.to_owned())))
    }

    fn take(&mut self, name: &str, value: &Value) -> Result<(), NodeConfigError> {
        let Some(field) = field::FIELDS.iter().find(|field| field.name == name) else {
            let known = field::FIELDS.iter().map(|field| field.name).collect::<Vec<_>>().join(", ");
            return Err(NodeConfigError::UnknownField { field: name.to_owned(), known });
        };
        (field.set)(self, value).map_err(|range| NodeConfigError::OutOfRange {
            field: name.to_owned(),
            value: value.to_string(),
            range,
        })
    }
}
