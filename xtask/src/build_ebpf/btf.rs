//! Makes the type names in BTF acceptable to kernels.
//!
//! The kernel refuses a whole object for one name that is not an identifier of C, such as `MaybeUninit<u32>`; bpf-linker
//! 0.10 rewrites those of structs, but not of unions. The layout is that of include/uapi/linux/btf.h.

use anyhow::{Context, Result, ensure};

const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;

const KIND_INT: u32 = 1;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
const KIND_FUNC_PROTO: u32 = 13;
const KIND_VAR: u32 = 14;
const KIND_DATASEC: u32 = 15;
const KIND_DECL_TAG: u32 = 17;
const KIND_ENUM64: u32 = 19;

/// Replaces, in the names of structs and unions, each byte that no identifier has by `_`.
pub(super) fn sanitize_names(btf: &mut [u8]) -> Result<()> {
    let magic = u16::from_le_bytes([byte(btf, 0)?, byte(btf, 1)?]);
    ensure!(magic == MAGIC, "it does not start with BTF's magic number");
    let types = HEADER + word(btf, 8)?;
    let types_end = types + word(btf, 12)?;
    let strings = HEADER + word(btf, 16)?;
    let mut at = types;
    while at < types_end {
        let name = word(btf, at)?;
        let info = u32::try_from(word(btf, at + 4)?)?;
        let (kind, members) = ((info >> 24) & 0x1f, (info & 0xffff) as usize);
        if kind == KIND_STRUCT || kind == KIND_UNION {
            sanitize(btf, strings + name)?;
        }
        at += 12 + bytes_after(kind, members);
    }
    Ok(())
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

fn word(btf: &[u8], at: usize) -> Result<usize> {
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
