//! A field of a document, by name, with errors that name it.

use super::node::{Node, Value};
use crate::discover::error::DiscoverError;
use crate::discover::origin::{Found, Origin};
use crate::discover::root::Source;
use crate::discover::secret::Secret;

/// A field that may or may not be there. An absent field and a null are the same, as they are for kubeadm.
#[derive(Clone)]
pub(in crate::discover) struct Field<'a> {
    source: &'a Source,
    path: String,
    node: Option<&'a Node>,
}

impl<'a> Field<'a> {
    pub(super) fn top(source: &'a Source, node: &'a Node) -> Self {
        Self {
            source,
            path: String::new(),
            node: Some(node),
        }
    }

    fn value(&self) -> Option<&'a Value> {
        self.node
            .map(|node| &node.value)
            .filter(|value| !matches!(value, Value::Null))
    }

    fn child(&self, step: &str, node: Option<&'a Node>) -> Self {
        let path = match self.path.as_str() {
            "" => step.to_owned(),
            path if step.starts_with('[') => format!("{path}{step}"),
            path => format!("{path}.{step}"),
        };
        Self {
            path,
            node,
            ..self.clone()
        }
    }

    /// Whether it is there and not null.
    pub(in crate::discover) fn exists(&self) -> bool {
        self.value().is_some()
    }

    /// The file it stands in.
    pub(in crate::discover) fn source(&self) -> &'a Source {
        self.source
    }

    /// Where it stands.
    pub(in crate::discover) fn origin(&self) -> Origin {
        Origin::field(&self.source.path, self.path.clone())
    }

    /// The field `key` in it.
    ///
    /// # Errors
    /// It is there and not a mapping.
    pub(in crate::discover) fn get(&self, key: &str) -> Result<Self, DiscoverError> {
        match self.value() {
            None => Ok(self.child(key, None)),
            Some(Value::Map(entries)) => Ok(self.child(
                key,
                entries
                    .iter()
                    .find(|(name, _)| name == key)
                    .map(|(_, node)| node),
            )),
            Some(other) => Err(self.expected("a mapping", other)),
        }
    }

    /// The field several levels down.
    ///
    /// # Errors
    /// Something on the way is there and not a mapping.
    pub(in crate::discover) fn at(&self, keys: &[&str]) -> Result<Self, DiscoverError> {
        keys.iter()
            .try_fold(self.clone(), |field, key| field.get(key))
    }

    /// Its items; none when it is absent.
    ///
    /// # Errors
    /// It is there and not a list.
    pub(in crate::discover) fn items(&self) -> Result<Vec<Self>, DiscoverError> {
        match self.value() {
            None => Ok(Vec::new()),
            Some(Value::List(items)) => Ok(items
                .iter()
                .enumerate()
                .map(|(index, item)| self.child(&format!("[{index}]"), Some(item)))
                .collect()),
            Some(other) => Err(self.expected("a list", other)),
        }
    }

    /// Its entries in the file's order; none when it is absent.
    ///
    /// # Errors
    /// It is there and not a mapping.
    pub(in crate::discover) fn entries(&self) -> Result<Vec<(&'a str, Self)>, DiscoverError> {
        match self.value() {
            None => Ok(Vec::new()),
            Some(Value::Map(entries)) => Ok(entries
                .iter()
                .map(|(key, node)| (key.as_str(), self.child(key, Some(node))))
                .collect()),
            Some(other) => Err(self.expected("a mapping", other)),
        }
    }

    /// Its line in the file; 0 where it is not known.
    pub(in crate::discover) fn line(&self) -> u64 {
        self.node.map_or(0, |node| node.line)
    }

    /// Whether it is a list.
    pub(in crate::discover) fn is_list(&self) -> bool {
        matches!(self.value(), Some(Value::List(_)))
    }

    /// Its text, trimmed; `None` when it is absent or empty.
    ///
    /// # Errors
    /// It is a list or a mapping.
    pub(in crate::discover) fn text(&self) -> Result<Option<&'a str>, DiscoverError> {
        match self.value() {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
            Some(Value::Bool(true)) => Ok(Some("true")),
            Some(Value::Bool(false)) => Ok(Some("false")),
            Some(other) => Err(self.expected("text", other)),
        }
    }

    /// Its text, untrimmed: what a signature covers.
    ///
    /// # Errors
    /// It is not text.
    pub(in crate::discover) fn raw(&self) -> Result<Option<&'a str>, DiscoverError> {
        match self.value() {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some(other) => Err(self.expected("text", other)),
        }
    }

    /// Its text with where it stands.
    ///
    /// # Errors
    /// It is a list or a mapping.
    pub(in crate::discover) fn found(&self) -> Result<Option<Found<&'a str>>, DiscoverError> {
        Ok(self.text()?.map(|text| Found::new(text, self.origin())))
    }

    /// Its text, where nobody may see it.
    ///
    /// # Errors
    /// It is a list or a mapping.
    pub(in crate::discover) fn secret(&self) -> Result<Option<Secret>, DiscoverError> {
        Ok(self.text()?.map(Secret::new))
    }

    /// Whether it says yes; an absent field says no.
    ///
    /// # Errors
    /// It is neither.
    pub(in crate::discover) fn yes(&self) -> Result<bool, DiscoverError> {
        match self.text()?.map(str::to_ascii_lowercase).as_deref() {
            None | Some("false" | "no" | "off") => Ok(false),
            Some("true" | "yes" | "on") => Ok(true),
            Some(_) => Err(self.refuse("it is neither true nor false")),
        }
    }

    /// An error about this field, with the remedy of the file's kind. `reason` must not quote it.
    pub(in crate::discover) fn refuse(&self, reason: impl Into<String>) -> DiscoverError {
        self.refuse_with(reason, self.source.kind.remedy())
    }

    /// An error about this field.
    pub(in crate::discover) fn refuse_with(
        &self,
        reason: impl Into<String>,
        remedy: &'static str,
    ) -> DiscoverError {
        DiscoverError::Field {
            kind: self.source.kind,
            path: self.source.path.clone(),
            line: self.line(),
            field: match self.path.as_str() {
                "" => "the top level".to_owned(),
                path => path.to_owned(),
            },
            reason: reason.into(),
            remedy,
        }
    }

    fn expected(&self, expected: &str, value: &Value) -> DiscoverError {
        self.refuse(format!(
            "it is {} where {expected} is expected",
            value.shape()
        ))
    }
}
