//! Each thing that may differ is changed in the committed object, and must be found.

use object::build::elf::{Builder, SectionData};

use super::Contents;
use crate::workspace;

const COMMITTED: &str = "probe-user/bpf/joinprobe.bpf.o";

fn committed() -> Vec<u8> {
    std::fs::read(workspace::path(COMMITTED)).unwrap()
}

/// The committed object with the bytes of one section changed.
fn with_section(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let committed = committed();
    let mut builder = Builder::read(committed.as_slice()).unwrap();
    let section = builder
        .sections
        .iter_mut()
        .find(|section| section.name.as_slice() == name.as_bytes())
        .unwrap();
    let SectionData::Data(data) = &mut section.data else {
        panic!("{name} holds no data");
    };
    let mut bytes = data.to_vec();
    change(&mut bytes);
    *data = bytes.into();
    written(builder)
}

fn without_symbol(name: &str) -> Vec<u8> {
    let committed = committed();
    let mut builder = Builder::read(committed.as_slice()).unwrap();
    let symbol = builder
        .symbols
        .iter_mut()
        .find(|symbol| symbol.name.as_slice() == name.as_bytes())
        .unwrap();
    symbol.name = "another".into();
    written(builder)
}

fn written(builder: Builder) -> Vec<u8> {
    let mut bytes = Vec::new();
    builder.write(&mut bytes).unwrap();
    bytes
}

fn difference(changed: &[u8]) -> Option<String> {
    let committed = Contents::read(&committed()).unwrap();
    committed.difference(&Contents::read(changed).unwrap())
}

fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    let at = bytes
        .windows(old.len())
        .position(|window| window == old)
        .unwrap();
    bytes[at..at + new.len()].copy_from_slice(new);
}

#[test]
fn the_same_object_does_not_differ() {
    assert_eq!(difference(&committed()), None);
    assert_eq!(difference(&with_section("license", |_| {})), None);
}

#[test]
fn a_changed_licence_is_found() {
    let text = difference(&with_section("license", |bytes| {
        replace(bytes, b"GPL", b"BSD");
    }))
    .unwrap();
    assert!(text.contains("licence") && text.contains("BSD"), "{text}");
}

#[test]
fn a_missing_program_is_found() {
    let text = difference(&without_symbol("joinprobe_trial")).unwrap();
    assert!(text.contains("program"), "{text}");
}

#[test]
fn a_missing_map_is_found() {
    let text = difference(&without_symbol("CELLS")).unwrap();
    assert!(text.contains("map"), "{text}");
}

#[test]
fn a_changed_map_of_the_older_kind_is_found() {
    let text = difference(&with_section("maps", |bytes| bytes[12] ^= 1)).unwrap();
    assert!(text.contains("map AYA_LOGS"), "{text}");
}

#[test]
fn a_changed_setting_is_found() {
    let text = difference(&with_section(".rodata", |bytes| {
        for byte in bytes {
            *byte ^= 1;
        }
    }))
    .unwrap();
    assert!(text.contains("setting"), "{text}");
}

#[test]
fn a_renamed_member_is_found() {
    let text = difference(&with_section(".BTF", |bytes| {
        replace(bytes, b"max_entries\0", b"min_entries\0");
    }))
    .unwrap();
    assert!(text.contains("min_entries"), "{text}");
}

/// A map's capacity is the length of an array that its type points to.
#[test]
fn a_changed_capacity_is_found() {
    let text = difference(&with_section(".BTF", |bytes| {
        let array = crate::build_ebpf::btf::types(bytes)
            .unwrap()
            .into_iter()
            .find(|found| {
                found.kind == crate::build_ebpf::btf::KIND_ARRAY
                    && crate::build_ebpf::btf::word(bytes, found.after + 8).unwrap() == 8192
            })
            .unwrap();
        bytes[array.after + 8] = 1;
    }))
    .unwrap();
    assert!(text.contains("8193"), "{text}");
}
