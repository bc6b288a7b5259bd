//! Where fields are in the running kernel's structures, by its own type information.
//!
//! Rust's eBPF has no relocations that would find out at load time, so the offsets travel as settings. The format is
//! that of include/uapi/linux/btf.h.

use std::io;
use std::path::Path;

use super::file_view::FileView;

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;

const KIND_INT: u32 = 1;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
const KIND_VOLATILE: u32 = 9;
const KIND_CONST: u32 = 10;
const KIND_FUNC_PROTO: u32 = 13;
const KIND_VAR: u32 = 14;
const KIND_DATASEC: u32 = 15;
const KIND_DECL_TAG: u32 = 17;
const KIND_ENUM64: u32 = 19;

/// `BTF_KIND_TYPEDEF`
pub(super) const TYPEDEF: u32 = 8;
/// `BTF_KIND_FUNC`
pub(super) const FUNC: u32 = 12;

/// How deep anonymous structures are searched; kernels nest them two or three deep.
const DEPTH: u32 = 8;

/// The types of a kernel.
pub(super) struct KernelTypes {
    data: FileView,
    /// Where each type starts in `data`; the type with id n is at index n - 1.
    types: Vec<u32>,
    /// Where each structure starts, in the same order.
    structures: Vec<u32>,
    strings: usize,
}

impl KernelTypes {
    /// Those of the running kernel.
    ///
    /// # Errors
    /// The kernel was built without (`CONFIG_DEBUG_INFO_BTF`), or they are damaged.
    pub(super) fn running() -> io::Result<Self> {
        Self::read(Path::new(VMLINUX))
    }

    fn read(path: &Path) -> io::Result<Self> {
        Self::parse(FileView::of(path)?)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "damaged type information"))
    }

    pub(super) fn parse(data: FileView) -> Option<Self> {
        let magic = u16::from_ne_bytes(data.get(..2)?.try_into().ok()?);
        if magic != MAGIC {
            return None;
        }
        let header = word(&data, 4)? as usize;
        let first = header.checked_add(word(&data, 8)? as usize)?;
        let end = first.checked_add(word(&data, 12)? as usize)?;
        let strings = header.checked_add(word(&data, 16)? as usize)?;
        let (mut types, mut structures) = (Vec::new(), Vec::new());
        let mut at = first;
        while at < end {
            let start = u32::try_from(at).ok()?;
            types.push(start);
            let info = word(&data, at + 4)?;
            if kind(info) == KIND_STRUCT {
                structures.push(start);
            }
            at = at.checked_add(12 + bytes_after(kind(info), members(info)))?;
        }
        Some(Self {
            data,
            types,
            structures,
            strings,
        })
    }

    /// The id of the type of this kind (`BTF_KIND_*`) and name.
    pub(super) fn id(&self, wanted: u32, name: &str) -> Option<u32> {
        let index = self.types.iter().position(|&at| {
            let at = at as usize;
            self.word(at + 4).is_some_and(|info| kind(info) == wanted) && self.is_name(at, name)
        })?;
        u32::try_from(index + 1).ok()
    }

    /// The offset of a member of a structure, in bytes; also of one inside its anonymous structures and unions.
    pub(super) fn offset(&self, structure: &str, member: &str) -> Option<u32> {
        let bits = self
            .structures
            .iter()
            .map(|&at| at as usize)
            .filter(|&at| self.is_name(at, structure))
            .find_map(|at| self.member_bits(at, member, DEPTH))?;
        bits.is_multiple_of(8).then_some(bits / 8)
    }

    fn member_bits(&self, structure: usize, member: &str, depth: u32) -> Option<u32> {
        let info = self.word(structure + 4)?;
        if depth == 0 || !matches!(kind(info), KIND_STRUCT | KIND_UNION) {
            return None;
        }
        // With the kind flag, the upper byte is the size of a bit field.
        let mask = if info >> 31 == 1 {
            0x00ff_ffff
        } else {
            u32::MAX
        };
        (0..members(info)).find_map(|index| {
            let at = structure + 12 + 12 * index;
            let bits = self.word(at + 8)? & mask;
            if self.is_name(at, member) {
                return Some(bits);
            }
            if self.word(at)? != 0 {
                return None;
            }
            let inner = self.resolve(self.word(at + 4)?)?;
            Some(bits + self.member_bits(inner, member, depth - 1)?)
        })
    }

    /// Where a type starts, beyond its names and qualifiers.
    fn resolve(&self, mut id: u32) -> Option<usize> {
        for _ in 0..DEPTH {
            let at = *self.types.get(id.checked_sub(1)? as usize)? as usize;
            match kind(self.word(at + 4)?) {
                TYPEDEF | KIND_VOLATILE | KIND_CONST => id = self.word(at + 8)?,
                _ => return Some(at),
            }
        }
        None
    }

    /// Whether what starts here has this name.
    fn is_name(&self, at: usize, name: &str) -> bool {
        let matches = || {
            let start = self.strings.checked_add(self.word(at)? as usize)?;
            let end = start.checked_add(name.len())?;
            let found = self.data.get(start..end)?;
            Some(found == name.as_bytes() && self.data.get(end) == Some(&0))
        };
        matches().unwrap_or(false)
    }

    fn word(&self, at: usize) -> Option<u32> {
        word(&self.data, at)
    }
}

