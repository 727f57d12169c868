//! Targets for hostile input.
//!
//! Every [`Target`] is a function of any bytes: it makes something of them (a descriptor, a sequence
//! of register writes, a file), runs it, and panics if the result violates an invariant.
//! The coverage-guided fuzzer (`fuzz/`, with cargo-fuzz), the test with fixed seeds and
//! the command `dray-fuzz` all run these functions.

mod books;
mod descriptor;
mod descriptors;
mod draw;
mod fabrics;
mod files;
mod flows;
mod footprint;
mod image;
mod messages;
mod operations;
mod profiles;
mod recordings;
mod registers;
mod scene;
mod seeds;
mod tally;
mod text;
mod vhost;

pub use descriptors::descriptors;
pub use fabrics::fabrics;
pub use files::files;
pub use flows::flows;
pub use messages::messages;
pub use operations::operations;
pub use profiles::profiles;
pub use recordings::recordings;
pub use registers::registers;
pub use seeds::Inputs;
pub use tally::Tally;
pub use vhost::{vhost_messages, vhost_packed, vhost_split};

/// Something that hostile input is tried on.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, also that of the fuzzer's binary.
    pub name: &'static str,
    /// Panics if an invariant is violated.
    pub run: fn(&[u8]),
    /// Longest input that says anything new.
    pub max_bytes: usize,
}

/// All there are.
pub const TARGETS: &[Target] = &[
    Target {
        name: "descriptors",
        run: |bytes| descriptors(bytes, &mut Tally::default()),
        max_bytes: 2048,
    },
    Target {
        name: "registers",
        run: registers,
        max_bytes: 4096,
    },
    Target {
        name: "profiles",
        run: profiles,
        max_bytes: 2048,
    },
    Target {
        name: "fabrics",
        run: fabrics,
        max_bytes: 4096,
    },
    Target {
        name: "flows",
        run: flows,
        max_bytes: 2048,
    },
    Target {
        name: "files",
        run: files,
        max_bytes: 2048,
    },
    Target {
        name: "recordings",
        run: recordings,
        max_bytes: 1024,
    },
    Target {
        name: "messages",
        run: messages,
        max_bytes: 4096,
    },
    Target {
        name: "operations",
        run: operations,
        max_bytes: 4096,
    },
    Target {
        name: "vhost_messages",
        run: vhost_messages,
        max_bytes: 2048,
    },
    Target {
        name: "vhost_split",
        run: vhost_split,
        max_bytes: 2048,
    },
    Target {
        name: "vhost_packed",
        run: vhost_packed,
        max_bytes: 2048,
    },
];
