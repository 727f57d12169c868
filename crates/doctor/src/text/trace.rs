//! Reports of a crash, a warning or a stall of the kernel: several lines that are one message.
//!
//! A report begins with what happened, and its stack says which driver it is of. What it means
//! depends on the functions in the stack, whatever function the processor stopped in.

use std::collections::BTreeSet;

use crate::catalogue::begins_with_function;

/// What a report begins with.
const OPENERS: [&str; 16] = [
    "bug: kasan: ",
    "bug: kernel null pointer dereference",
    "bug: unable to handle ",
    "bug: soft lockup",
    "blocked for more than ",
    "divide error: 0000",
    "general protection fault",
    "refcount_t: ",
    "ida_free called for ",
    "detected stalls on ",
    "self-detected stall on ",
    "hard lockup on cpu",
    "invalid opcode: 0000",
    "oops: ",
    "kernel bug at ",
    "list_del corruption",
];
/// A report of what is not told.
const OTHERS: [&str; 3] = [CUT_HERE, "call trace:", "rip: 0010:"];
/// The names may go on in the next lines.
const MODULES: &str = "modules linked in:";
const CUT_HERE: &str = "[ cut here ]";
/// Words for what happened, which the catalogue has, by what stands in those lines.
const KINDS: [(&str, &str); 12] = [
    ("null-ptr-deref", "null-pointer"),
    ("null pointer dereference", "null-pointer"),
    ("use-after-free", "use-after-free"),
    ("double-free", "double-free"),
    ("ida_free called for ", "double-free"),
    ("soft lockup", "soft-lockup"),
    ("blocked for more than ", "hung-task"),
    ("divide error: ", "divide-error"),
    ("general protection fault", "protection-fault"),
    ("handle page fault", "page-fault"),
    ("refcount_t: ", "refcount"),
    ("stall on ", "stall"),
];

/// Registers that a line begins with.
const REGISTERS: [&str; 7] = ["rip", "rsp", "rax", "rdx", "rbp", "fs", "cs"];

/// More lines than the longest report of a kernel has.
const MAX_LINES: u32 = 160;
/// More functions than tell reports apart.
const MAX_WORDS: usize = 128;
/// Longest name of a function that is kept.
const MAX_NAME_BYTES: usize = 80;

/// A report.
pub(super) struct Trace {
    /// What it says of itself: functions of its stack, files, kinds of crash, and drivers.
    pub(super) words: BTreeSet<String>,
    /// Where the processor was, or what is called first.
    pub(super) function: Option<String>,
    pub(super) system: usize,
    /// The line that says most of what happened.
    pub(super) number: u64,
    pub(super) says: String,
    /// How much that line says.
    weight: u8,
    lines: u32,
    /// It has the line that stands before a crash or a warning, and before no other stack.
    is_cut_here: bool,
    has_stack: bool,
    has_ended: bool,
    /// Names of modules stand in the last line.
    lists_modules: bool,
}

/// A line of a log, as far as a report is concerned.
pub(super) struct Line<'a> {
    pub(super) number: u64,
    pub(super) system: usize,
    pub(super) text: &'a str,
    /// In small letters.
    pub(super) plain: &'a str,
    /// It begins with a time, as lines of a log do and those of a listing do not.
    pub(super) in_log: bool,
}

/// The report that is being read.
#[derive(Default)]
pub(super) struct Traces {
    open: Option<Trace>,
}

impl Traces {
    /// Reads a line: whether it is part of a report, and the report that ended before it.
    pub(super) fn read(&mut self, line: &Line<'_>) -> (bool, Option<Trace>) {
        let opens = weight(line.plain);
        let frames = frames(line.plain);
        let is_over = self.open.as_ref().is_some_and(|open| {
            // The place where it stopped is printed once more.
            let repeats = open.has_ended
                && !frames.is_empty()
                && frames.iter().all(|frame| open.words.contains(frame));
            line.system != open.system
                || open.lines == MAX_LINES
                || (open.has_stack && begins(line.plain, opens) && !repeats)
                || (opens > 0 && open.has_ended && !repeats)
        });
        let ended = if is_over { self.open.take() } else { None };
        if self.open.is_none() && (opens > 0 || is_of_stack(line, &frames)) {
            self.open = Some(Trace::new(line));
        }
        let Some(open) = &mut self.open else {
            return (false, ended);
        };
        open.lines += 1;
        let is_part = opens > 0 || !frames.is_empty() || is_filling(line.plain);
        // Something else was printed behind the stack.
        open.has_ended |= open.has_stack && line.in_log && !is_part;
        let of_report = is_of_report(message(line.plain));
        open.lists_modules = message(line.plain).starts_with(MODULES)
            || (open.lists_modules && !of_report && is_filling(line.plain));
        if open.has_ended {
            let is_part = opens > 0 || !frames.is_empty() || of_report || open.lists_modules;
            return (is_part, ended);
        }
        open.take(line, opens, frames);
        (is_part, ended)
    }

