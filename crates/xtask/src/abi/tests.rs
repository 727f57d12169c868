use super::*;

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

const OLD: &str = "constant DRAY_A 1\nstructure dray_x of 16 bytes, aligned to 8\nfield dray_x.size: size_t at 0, 8 bytes\n\
    field dray_x.a: uint64_t at 8, 8 bytes\nstructure dray_y of 8 bytes, aligned to 8\n\
    field dray_y.b: uint64_t at 0, 8 bytes\nfunction int dray_f(int) in DRAY_1";

#[test]
fn a_break_is_noticed() {
    let old = lines(OLD);
    assert!(broken(&old, &old).is_empty());
    let mut new = old.clone();
    new.push("function int dray_g(void) in DRAY_1.1".to_owned());
    assert!(broken(&old, &new).is_empty());
    for (from, to, is_broken) in [
        ("DRAY_A 1", "DRAY_A 2", true),
        ("dray_x of 16", "dray_x of 24", false),
        ("dray_x of 16", "dray_x of 8", true),
        (
            "dray_x of 16 bytes, aligned to 8",
            "dray_x of 16 bytes, aligned to 16",
            true,
        ),
        ("dray_y of 8", "dray_y of 16", true),
        ("dray_x.a: uint64_t at 8", "dray_x.a: uint64_t at 16", true),
        ("dray_y.b: uint64_t", "dray_y.b: int64_t", true),
        ("dray_f(int)", "dray_f(long)", true),
        ("dray_f(int)", "dray_h(int)", true),
        ("in DRAY_1", "in DRAY_1.1", true),
    ] {
        let new: Vec<String> = old.iter().map(|line| line.replace(from, to)).collect();
        assert_eq!(!broken(&old, &new).is_empty(), is_broken, "{from} -> {to}");
    }
}

#[test]
fn what_is_new_is_in_a_new_node() {
    let with = |since: &str| Record {
        version: "0".to_owned(),
        released: lines(OLD),
        since: lines(since),
    };
    let script = "DRAY_1 { global: dray_f; local: *; };\nDRAY_1.1 {\n global: dray_*;\n} DRAY_1;\n";
    assert_eq!(nodes(script), ["DRAY_1", "DRAY_1.1"]);
    let good = with("constant DRAY_B 1\nfunction int dray_g(void) in DRAY_1.1");
    assert!(check_nodes(script, &good).is_ok());
    let late = with("function int dray_g(void) in DRAY_1");
    let error = check_nodes(script, &late).unwrap_err().to_string();
    assert!(error.contains("the newest node, DRAY_1.1"), "{error}");
    let error = check_nodes("DRAY_1 { global: dray_*; local: *; };", &late).unwrap_err();
    assert!(error.to_string().contains("begin a new node"), "{error}");
}

#[test]
fn every_declaration_of_a_header_is_found_or_refused() {
    let text = "#ifndef A_H\n#define A_H\n#include <stddef.h>\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n#define A_B 3u\n\
        #define A_MAX(a, b) ((a) > (b))\n/* int a_no(void); */\ntypedef struct a_open a_open;\ntypedef uint8_t a_byte;\n\
        typedef enum { A_C = 1, A_D } a_enum;\ntypedef struct a_s {\n  /* One. */\n  const char *name;\n  \
        unsigned char opaque[192] __attribute__((aligned(64)));\n} a_s;\nconst char *a_f(struct a_open *open, a_byte b,\n\
        size_t n);\nint a_g(void);\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
    let found = Header::parsed(text).unwrap();
    assert_eq!(found.constants, ["A_B", "A_C", "A_D"]);
    assert_eq!(found.types, ["a_byte", "a_enum"]);
    let fields = [("const char *", "name"), ("unsigned char[192]", "opaque")];
    let fields = fields.map(|(kind, name)| (kind.to_owned(), name.to_owned()));
    assert_eq!(found.structures, [("a_s".to_owned(), fields.to_vec())]);
    let functions = [
        ("a_f", "const char *a_f(struct a_open *, a_byte, size_t)"),
        ("a_g", "int a_g(void)"),
    ];
    let functions = functions.map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(found.functions, functions);
    for unknown in [
        "typedef union { int a; } a_u;",
        "extern int a_variable;",
        "int a_f(void",
    ] {
        assert!(Header::parsed(unknown).is_err(), "{unknown}");
    }
}
