//! The flags and variables that a manifest gives its container.

use crate::discover::error::DiscoverError;
use crate::discover::origin::Origin;
use crate::discover::yaml::{Documents, Field};

/// A container's command line and environment.
pub(super) struct Flags<'a> {
    flags: Vec<(&'a str, Value<'a>)>,
    variables: Vec<(&'a str, Field<'a>)>,
}

/// A flag's or variable's value.
#[derive(Clone)]
pub(super) struct Value<'a> {
    text: &'a str,
    name: String,
    field: Field<'a>,
}

impl<'a> Flags<'a> {
    /// Finds the container that runs `program`.
    ///
    /// # Errors
    /// The manifest is no pod, or none of its containers runs that program directly.
    pub(super) fn of(documents: &'a Documents, program: &str) -> Result<Self, DiscoverError> {
        let pod = documents.first()?;
        let kind = pod.get("kind")?;
        if kind.text()? != Some("Pod") {
            return Err(kind.refuse("it is not Pod"));
        }
        let containers = pod.at(&["spec", "containers"])?;
        for container in containers.items()? {
            let mut words = Vec::new();
            for part in ["command", "args"] {
                for item in container.get(part)?.items()? {
                    if let Some(word) = item.text()? {
                        words.push((word, item));
                    }
                }
            }
            let named = container.get("name")?.text()? == Some(program);
            match words.first() {
                Some((first, _)) if first.rsplit('/').next() == Some(program) => {
                    words.remove(0);
                }
                // Without a command the image's own entry point runs, and only the flags stand here.
                Some((first, _)) if named && first.starts_with('-') => {}
                None if named => {}
                _ => continue,
            }
            return Ok(Self {
                flags: pair(&words),
                variables: variables(&container.get("env")?)?,
            });
        }
        Err(containers.refuse(format!("none of them runs {program} directly")))
    }

    /// A flag; the last one counts where it is given twice, as in Go's own parser.
    pub(super) fn flag(&self, name: &str) -> Option<Value<'a>> {
        self.flags
            .iter()
            .rev()
            .find(|(flag, _)| *flag == name)
            .map(|(_, value)| value.clone())
    }

    /// An etcd option: the flag, else the variable that etcd takes for it (`heartbeat-interval`:
    /// `ETCD_HEARTBEAT_INTERVAL`).
    ///
    /// # Errors
    /// The variable's value is not text.
    pub(super) fn option(&self, name: &str) -> Result<Option<Value<'a>>, DiscoverError> {
        if let Some(value) = self.flag(name) {
            return Ok(Some(value));
        }
        let variable = format!("ETCD_{}", name.to_ascii_uppercase().replace('-', "_"));
        for (name, field) in &self.variables {
            if *name == variable
                && let Some(text) = field.text()?
            {
                return Ok(Some(Value {
                    text,
                    name: variable,
                    field: field.clone(),
                }));
            }
        }
        Ok(None)
    }
}

/// `--name=value`, `--name value`, and both with one dash.
fn pair<'a>(words: &[(&'a str, Field<'a>)]) -> Vec<(&'a str, Value<'a>)> {
    let mut flags = Vec::new();
    let mut words = words.iter().peekable();
    while let Some((word, field)) = words.next() {
        let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            continue;
        };
        let (name, text) = match flag.split_once('=') {
            Some((name, text)) => (name, text),
            None => match words.next_if(|(next, _)| !next.starts_with('-')) {
                Some((text, _)) => (flag, *text),
                None => (flag, "true"),
            },
        };
        let value = Value {
            text: text.trim_matches('"'),
            name: format!("--{name}"),
            field: field.clone(),
        };
        flags.push((name, value));
    }
    flags
}

fn variables<'a>(env: &Field<'a>) -> Result<Vec<(&'a str, Field<'a>)>, DiscoverError> {
    let mut variables = Vec::new();
    for item in env.items()? {
        if let Some(name) = item.get("name")?.text()? {
            variables.push((name, item.get("value")?));
        }
    }
    Ok(variables)
}

impl<'a> Value<'a> {
    /// The text.
    ///
    /// # Errors
    /// It holds a variable, which only the kubelet can fill in.
    pub(super) fn text(&self) -> Result<&'a str, DiscoverError> {
        if self.text.contains("$(") {
            return Err(self.refuse("it holds a variable that only the kubelet fills in"));
        }
        Ok(self.text)
    }

    /// Where it stands: the file and the flag, which says more than its place in the list.
    pub(super) fn origin(&self) -> Origin {
        Origin::field(&self.field.source().path, self.name.clone())
    }

    /// An error about it.
    pub(super) fn refuse(&self, reason: impl std::fmt::Display) -> DiscoverError {
        self.field.refuse(format!("{}: {reason}", self.name))
    }
}
