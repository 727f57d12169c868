//! What the shared library exports.

use std::process::Command;

use crate::toolchain::{pkg_config, prefix};

#[test]
fn only_versioned_dray_symbols_are_exported() {
    let library = prefix().join("lib/libdray.so");
    let output = Command::new("readelf")
        .args(["--dyn-syms", "--wide"])
        .arg(&library)
        .output()
        .expect("binutils");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let defined = text
        .lines()
        .filter(|line| line.contains(" DEFAULT ") && !line.contains(" UND "));
    let names = defined.filter_map(|line| line.split_whitespace().last());
    let names: Vec<&str> = names.filter(|name| *name != "DRAY_1").collect();
    let header = include_str!("../../include/dray.h");
    for name in &names {
        let plain = name.strip_suffix("@@DRAY_1");
        let plain = plain.unwrap_or_else(|| panic!("{name} has no version"));
        assert!(header.contains(&format!("{plain}(")), "{plain} is exported");
    }
    let declared = ["\nint dray_", "\nconst char *dray_", "\nuint32_t dray_"];
    let declared: usize = declared.iter().map(|of| header.matches(of).count()).sum();
    assert_eq!(names.len(), declared, "{names:?}");
    let output = Command::new("readelf")
        .arg("-d")
        .arg(&library)
        .output()
        .expect("binutils");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("[libdray.so.1]"), "{text}");
    assert_eq!(pkg_config(&["--modversion"]), [env!("CARGO_PKG_VERSION")]);
}