fn kind(info: u32) -> u32 {
    (info >> 24) & 0x1f
}

fn members(info: u32) -> usize {
    (info & 0xffff) as usize
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

fn word(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct sock { int a; union { struct { int b; int sk_err; }; }; };` with a type name in between.
    fn sample() -> Vec<u8> {
        let strings = b"\0int\0sock\0a\0b\0sk_err\0";
        let (int, sock, a, b, sk_err) = (1, 5, 10, 12, 14);
        let record = |kind: u32, members: u32| kind << 24 | members;
        let types = [
            // 1: int
            int,
            record(KIND_INT, 0),
            4,
            32,
            // 2: the inner structure
            0,
            record(KIND_STRUCT, 2),
            8,
            b,
            1,
            0,
            sk_err,
            1,
            32,
            // 3: const of it
            0,
            record(KIND_CONST, 0),
            2,
            // 4: the union
            0,
            record(KIND_UNION, 1),
            8,
            0,
            3,
            0,
            // 5: the outer structure
            sock,
            record(KIND_STRUCT, 2),
            12,
            a,
            1,
            0,
            0,
            4,
            32,
        ];
        let length = |count: usize| u32::try_from(count).unwrap().to_ne_bytes();
        let mut data = Vec::new();
        data.extend(MAGIC.to_ne_bytes());
        data.extend([1, 0]);
        data.extend(length(24));
        data.extend(length(0));
        data.extend(length(4 * types.len()));
        data.extend(length(4 * types.len()));
        data.extend(length(strings.len()));
        data.extend(types.iter().flat_map(|word| word.to_ne_bytes()));
        data.extend(strings);
        data
    }

    #[test]
    fn finds_members_in_anonymous_structures() {
        let types = KernelTypes::parse(FileView::Copied(sample())).unwrap();
        assert_eq!(types.offset("sock", "a"), Some(0));
        assert_eq!(types.offset("sock", "b"), Some(4));
        assert_eq!(types.offset("sock", "sk_err"), Some(8));
        assert_eq!(types.offset("sock", "sk_er"), None);
        assert_eq!(types.offset("soc", "a"), None);
        assert_eq!(types.offset("int", "a"), None);
    }

    #[test]
    fn damaged_input_is_no_offset() {
        let whole = sample();
        for length in 0..whole.len() {
            if let Some(types) = KernelTypes::parse(FileView::Copied(whole[..length].to_vec())) {
                let _ = types.offset("sock", "sk_err");
            }
        }
        // A structure that contains itself ends too.
        let mut looped = whole.clone();
        let inner_type = 24 + 4 * (4 + 9 + 3 + 4);
        looped[inner_type..inner_type + 4].copy_from_slice(&4_u32.to_ne_bytes());
        let types = KernelTypes::parse(FileView::Copied(looped)).unwrap();
        assert_eq!(types.offset("sock", "sk_err"), None);
    }

    #[test]
    fn the_running_kernel_has_a_socket_error() {
        // Kernels without type information exist; what is read must make sense.
        if let Ok(types) = KernelTypes::running() {
            let offset = types.offset("sock", "sk_err").unwrap();
            assert!(offset > 0 && offset < 2048, "{offset}");
            assert!(types.offset("tcp_sock", "srtt_us").unwrap() > offset);
        }
    }
}
