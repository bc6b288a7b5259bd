//! Programs written instruction by instruction, as no compiler for them is on every machine.

use anyhow::Result;
use object::write::{Object, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope,
};

/// One eBPF instruction (RFC 9669, section 3), little endian.
pub(super) const fn instruction(opcode: u8, registers: u8, offset: i16, immediate: i32) -> [u8; 8] {
    let (o, i) = (offset.to_le_bytes(), immediate.to_le_bytes());
    [opcode, registers, o[0], o[1], i[0], i[1], i[2], i[3]]
}

/// An object file of one program, named `name`; the section's name tells the loader its type.
pub(super) fn object_file(section: &str, name: &str, code: &[[u8; 8]]) -> Result<Vec<u8>> {
    let code = code.concat();
    let mut object = Object::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::Little);
    let section = object.add_section(Vec::new(), section.into(), SectionKind::Text);
    object.append_section_data(section, &code, 8);
    object.add_symbol(Symbol {
        name: name.into(),
        value: 0,
        size: code.len().try_into()?,
        kind: SymbolKind::Text,
        scope: SymbolScope::Dynamic,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    });
    let license = object.add_section(Vec::new(), b"license".to_vec(), SectionKind::Data);
    object.append_section_data(license, b"GPL\0", 1);
    Ok(object.write()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_eight_bytes_little_endian() {
        assert_eq!(
            instruction(0x55, 0x02, 2, -1),
            [0x55, 0x02, 2, 0, 0xff, 0xff, 0xff, 0xff]
        );
    }
}
