//! Turns the linker's object into the one that is committed: without debug information, with type names that kernels
//! accept.

use anyhow::{Context, Result};
use object::build::Bytes;
use object::build::elf::{Builder, SectionData};

use super::btf;

/// Finishes an object.
pub(super) fn run(object: &[u8]) -> Result<Vec<u8>> {
    let mut builder = Builder::read(object)?;
    for section in &mut builder.sections {
        let name = section.name.to_string();
        // BTF has been made from it; it is ten times the rest.
        if name.starts_with(".debug") || name.starts_with(".rel.debug") {
            section.delete = true;
            continue;
        }
        if name == ".BTF"
            && let SectionData::Data(data) = &mut section.data
        {
            let mut bytes = data.to_vec();
            btf::sanitize_names(&mut bytes).context("cannot read the BTF")?;
            *data = Bytes::from(bytes);
        }
    }
    builder.delete_orphans();
    // LLVM keeps the names of sections and symbols in one table; the builder wants one for each.
    let strings = builder.sections.add();
    strings.name = ".shstrtab".into();
    strings.sh_type = object::elf::SHT_STRTAB;
    strings.sh_addralign = 1;
    strings.data = SectionData::SectionString;
    builder.set_section_sizes();
    let mut finished = Vec::new();
    builder.write(&mut finished)?;
    Ok(finished)
}
