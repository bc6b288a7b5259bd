//! joinprobe's own configuration file: flags by name.

use std::path::Path;

use super::error::{DiscoverError, Kind};
use super::origin::Origin;
use super::root::Root;
use super::yaml::{Documents, Field};

/// One key of the file.
pub struct Setting {
    /// The key: a flag without its dashes.
    pub key: String,
    /// Its values, in order; a key that holds no list has one.
    pub values: Vec<String>,
    /// Where it stands.
    pub origin: Origin,
    line: u64,
}

impl Setting {
    /// An error about this key. `reason` must not quote anything secret.
    #[must_use]
    pub fn refuse(&self, reason: String) -> DiscoverError {
        let path = self.origin.path().unwrap_or(Path::new("")).to_owned();
        DiscoverError::Field {
            kind: Kind::Config,
            path,
            line: self.line,
            field: self.key.clone(),
            reason,
            remedy: Kind::Config.remedy(),
        }
    }
}

/// Reads a configuration file.
///
/// # Errors
/// It is missing, not YAML, or a value is neither text, a number, yes or no, nor a list of such.
pub fn settings(path: &Path) -> Result<Vec<Setting>, DiscoverError> {
    let Some(text) = Root::default().read(Kind::Config, path)? else {
        return Err(DiscoverError::Unreadable {
            kind: Kind::Config,
            path: path.to_owned(),
            source: rustix::io::Errno::NOENT.into(),
        });
    };
    let documents = Documents::parse(&text)?;
    let mut settings = Vec::new();
    for top in documents.iter() {
        for (key, field) in top.entries()? {
            let values = values(&field)?;
            if !values.is_empty() {
                settings.push(Setting {
                    key: key.to_owned(),
                    values,
                    origin: field.origin(),
                    line: field.line(),
                });
            }
        }
    }
    Ok(settings)
}

fn values(field: &Field<'_>) -> Result<Vec<String>, DiscoverError> {
    let items = if field.is_list() {
        field.items()?
    } else {
        vec![field.clone()]
    };
    let mut values = Vec::new();
    for item in items {
        values.extend(item.text()?.map(str::to_owned));
    }
    Ok(values)
}