    /// The report that is open at the end of a text.
    pub(super) fn finish(&mut self) -> Option<Trace> {
        self.open.take()
    }
}

impl Trace {
    fn new(line: &Line<'_>) -> Self {
        Self {
            words: BTreeSet::new(),
            function: None,
            system: line.system,
            number: line.number,
            says: line.text.to_owned(),
            weight: 0,
            lines: 0,
            is_cut_here: false,
            has_stack: false,
            has_ended: false,
            lists_modules: false,
        }
    }

    fn take(&mut self, line: &Line<'_>, opens: u8, frames: Vec<String>) {
        let plain = line.plain;
        self.is_cut_here |= plain.contains(CUT_HERE);
        if opens > self.weight {
            (self.weight, self.number) = (opens, line.number);
            line.text.clone_into(&mut self.says);
        }
        if opens > 0 {
            let kinds = KINDS.iter().filter(|(mark, _)| plain.contains(mark));
            for (_, kind) in kinds {
                self.add((*kind).to_owned());
            }
            // The task that hangs may be the interrupt of a device.
            if plain.contains("-idxd-") || plain.contains("[idxd]") {
                self.add("idxd".to_owned());
            }
            let path = plain.split(' ').find(|word| word.contains(".c:"));
            if let Some(path) = path {
                self.add(path.split(':').next().unwrap_or_default().to_owned());
            }
        }
        // A work item, and the place where it stopped, stand before the stack.
        self.has_stack |= plain.contains("call trace:")
            || (opens == 0 && !frames.is_empty() && !plain.contains("workqueue: "));
        // KASAN goes on with who had the memory before.
        let is_kasan = self.says.contains("KASAN: ");
        self.has_ended = plain.contains("end trace ")
            || (!is_kasan && plain.contains("</task>"))
            || (is_kasan && self.has_stack && plain.contains("======"));
        for module in ["idxd", "iaa_crypto"] {
            if !frames.is_empty() && plain.contains(&format!("[{module}]")) {
                self.add(module.to_owned());
            }
        }
        for frame in frames {
            if driver(&frame) {
                self.add("idxd".to_owned());
            }
            if self.function.is_none() {
                self.function = Some(frame.clone());
            }
            self.add(frame);
        }
    }

    fn add(&mut self, word: String) {
        if self.words.len() < MAX_WORDS && word.len() <= MAX_NAME_BYTES {
            self.words.insert(word);
        }
    }

    /// Whether it says itself that something crashed, and is no stack that was asked for.
    pub(super) const fn is_crash(&self) -> bool {
        self.weight > 1
    }

    /// Whether it may be a stack that was asked for, as SysRq prints it.
    pub(super) const fn may_be_asked_for(&self) -> bool {
        self.weight == 1 && !self.is_cut_here
    }
}

/// How much the beginning of a report says: nothing, that there is one, or what it is.
fn weight(plain: &str) -> u8 {
    if OPENERS.iter().any(|mark| plain.contains(mark)) {
        return 3;
    }
    // `WARNING: CPU: 0 PID: 11 at lib/idr.c:525 ida_free+0xd3/0x130`, from 6.19 on without "CPU".
    if plain.contains("warning: ") && plain.contains(" at ") && plain.contains("+0x") {
        return 2;
    }
    if plain.contains("bug: ") && (plain.contains("+0x") || plain.contains("cpu#")) {
        return 2;
    }
    u8::from(OTHERS.iter().any(|mark| plain.contains(mark)))
}

/// Whether a line begins a report behind the stack of another.
fn begins(plain: &str, weight: u8) -> bool {
    weight > 1 || plain.contains(CUT_HERE)
}

/// The functions of a line of a stack, without what compilers add.
fn frames(plain: &str) -> Vec<String> {
    let mut frames = Vec::new();
    let mut words = plain.split(' ').peekable();
    while let Some(word) = words.next() {
        let is_before_module = words.peek().is_some_and(|next| is_module(next));
        // Elsewhere listings have a module behind a function.
        let module = is_before_module && plain.contains("workqueue: ");
        let name = match word.split_once("+0x") {
            Some((name, _)) => name,
            None if module => word,
            None => continue,
        };
        let name = name.rsplit([':', ']']).next().unwrap_or_default();
        let name = name.split('.').next().unwrap_or_default();
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.len() > 2 && name.len() <= MAX_NAME_BYTES && is_name {
            frames.push(name.to_owned());
        }
    }
    frames
}

/// `[idxd]` behind a function.
fn is_module(word: &str) -> bool {
    ["[idxd]", "[iaa_crypto]"].contains(&word)
}

/// Whether a function is of the driver by its name: it may be built into the kernel.
fn driver(frame: &str) -> bool {
    frame.starts_with("idxd_")
}

