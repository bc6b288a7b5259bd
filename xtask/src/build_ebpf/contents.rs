//! What an object holds, to compare two that different compilers made.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::layout::Layout;
use super::provenance::hex;

/// Programs, maps, settings, types and licence of an object. Instructions are not among it: compilers differ in them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Contents {
    /// What it is (`map CELLS`), and what is to be known of it, in words.
    facts: BTreeMap<String, String>,
}

impl Contents {
    /// Reads an object.
    ///
    /// # Errors
    /// When the bytes are no object, or one without BTF.
    pub(super) fn read(object: &[u8]) -> Result<Self> {
        let file = object::File::parse(object)?;
        let mut facts = BTreeMap::new();
        if let Some(section) = file.section_by_name("license") {
            let licence = String::from_utf8_lossy(section.data()?).into_owned();
            facts.insert("licence".to_owned(), licence.trim_matches('\0').to_owned());
        }
        let mut typed = BTreeSet::new();
        for symbol in file.symbols().filter(ObjectSymbol::is_global) {
            let Some(index) = symbol.section_index() else {
                continue;
            };
            let section = file.section_by_index(index)?;
            let name = symbol.name()?;
            let value = || -> Result<String> {
                let bytes = section
                    .data_range(symbol.address(), symbol.size())?
                    .with_context(|| format!("{name} lies outside its section"))?;
                Ok(hex(bytes))
            };
            let (what, text) = match (section.name()?, symbol.kind()) {
                (".maps", _) => ("map", String::new()),
                // Of the older kind, whose definition is a struct of numbers.
                ("maps", _) => ("map", value()?),
                (".rodata" | ".data", _) => ("setting", value()?),
                (".bss", _) => ("setting", format!("{} bytes", symbol.size())),
                (".text", _) => continue,
                (section, SymbolKind::Text) => ("program", section.to_owned()),
                _ => continue,
            };
            if what != "setting" {
                typed.insert(name.to_owned());
            }
            facts.insert(format!("{what} {name}"), text);
        }
        let btf = file.section_by_name(".BTF").context("it has no BTF")?;
        for (name, texts) in Layout::read(btf.data()?)?.of(&typed)? {
            facts.insert(format!("type of {name}"), texts.join(" or "));
        }
        Ok(Self { facts })
    }

    /// The first difference from what the source gives, in words.
    pub(super) fn difference(&self, rebuilt: &Self) -> Option<String> {
        let names: BTreeSet<&String> = self.facts.keys().chain(rebuilt.facts.keys()).collect();
        names.into_iter().find_map(
            |name| match (self.facts.get(name), rebuilt.facts.get(name)) {
                (Some(ours), Some(theirs)) if ours == theirs => None,
                (Some(ours), Some(theirs)) => Some(format!(
                    "its {name} is `{ours}`, the source gives `{theirs}`"
                )),
                (Some(_), None) => Some(format!("the source gives no {name}")),
                _ => Some(format!("it has no {name}")),
            },
        )
    }
}

#[cfg(test)]
mod tests;
