# Recipes for `just`; each is one command that can be typed as well.

# List the recipes.
default:
    @just --list

# Formatting and lints.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Every test, or those of one room: `just test idxd`.
test room="":
    tests/run {{ if room == "" { "--workspace" } else if room == "dray" { "-p dray" } else { "-p dray-" + room } }}

# The library's four movers beside each other: every operation with every status, batches, faults, queues.
conformance:
    cargo test -p dray-cli --test it -- library_table::four_movers_conform --nocapture

# The benchmarks of one room.
bench room:
    cargo bench -p {{ if room == "dray" { "dray" } else { "dray-" + room } }}

# The report of every figure.
figures *args:
    cargo run --release -- figures {{ args }}

# Documentation without warnings.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
