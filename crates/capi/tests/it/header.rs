//! `dray.h` is what cbindgen makes of this crate.

use std::path::Path;

use crate::toolchain::{C, CPP, compile};

/// As C89 takes it: no comments with `//`, no comma at the end of an enum. Comments have no links and
/// headings of rustdoc.
fn for_c(header: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut comment: Vec<String> = Vec::new();
    for line in header.lines() {
        let text = line.trim_start();
        let indent = &line[..line.len() - text.len()];
        if let Some(text) = text.strip_prefix("//") {
            assert!(!text.contains("*/"), "{text}");
            comment.push(without_rustdoc(text));
            continue;
        }
        lines.extend(block(&mut comment, indent));
        let ends_a_list = text.starts_with('}');
        if let Some(last) = lines.last_mut().filter(|_| ends_a_list) {
            last.truncate(last.trim_end_matches(',').len());
        }
        lines.push(match line.split_once("//") {
            Some((code, text)) => format!("{}/*{text} */", code),
            None => line.to_owned(),
        });
    }
    lines.push(String::new());
    lines.join("\n")
}

/// The lines of a comment as one of C.
fn block(comment: &mut Vec<String>, indent: &str) -> Vec<String> {
    let count = comment.len();
    let lines = comment.drain(..).enumerate();
    let lines = lines.map(|(n, text)| {
        let start = if n == 0 { "/*" } else { " *" };
        let end = if n + 1 == count { " */" } else { "" };
        format!("{indent}{start}{text}{end}")
    });
    lines.collect()
}

/// A line of a comment, without `//`.
fn without_rustdoc(line: &str) -> String {
    let mut text = String::new();
    let mut rest = match line {
        " # Errors" => " Errors:",
        " # Safety" => " The caller promises:",
        line => line,
    };
    while let Some((before, link)) = rest.split_once("[`") {
        let (name, after) = link.split_once("`]").expect("a link ends in its line");
        text.push_str(before);
        text.push_str(name);
        // Of a path, too.
        rest = match after.strip_prefix('(') {
            Some(path) => path.split_once(')').expect("a path ends").1,
            None => after,
        };
    }
    text + rest
}

#[test]
fn the_header_is_generated_from_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    let source = root.join("src");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in [
        "types.rs",
        "channel_types.rs",
        "error.rs",
        "handle.rs",
        "open.rs",
        "channels.rs",
        "mover.rs",
        "enqueue.rs",
        "operations.rs",
        "integrity.rs",
        "outcome.rs",
        "page_types.rs",
        "pages.rs",
        "queues.rs",
        "request.rs",
        "shared.rs",
    ] {
        builder = builder.with_src(source.join(file));
    }
    let mut made = Vec::new();
    builder.generate().expect("a header").write(&mut made);
    let made = for_c(&String::from_utf8(made).expect("text"));
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

/// C and C++ lay structures out as the library does.
#[test]
fn structures_have_the_same_layout_in_c_and_rust() {
    use std::fmt::Write;
    let sizes = [
        ("dray_options", size_of::<dray_c::Options>(), 40),
        (
            "dray_channels_options",
            size_of::<dray_c::ChannelsOptions>(),
            96,
        ),
        ("dray_cost_model", size_of::<dray_c::CostModel>(), 56),
        ("dray_dif", size_of::<dray_c::Dif>(), 32),
        ("dray_completion", size_of::<dray_c::Completion>(), 64),
        ("dray_outcome", size_of::<dray_c::Outcome>(), 96),
        (
            "dray_excluded_queue",
            size_of::<dray_c::ExcludedQueue>(),
            48,
        ),
        ("dray_page", size_of::<dray_c::Page>(), 24),
        (
            "dray_page_list_options",
            size_of::<dray_c::PageOptions>(),
            40,
        ),
        (
            "dray_page_list_statistics",
            size_of::<dray_c::PageStatistics>(),
            72,
        ),
        ("dray_page_state", size_of::<dray_c::PageState>(), 24),
        ("dray_page_list_row", size_of::<dray_c::PageRow>(), 32),
        ("dray_page_list_report", size_of::<dray_c::PageReport>(), 40),
        ("dray_tags", size_of::<dray_c::Tags>(), 8),
        ("dray_queue", size_of::<dray_c::Queue>(), 320),
        ("dray_op", size_of::<dray_c::Op>(), 256),
        ("dray_request", size_of::<dray_c::Request>(), 120),
        ("dray_vector", size_of::<dray_c::Vector>(), 16),
    ];
    let mut text = "#include <dray.h>\n".to_owned();
    for (name, size, promised) in sizes {
        assert_eq!(
            size, promised,
            "{name}: programs are compiled with this size"
        );
        let _ = writeln!(
            text,
            "typedef char {name}_is[sizeof(struct {name}) == {size} ? 1 : -1];"
        );
    }
    text.push_str("int main(void) { return 0; }\n");
    let header = include_str!("../../include/dray.h");
    assert_eq!(
        header.matches("typedef struct dray_").count(),
        sizes.len() + 1
    );
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("sizes.c");
    std::fs::write(&source, text).expect("a file");
    for compiler in [C, CPP] {
        compile(compiler, &source, true);
    }
}

/// Enumerations that dray.hpp defines have all values of dray.h.
#[test]
fn the_cpp_header_has_every_constant_and_every_function() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect(name);
    let header = read("dray.h");
    let cpp = read("dray_types.hpp") + &read("dray.hpp");
    let words = header.lines().filter_map(|line| {
        let (word, _) = line.trim().split_once(" = ")?;
        let of_cpp = [
            "BACKEND",
            "EXECUTOR",
            "CORE_REASON",
            "QUEUE_LOST_REASON",
            "REQUIRE",
            "CHOICE",
            "PAGE_FAULT",
            "FULL_QUEUE",
            "LOST_QUEUE_POLICY",
            "PAGE_REASON",
            "PAGE_SIZE",
            "WAIT_POLICY",
            "FLAG",
            "OPERATION",
        ];
        let rest = word.strip_prefix("DRAY_")?;
        of_cpp.iter().any(|of| rest.starts_with(of)).then_some(word)
    });
    let words: Vec<&str> = words.collect();
    assert!(words.len() >= 44, "{words:?}");
    let calls = header.lines().filter_map(|line| {
        let (_, declared) = line.split_once("dray_")?;
        let (name, _) = declared.split_once('(')?;
        let is_declaration = ["int ", "const char *", "uint32_t "]
            .iter()
            .any(|kind| line.starts_with(kind));
        is_declaration.then(|| format!("dray_{name}("))
    });
    let calls: Vec<String> = calls.collect();
    assert!(calls.len() >= 36, "{calls:?}");
    for name in words
        .iter()
        .copied()
        .chain(calls.iter().map(String::as_str))
    {
        assert!(cpp.contains(name), "dray.hpp has no {name}");
    }
}
