//! `dray.h` is what cbindgen makes of this crate.

use std::path::Path;

#[test]
fn the_header_is_that_of_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    let source = root.join("src");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in [
        "types.rs",
        "error.rs",
        "handle.rs",
        "mover.rs",
        "operations.rs",
        "channels.rs",
    ] {
        builder = builder.with_src(source.join(file));
    }
    let mut made = Vec::new();
    builder.generate().expect("a header").write(&mut made);
    let made = String::from_utf8(made).expect("text");
    let path = root.join("include/dray.h");
    if std::env::var_os("DRAY_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).expect("the header can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let same = committed == made;
    assert!(
        same,
        "include/dray.h is not that of the source: see its first lines"
    );
}
