//! Programs that have something of their own around them: small stacks, filters, another C library, memory checkers.

use super::Row;
use super::run::row;

/// A program in one way; its exit code says whether all was right.
macro_rules! program {
    ($input:literal, $way:literal, $compile:expr, $options:literal, $command:expr) => {
        row(
            $input,
            $way,
            concat!(
                $compile,
                " && dray run --profile 1e1w-s ",
                $options,
                " -- ",
                $command
            ),
        )
    };
}

macro_rules! altstack {
    ($way:literal, $compile:literal, $options:literal, $arguments:literal) => {
        program!(
            "run/altstack.c",
            $way,
            $compile,
            $options,
            concat!("./program ", $arguments)
        )
    };
}

macro_rules! checked {
    ($way:literal, $flags:literal, $options:literal, $before:literal) => {
        Row {
            says: &["0 bad"],
            never: &["ERROR:", "== Invalid", "uninitialised"],
            ..program!(
                "run/checked.c",
                $way,
                concat!("compile program -g ", $flags),
                $options,
                concat!($before, " ./program")
            )
        }
    };
}

macro_rules! hello {
    ($way:literal, $options:literal, $command:literal) => {
        Row {
            says: &["hello"],
            needs: "musl-gcc",
            ..program!(
                "run/hello.c",
                $way,
                "CC=musl-gcc compile program",
                $options,
                $command
            )
        }
    };
}

pub(super) const ROWS: &[Row] = &[
    altstack!("2048 bytes", "compile program", "", "2048"),
    altstack!("4096 bytes", "compile program", "", "4096"),
    altstack!(
        "2048 bytes, redirect",
        "compile program",
        "--redirect",
        "2048"
    ),
    altstack!(
        "4096 bytes, supervised",
        "compile program",
        "--supervise always",
        "4096"
    ),
    altstack!(
        "4096 bytes, without unwind tables",
        "compile program -fno-asynchronous-unwind-tables",
        "",
        "4096 traps"
    ),
    altstack!(
        "4096 bytes, code made later",
        "compile program",
        "",
        "4096 traps later"
    ),
    altstack!(
        "2048 bytes, code made later, supervised",
        "compile program",
        "--supervise always",
        "2048 later"
    ),
    Row {
        says: &[
            "0 bad of 500",
            "polled for a program under a seccomp filter",
        ],
        ..program!(
            "run/filter.c",
            "late",
            "compile program",
            "",
            "./program late"
        )
    },
    Row {
        says: &["0 bad of 500"],
        ..program!(
            "run/filter.c",
            "late, redirect",
            "compile program",
            "--redirect",
            "./program late"
        )
    },
    Row {
        says: &["0 bad of 500", "filters its system calls"],
        ..program!(
            "run/filter.c",
            "early",
            "compile program",
            "",
            "./program early"
        )
    },
    program!("run/opens.c", "1000", "compile program", "", "./program"),
    hello!("musl", "", "./program"),
    hello!("musl, from a shell", "", "sh -c ./program"),
    hello!("musl, supervised", "--supervise always", "./program"),
    hello!("musl, never supervised", "--supervise never", "./program"),
    hello!(
        "musl, from a shell, never supervised",
        "--supervise never",
        "sh -c ./program"
    ),
    hello!("musl, redirect", "--redirect", "sh -c ./program"),
    Row {
        says: &["hello"],
        never: &["ERROR: ld.so"],
        needs: "musl-gcc",
        ..row(
            "run/hello.c",
            "musl, from a shell, offload",
            "CC=musl-gcc compile program && dray offload -- sh -c ./program",
        )
    },
    Row {
        says: &["hello"],
        never: &["ERROR: ld.so"],
        needs: "musl-gcc",
        ..row(
            "run/hello.c",
            "musl, from a shell, tier",
            "CC=musl-gcc compile program && dray tier --back-end uffd -- sh -c ./program",
        )
    },
    Row {
        code: 2,
        says: &["is linked with another C library than glibc"],
        needs: "musl-gcc",
        ..row(
            "run/hello.c",
            "musl, offload",
            "CC=musl-gcc compile program && dray offload -- ./program",
        )
    },
    checked!("plain", "", "", ""),
    checked!("AddressSanitizer", "-fsanitize=address", "", ""),
    checked!(
        "AddressSanitizer, static",
        "-fsanitize=address -static-libasan",
        "",
        ""
    ),
    checked!(
        "AddressSanitizer, redirect",
        "-fsanitize=address",
        "--redirect",
        ""
    ),
    checked!(
        "AddressSanitizer, supervised",
        "-fsanitize=address",
        "--supervise always",
        ""
    ),
    checked!("LeakSanitizer", "-fsanitize=leak", "", ""),
    Row {
        says: &["0 bad"],
        never: &["WARNING: MemorySanitizer"],
        needs: "clang",
        ..program!(
            "run/checked.c",
            "MemorySanitizer",
            "CC=clang compile program -g -fsanitize=memory",
            "",
            "./program"
        )
    },
    checked!("ThreadSanitizer", "-fsanitize=thread", "", ""),
    checked!("UndefinedBehaviorSanitizer", "-fsanitize=undefined", "", ""),
    Row {
        needs: "valgrind",
        ..checked!(
            "valgrind",
            "",
            "",
            "valgrind -q --error-exitcode=7 --leak-check=full"
        )
    },
];
