//! The types that programs and maps are made of, in words: what BTF says about them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

use super::btf::{
    self, KIND_ARRAY, KIND_ENUM, KIND_ENUM64, KIND_FUNC, KIND_FUNC_PROTO, KIND_INT, KIND_PTR,
    KIND_STRUCT, KIND_UNION, KIND_VAR, Type,
};

/// Types of one object.
pub(super) struct Layout<'a> {
    btf: &'a [u8],
    types: Vec<Type>,
    /// Numbers of named types that were mentioned.
    mentioned: BTreeSet<usize>,
}

impl<'a> Layout<'a> {
    /// Reads a `.BTF` section.
    pub(super) fn read(btf: &'a [u8]) -> Result<Self> {
        Ok(Self {
            btf,
            types: btf::types(btf)?,
            mentioned: BTreeSet::new(),
        })
    }

    /// What the functions and variables of these names are made of: by name, in words, down to the integers. Two types
    /// of one name give two texts.
    pub(super) fn of(mut self, roots: &BTreeSet<String>) -> Result<BTreeMap<String, Vec<String>>> {
        let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for at in 1..=self.types.len() {
            let found = self.get(at)?;
            let name = self.name(found)?;
            if matches!(found.kind, KIND_FUNC | KIND_VAR) && roots.contains(&name) {
                let text = self.mention(found.size_or_type)?;
                texts.entry(name).or_default().push(text);
            }
        }
        let mut described = BTreeSet::new();
        while let Some(at) = self.mentioned.difference(&described).next().copied() {
            described.insert(at);
            let found = self.get(at)?;
            let text = self.describe(found)?;
            texts.entry(self.name(found)?).or_default().push(text);
        }
        for texts in texts.values_mut() {
            texts.sort();
            texts.dedup();
        }
        Ok(texts)
    }

    /// A type as it is written where it is used.
    fn mention(&mut self, at: usize) -> Result<String> {
        if at == 0 {
            return Ok("void".to_owned());
        }
        let found = self.get(at)?;
        match found.kind {
            KIND_PTR => Ok(format!("*{}", self.mention(found.size_or_type)?)),
            KIND_ARRAY => {
                let element = self.mention(btf::word(self.btf, found.after)?)?;
                Ok(format!(
                    "[{element}; {}]",
                    btf::word(self.btf, found.after + 8)?
                ))
            }
            KIND_FUNC_PROTO => {
                let parameters = self.members(found, 8)?;
                Ok(format!(
                    "fn({parameters}) {}",
                    self.mention(found.size_or_type)?
                ))
            }
            _ => {
                let name = self.name(found)?;
                if name.is_empty() {
                    return self.describe(found);
                }
                self.mentioned.insert(at);
                Ok(name)
            }
        }
    }

    /// A type as it is written where it is defined.
    fn describe(&mut self, found: Type) -> Result<String> {
        let size = found.size_or_type;
        match found.kind {
            KIND_INT => Ok(format!("integer of {size} bytes")),
            KIND_STRUCT => Ok(format!(
                "struct of {size} bytes {{{}}}",
                self.members(found, 12)?
            )),
            KIND_UNION => Ok(format!(
                "union of {size} bytes {{{}}}",
                self.members(found, 12)?
            )),
            KIND_ENUM | KIND_ENUM64 => Ok(format!("enum of {size} bytes")),
            // Typedefs and qualifiers.
            _ => self.mention(size),
        }
    }

    /// Members (12 bytes each, the last four their bit offset) or parameters (8 bytes each).
    fn members(&mut self, of: Type, width: usize) -> Result<String> {
        let mut texts = Vec::new();
        for index in 0..of.members {
            let at = of.after + index * width;
            let name = btf::word(self.btf, at)?;
            let name = btf::string(self.btf, btf::strings(self.btf)? + name)?;
            let kind = btf::word(self.btf, at + 4)?;
            let kind = self.mention(kind)?;
            texts.push(if width == 12 {
                format!("{name} at bit {}: {kind}", btf::word(self.btf, at + 8)?)
            } else {
                kind
            });
        }
        Ok(texts.join(", "))
    }

    fn get(&self, at: usize) -> Result<Type> {
        at.checked_sub(1)
            .and_then(|index| self.types.get(index))
            .copied()
            .with_context(|| format!("BTF has no type {at}"))
    }

    fn name(&self, of: Type) -> Result<String> {
        btf::string(self.btf, of.name)
    }
}
