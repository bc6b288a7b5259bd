//! Reads BTF's types, and makes their names acceptable to kernels.
//!
//! The kernel refuses a whole object for one name that is not an identifier of C, such as `MaybeUninit<u32>`; bpf-linker
//! 0.10 rewrites those of structs, but not of unions. The layout is that of include/uapi/linux/btf.h.

use anyhow::{Context, Result, ensure};

const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;
/// Bytes that every type has: name, info, size or type.
const COMMON: usize = 12;

pub(super) const KIND_INT: u32 = 1;
pub(super) const KIND_PTR: u32 = 2;
pub(super) const KIND_ARRAY: u32 = 3;
pub(super) const KIND_STRUCT: u32 = 4;
pub(super) const KIND_UNION: u32 = 5;
pub(super) const KIND_ENUM: u32 = 6;
pub(super) const KIND_FUNC: u32 = 12;
pub(super) const KIND_FUNC_PROTO: u32 = 13;
pub(super) const KIND_VAR: u32 = 14;
const KIND_DATASEC: u32 = 15;
const KIND_DECL_TAG: u32 = 17;
pub(super) const KIND_ENUM64: u32 = 19;

/// One entry of the type section.
#[derive(Clone, Copy)]
pub(super) struct Type {
    /// Where its name begins in the whole BTF; an empty name belongs to an anonymous type.
    pub(super) name: usize,
    /// One of the kinds above.
    pub(super) kind: u32,
    /// How many members, parameters or values follow.
    pub(super) members: usize,
    /// Size in bytes, or the number of another type: depends on the kind.
    pub(super) size_or_type: usize,
    /// Where what follows its common part begins.
    pub(super) after: usize,
}

/// All types, in their order: the first has the number 1.
pub(super) fn types(btf: &[u8]) -> Result<Vec<Type>> {
    let magic = u16::from_le_bytes([byte(btf, 0)?, byte(btf, 1)?]);
    ensure!(magic == MAGIC, "it does not start with BTF's magic number");
    let begin = HEADER + word(btf, 8)?;
    let end = begin + word(btf, 12)?;
    let strings = strings(btf)?;
    let mut types = Vec::new();
    let mut at = begin;
    while at < end {
        let info = u32::try_from(word(btf, at + 4)?)?;
        let (kind, members) = ((info >> 24) & 0x1f, (info & 0xffff) as usize);
        types.push(Type {
            name: strings + word(btf, at)?,
            kind,
            members,
            size_or_type: word(btf, at + 8)?,
            after: at + COMMON,
        });
        at += COMMON + bytes_after(kind, members);
    }
    Ok(types)
}

/// Replaces, in the names of structs and unions, each byte that no identifier has by `_`.
pub(super) fn sanitize_names(btf: &mut [u8]) -> Result<()> {
    for found in types(btf)? {
        if found.kind == KIND_STRUCT || found.kind == KIND_UNION {
            sanitize(btf, found.name)?;
        }
    }
    Ok(())
}

/// Where the strings begin, that names are counted from.
pub(super) fn strings(btf: &[u8]) -> Result<usize> {
    Ok(HEADER + word(btf, 16)?)
}

/// The string that begins here, without its closing zero.
pub(super) fn string(btf: &[u8], start: usize) -> Result<String> {
    let rest = btf.get(start..).context("a name is out of bounds")?;
    let bytes: Vec<u8> = rest.iter().copied().take_while(|byte| *byte != 0).collect();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Bytes that follow the common part of a type.
fn bytes_after(kind: u32, members: usize) -> usize {
    match kind {
        KIND_INT | KIND_VAR | KIND_DECL_TAG => 4,
        KIND_ARRAY => 12,
        KIND_STRUCT | KIND_UNION | KIND_DATASEC | KIND_ENUM64 => 12 * members,
        KIND_ENUM | KIND_FUNC_PROTO => 8 * members,
        _ => 0,
    }
}

fn sanitize(btf: &mut [u8], start: usize) -> Result<()> {
    let name = btf.get_mut(start..).context("a name is out of bounds")?;
    for byte in name.iter_mut().take_while(|byte| **byte != 0) {
        if !byte.is_ascii_alphanumeric() {
            *byte = b'_';
        }
    }
    Ok(())
}

fn byte(btf: &[u8], at: usize) -> Result<u8> {
    btf.get(at).copied().context("it is cut short")
}

/// The 32-bit number at this place.
pub(super) fn word(btf: &[u8], at: usize) -> Result<usize> {
    let bytes = btf.get(at..at + 4).context("it is cut short")?;
    Ok(u32::from_le_bytes(bytes.try_into()?) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let strings = b"\0MaybeUninit<u32>\0int\0";
        let types: [u32; 3 + 3 + 4] = [
            1,
            0x0500_0001,
            4, // a union with one member
            0,
            2,
            0, //
            18,
            0x0100_0000,
            4,
            32, // an int
        ];
        let mut btf = Vec::new();
        btf.extend(MAGIC.to_le_bytes());
        btf.extend([1, 0]);
        for word in [24, 0, 40, 40, strings.len()] {
            btf.extend(u32::try_from(word).unwrap().to_le_bytes());
        }
        btf.extend(types.iter().flat_map(|word| word.to_le_bytes()));
        btf.extend(strings);
        btf
    }

    #[test]
    fn names_become_identifiers_and_nothing_else_changes() {
        let before = sample();
        let mut after = before.clone();
        sanitize_names(&mut after).unwrap();
        assert!(after.ends_with(b"\0MaybeUninit_u32_\0int\0"));
        assert_eq!(before[..64], after[..64]);
    }

    #[test]
    fn refuses_what_is_cut_short() {
        let sample = sample();
        assert!(sanitize_names(&mut sample[..50].to_vec()).is_err());
        assert!(sanitize_names(&mut []).is_err());
    }
}