/// Whether a line of a log is one of a stack of the driver: `? idxd_remove+0xe4/0x120 [idxd]`.
/// Tables of symbols, profiles, locks and initcalls have functions, too.
fn is_of_stack(line: &Line<'_>, frames: &[String]) -> bool {
    let is_driver =
        frames.iter().any(|frame| driver(frame)) || line.plain.split(' ').any(is_module);
    let said = message(line.plain).trim_start_matches("? ");
    let begins = frames.first().is_some_and(|frame| said.starts_with(frame));
    is_driver && begins && line.in_log && said.contains("/0x")
}

/// A line without what stands before it in brackets.
fn message(plain: &str) -> &str {
    let mut rest = plain
        .split_once(" kernel: ")
        .map_or(plain, |(_, rest)| rest);
    while let Some((_, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        rest = after.trim_start();
    }
    rest
}

/// Whether a line in a report says nothing by itself.
fn is_filling(plain: &str) -> bool {
    let rest = message(plain);
    is_of_report(rest) || (!rest.contains(':') && !begins_with_function(rest))
}

/// Whether a message is one of a report alone: registers, modules, names of hardware, memory.
fn is_of_report(message: &str) -> bool {
    let heads = [
        MODULES,
        "workqueue:",
        "cpu:",
        "tainted:",
        "hardware name:",
        "call trace:",
        "code:",
        "eflags:",
        "orig_rax:",
        "pkru:",
        "allocated by task",
        "freed by task",
        "last potentially related work creation:",
        "second to last potentially related work creation:",
        "the buggy address",
        "the physical address",
        "page:",
        "flags:",
        "raw:",
        "page dumped because:",
        "memory state around",
        "irq event stamp:",
        "hardirqs last",
        "softirqs last",
        "sending nmi",
        "nmi backtrace",
    ];
    let first = message.split(' ').next().unwrap_or_default();
    // `rax: 0000000000000000`, `cr2: ...`, and bytes around an address of KASAN.
    let is_register = first.strip_suffix(':').is_some_and(|name| {
        let is_memory = name.len() == 16 && name.bytes().all(|digit| digit.is_ascii_hexdigit());
        let numbered = ["cr", "dr", "r"].iter().any(|kind| {
            let number = name.strip_prefix(kind).unwrap_or_default();
            !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
        });
        numbered || is_memory || REGISTERS.contains(&name)
    });
    is_register || first == ">" || heads.iter().any(|head| message.starts_with(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reports of a text: their words, and the line that each is known by.
    fn traces(text: &str) -> Vec<(BTreeSet<String>, u64)> {
        let mut traces = Traces::default();
        let mut all = Vec::new();
        for (number, text) in (1..).zip(text.lines()) {
            let plain = text.trim().to_ascii_lowercase();
            let line = Line {
                number,
                system: 0,
                text,
                plain: &plain,
                in_log: true,
            };
            all.extend(traces.read(&line).1);
        }
        all.extend(traces.finish());
        let kept = all.into_iter().map(|trace| (trace.words, trace.number));
        kept.collect()
    }

    #[test]
    fn lines_of_a_report_are_one() {
        let found = traces(
            "[ 1.0] ------------[ cut here ]------------\n\
             [ 1.0] refcount_t: underflow; use-after-free.\n\
             [ 1.0] WARNING: CPU: 1 PID: 2 at lib/refcount.c:28 refcount_warn_saturate+0x1/0x2\n\
             [ 1.0] RIP: 0010:refcount_warn_saturate+0x1/0x2\n\
             [ 1.0] Call Trace:\n\
             [ 1.0]  idxd_remove.part.0+0x1/0x2 [idxd]\n\
             [ 1.0] ---[ end trace 0000000000000000 ]---\n\
             [ 1.0] RIP: 0010:refcount_warn_saturate+0x1/0x2\n\
             [ 2.0] BUG: kernel NULL pointer dereference, address: 0000000000000038\n\
             [ 2.0] RIP: 0010:nvme_probe+0x1/0x2 [nvme]\n",
        );
        assert_eq!(found.len(), 2, "{found:?}");
        let (words, number) = &found[0];
        assert_eq!(*number, 2);
        for word in [
            "refcount",
            "lib/refcount.c",
            "refcount_warn_saturate",
            "idxd_remove",
            "idxd",
        ] {
            assert!(words.contains(word), "{word}: {words:?}");
        }
        assert!(!found[1].0.contains("idxd"), "{found:?}");
    }

    #[test]
    fn a_report_without_end_is_bounded() {
        let lines: String = (0..10_000)
            .map(|n| format!("[ 1.0]  idxd_f{n}+0x1/0x2 [idxd]\n"))
            .collect();
        let found = traces(&format!("[ 1.0] Call Trace:\n{lines}"));
        assert!(found.iter().all(|(words, _)| words.len() <= MAX_WORDS));
        assert!(found.len() > 1 && found.len() <= 10_000 / MAX_LINES as usize + 2);
    }
}
