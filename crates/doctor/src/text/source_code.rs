//! Source text and patches, which have the words of messages and report nothing.

use std::ops::Range;

/// Functions that print, by how their names end.
const PRINTERS: [&str; 12] = [
    "_warn",
    "_err",
    "_info",
    "_dbg",
    "_debug",
    "_notice",
    "_crit",
    "_ratelimited",
    "_once",
    "printk",
    "printf",
    "log",
];

/// Whether what stands at a place of a line is the text of a source file that prints it.
pub(super) fn is_printed_by(plain: &str, place: &Range<usize>) -> bool {
    let before = plain[..place.start].rfind('"').map(|quote| &plain[..quote]);
    let after = plain[place.end..].split_once('"');
    let Some((before, (inside, after))) = before.zip(after) else {
        return false;
    };
    // `dev_warn(dev, "...` or, on a line of its own, `"...\n");`.
    let call = before.rsplit_once('(').is_some_and(|(call, arguments)| {
        !arguments.contains(')') && PRINTERS.iter().any(|name| call.ends_with(name))
    });
    let alone = before.trim_matches(['+', '-', ' ']).is_empty();
    let ends = inside.ends_with("\\n") && after.trim_start().starts_with([')', ',']);
    call || (alone && ends)
}

/// Whether a line is one of a patch, or of C.
pub(super) fn is_source(plain: &str) -> bool {
    let heads = ["diff --git ", "+++ ", "--- a/", "--- b/", "@@ ", "index "];
    if heads.iter().any(|head| plain.starts_with(head)) {
        return true;
    }
    let code = plain.split("//").next().unwrap_or_default();
    let code = code.split("/*").next().unwrap_or_default().trim_end();
    code.ends_with([';', '{', '}'])
        || code.ends_with("*/")
        || (code.contains("->") && !code.contains(" -> ") && code.contains(['(', ')']))
        || (code.ends_with(')')
            && ["if (", "for (", "while (", "static "]
                .iter()
                .any(|head| code.trim_start_matches(['+', '-', ' ']).starts_with(head)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_a_source_file_prints_is_told_from_what_was_printed() {
        let is_printed = |line: &str| {
            let start = line.find("user forced").unwrap();
            is_printed_by(line, &(start..start + 20))
        };
        let says = "user forced sva off via module param.";
        for line in [
            format!("+ dev_warn(dev, \"{says}\\n\");"),
            format!("pr_err(\"{says}\");"),
            format!("dev_err_ratelimited(dev, \"{says} %d\\n\", rc);"),
            format!("+ \"{says} \\n\");"),
        ] {
            assert!(is_printed(&line), "{line}");
        }
        for line in [
            format!("[ 1.0] idxd 0000:6a:01.0: {says} "),
            format!("\"message\" : \"{says}\\n\","),
            format!("it says (see \"{says} \" below)"),
        ] {
            assert!(!is_printed(&line), "{line}");
        }
    }

    #[test]
    fn lines_of_patches_and_of_c_are_source() {
        for line in [
            "diff --git a/drivers/dma/idxd/init.c b/drivers/dma/idxd/init.c",
            "+++ b/drivers/dma/idxd/init.c",
            "@@ -514,13 +514,14 @@ static int idxd_probe(struct idxd_device *idxd)",
            "put_device(idxd_confdev(idxd)); // (1) triggers release",
            "if (!idxd)",
            "static void idxd_free(struct idxd_device *idxd)",
            "+ else {",
        ] {
            assert!(is_source(line), "{line}");
        }
        for line in [
            "[ 1.0] idxd 0000:6a:01.0: enabling device (0144 -> 0146)",
            "--- idxd fails",
            "idxd 0000:6a:01.0: something new",
        ] {
            assert!(!is_source(line), "{line}");
        }
    }
}
