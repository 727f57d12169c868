//! The published tables of this project are read as they stand.

use std::path::Path;

use dray_experiment::ReferenceTable;

#[test]
fn every_published_table_loads() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reference");
    let mut tables = 0;
    let mut refused = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            tables += 1;
            refused.extend(
                ReferenceTable::load(&path)
                    .err()
                    .map(|error| error.to_string()),
            );
        }
    }
    assert!(tables > 0);
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
