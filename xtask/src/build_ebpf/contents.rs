//! What an object holds, to compare two that different compilers made.

use std::collections::BTreeSet;

use anyhow::Result;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

/// Programs, maps, settings and licence of an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Contents {
    programs: BTreeSet<String>,
    maps: BTreeSet<String>,
    globals: BTreeSet<String>,
    licence: Vec<u8>,
}

impl Contents {
    /// Reads an object.
    pub(super) fn read(object: &[u8]) -> Result<Self> {
        let file = object::File::parse(object)?;
        let mut contents = Self {
            programs: BTreeSet::new(),
            maps: BTreeSet::new(),
            globals: BTreeSet::new(),
            licence: Vec::new(),
        };
        if let Some(section) = file.section_by_name("license") {
            contents.licence = section.data()?.to_vec();
        }
        for symbol in file.symbols().filter(ObjectSymbol::is_global) {
            let Some(index) = symbol.section_index() else {
                continue;
            };
            let section = file.section_by_index(index)?;
            let section = section.name()?;
            let name = symbol.name()?.to_owned();
            match (section, symbol.kind()) {
                ("maps" | ".maps", _) => contents.maps.insert(name),
                (".rodata" | ".data" | ".bss", _) => contents.globals.insert(name),
                (".text", _) => false,
                (_, SymbolKind::Text) => contents.programs.insert(format!("{section} {name}")),
                _ => false,
            };
        }
        Ok(contents)
    }

    /// The first difference from another object's contents, in words.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        for (what, ours, theirs) in [
            ("programs", &self.programs, &other.programs),
            ("maps", &self.maps, &other.maps),
            ("settings", &self.globals, &other.globals),
        ] {
            if ours != theirs {
                return Some(format!(
                    "it has the {what} {ours:?}, the source gives {theirs:?}"
                ));
            }
        }
        (self.licence != other.licence).then(|| "its licence is another".to_owned())
    }
}
