//! The types of the running kernel that tracing programs name as what they attach to.

use aya::{Btf, Endianness};

use super::btf::{FUNC, KernelTypes, TYPEDEF};

/// What a tracing program attaches to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// The tracepoint that every segment of an established connection passes (`CONFIG_BPF_EVENTS`).
    TcpProbe,
    /// The list of TCP sockets (5.9, `CONFIG_PROC_FS`).
    Sockets,
    /// The list of loaded programs (5.10).
    Programs,
}

impl Point {
    const ALL: [Self; 3] = [Self::TcpProbe, Self::Sockets, Self::Programs];

    /// Kind and name of its type.
    fn type_of(self) -> (u32, &'static str) {
        match self {
            Self::TcpProbe => (TYPEDEF, "btf_trace_tcp_probe"),
            Self::Sockets => (FUNC, "bpf_iter_tcp"),
            Self::Programs => (FUNC, "bpf_iter_bpf_prog"),
        }
    }

    /// For people.
    fn name(self) -> &'static str {
        match self {
            Self::TcpProbe => "tracepoint tcp_probe",
            Self::Sockets => "iterator over TCP sockets",
            Self::Programs => "iterator over loaded programs",
        }
    }
}

/// The first words of a `struct btf_header` (include/uapi/linux/btf.h): magic, version and flags; its length in bytes.
const MAGIC_VERSION_1: u32 = 0x0001_eb9f;
const HEADER_LENGTH: u32 = 24;
/// Bytes of a type without members.
const TYPE_LENGTH: u32 = 12;
/// A type without a name or contents (`BTF_KIND_FWD`).
const FILLER: [u32; 3] = [0, 7 << 24, 0];

/// The kernel's ids of those types; 0 where it has none of that name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AttachPoints([u32; Point::ALL.len()]);

impl AttachPoints {
    /// Those of the running kernel.
    pub(super) fn find(types: &KernelTypes) -> Self {
        Self(Point::ALL.map(|point| {
            let (kind, name) = point.type_of();
            types.id(kind, name).unwrap_or(0)
        }))
    }

    /// Nothing if programs can attach to `point`.
    ///
    /// # Errors
    /// This kernel has no such thing; for people.
    pub(super) fn has(self, point: Point) -> Result<(), String> {
        if self.0[point as usize] == 0 {
            return Err(format!(
                "this kernel has no {} for programs to attach to",
                point.name()
            ));
        }
        Ok(())
    }

    /// Type information in which these types have the kernel's ids, and no other type has a name.
    ///
    /// Loading a tracing program takes an id of it and nothing else. Reading all that the kernel has instead takes
    /// 15 MB and a good part of the time to start, for each program anew.
    ///
    /// # Errors
    /// It cannot be read back; for people.
    pub(super) fn as_types(self) -> Result<Btf, String> {
        let bytes = self.encoded().ok_or("too many types")?;
        Btf::parse(&bytes, Endianness::default()).map_err(|error| error.to_string())
    }

    /// Header, types and names in the kernel's format and byte order; `None` if that takes more than 4 GB.
    fn encoded(self) -> Option<Vec<u8>> {
        let count = self.0.into_iter().max()?;
        let length = count.checked_mul(TYPE_LENGTH)?;
        let mut types = vec![FILLER; usize::try_from(count).ok()?];
        // The first name is the empty one.
        let mut names = vec![0];
        for (id, (kind, name)) in self.0.into_iter().zip(Point::ALL.map(Point::type_of)) {
            // Ids count from 1.
            let index = usize::try_from(id).ok()?.wrapping_sub(1);
            if let Some(entry) = types.get_mut(index) {
                *entry = [u32::try_from(names.len()).ok()?, kind << 24, 0];
                names.extend_from_slice(name.as_bytes());
                names.push(0);
            }
        }
        let names_length = u32::try_from(names.len()).ok()?;
        let header = [
            MAGIC_VERSION_1,
            HEADER_LENGTH,
            0,
            length,
            length,
            names_length,
        ];
        let words = header.iter().chain(types.as_flattened());
        let mut encoded: Vec<u8> = words.flat_map(|word| word.to_ne_bytes()).collect();
        encoded.append(&mut names);
        Some(encoded)
    }
}

#[cfg(test)]
mod tests {
    use super::super::file_view::FileView;
    use super::*;

    #[test]
    fn ids_are_kept_and_absent_types_stay_absent() {
        let points = AttachPoints([70_000, 0, 3]);
        let encoded = FileView::Copied(points.encoded().unwrap());
        let read = KernelTypes::parse(encoded).unwrap();
        assert_eq!(AttachPoints::find(&read), points);
        points.as_types().unwrap();
        assert_eq!(points.has(Point::TcpProbe), Ok(()));
        assert_eq!(points.has(Point::Programs), Ok(()));
        let absent = points.has(Point::Sockets).unwrap_err();
        assert!(absent.contains("iterator over TCP sockets"), "{absent}");
        AttachPoints::default().as_types().unwrap();
    }

    #[test]
    fn the_running_kernel_has_the_tracepoint() {
        // Kernels without type information exist.
        if let Ok(types) = KernelTypes::running() {
            assert_eq!(AttachPoints::find(&types).has(Point::TcpProbe), Ok(()));
        }
    }
}
