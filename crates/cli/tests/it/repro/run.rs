//! Programs under `dray run`.

use super::Row;

pub(super) const fn row(input: &'static str, way: &'static str, script: &'static str) -> Row {
    Row {
        input,
        way,
        script,
        code: 0,
        says: &[],
        never: &[],
        needs: "",
    }
}

/// A program that is right by its exit code, in each way in which work queues are opened.
macro_rules! program {
    ($input:literal, $way:literal, $options:literal) => {
        row(
            $input,
            $way,
            concat!(
                "compile program -lpthread && dray run --profile 1e1w-s ",
                $options,
                " -- ./program"
            ),
        )
    };
}

pub(super) const ROWS: &[Row] = &[
    program!("run/poll.c", "6.8", "--personality 6.8"),
    program!("run/poll.c", "7.2", "--personality 7.2"),
    program!("run/poll.c", "supervised", "--supervise always"),
    program!("run/poll.c", "redirect", "--redirect"),
    program!("run/poll-error.c", "6.8", "--personality 6.8"),
    program!("run/poll-error.c", "supervised", "--supervise always"),
    program!("run/poll-error.c", "redirect", "--redirect"),
    program!("run/lseek.c", "5.18", "--personality 5.18"),
    program!("run/lseek.c", "7.2", "--personality 7.2"),
    program!("run/lseek.c", "redirect", "--redirect"),
    Row {
        says: &["right"],
        ..row(
            "run/pci-driver.sh",
            "mounts",
            "dray run --profile 1e1w-s -- bash \"$INPUT\"",
        )
    },
    Row {
        says: &["right"],
        ..row(
            "run/pci-driver.sh",
            "redirect",
            "dray run --redirect --profile 1e1w-s -- bash \"$INPUT\"",
        )
    },
    Row {
        says: &["program contains CPUID, and asked nothing of the device"],
        ..row(
            "run/cpuid.c",
            "--stats",
            "compile program && dray run --profile 1e1w-s --stats -- ./program",
        )
    },
    Row {
        code: 1,
        says: &["program contains CPUID, and asked nothing of the device"],
        ..row(
            "run/cpuid.c",
            "--require portal",
            "compile program && dray run --profile 1e1w-s --require portal -- ./program",
        )
    },
    Row {
        says: &["libasks.so, a library of ./program, contains CPUID"],
        ..row(
            "run/cpuid.c",
            "in a library",
            "compile libasks.so -shared -fPIC -Dmain=asks &&
            echo 'int asks(void); int main(void) { return asks(); }' >program.c &&
            cc -o program program.c -L. -lasks -Wl,-rpath,'$ORIGIN' &&
            dray run --profile 1e1w-s --stats -- ./program",
        )
    },
    Row {
        says: &["movdir64b", "enqcmd", "waitpkg"],
        ..row(
            "run/cpuid.c",
            "/proc/cpuinfo",
            "dray run -- grep -m1 -wo -e movdir64b -e enqcmd -e waitpkg /proc/cpuinfo",
        )
    },
    Row {
        says: &["movdir64b", "enqcmd", "waitpkg"],
        ..row(
            "run/cpuid.c",
            "/proc/cpuinfo, redirect",
            "dray run --redirect -- grep -m1 -wo -e movdir64b -e enqcmd -e waitpkg /proc/cpuinfo",
        )
    },
    program!("run/copy.c", "--require work", "--require work"),
    program!(
        "run/copy.c",
        "--require work --redirect",
        "--require work --redirect"
    ),
    Row {
        says: &["status 1"],
        never: &["opened wq0.0", "advice: wq0.0: never used"],
        ..row(
            "run/copy.c",
            "by its second open, --stats --require portal",
            "compile program -lpthread
            dray run --profile 1e1w-s --stats --require portal -- ./program twice",
        )
    },
    Row {
        code: 1,
        says: &[
            "--require work: no descriptor was submitted",
            "did not find the device",
        ],
        never: &["contains CPUID"],
        ..row(
            "run/nothing.sh",
            "--require work",
            "dray run --profile 1e1w-s --require work -- sh \"$INPUT\"",
        )
    },
    Row {
        code: 139,
        says: &["before signal 11 (Segmentation fault) ended the command"],
        never: &["did not find the device"],
        ..row(
            "run/nothing.sh",
            "a signal, --stats",
            "dray run --profile 1e1w-s --stats -- sh \"$INPUT\" signal",
        )
    },
    Row {
        code: 127,
        says: &["there is no such command"],
        never: &["did not find the device"],
        ..row(
            "run/nothing.sh",
            "no such command, --stats",
            "dray run --profile 1e1w-s --stats -- sh \"$INPUT\" missing",
        )
    },
    Row {
        says: &["dpdk_0", "dedicated"],
        ..row(
            "run/nothing.sh",
            "--for dpdk",
            "dray run --for dpdk -- sh -c 'cd /sys/bus/dsa/devices/wq0.0 && cat name mode'",
        )
    },
    Row {
        says: &["group0.0 of 4e1w-d has several engines"],
        ..row(
            "run/nothing.sh",
            "--for dpdk with four engines",
            "dray run --for dpdk --profile 4e1w-d -- sh -c true",
        )
    },
    Row {
        says: &["mine\nmine\n"],
        ..row(
            "run/nothing.sh",
            "--queue-name",
            "dray run --profile 4e2w-s --queue-name mine --for dto -- sh -c '
                cat /sys/bus/dsa/devices/wq0.[01]/name'",
        )
    },
    Row {
        code: 2,
        says: &["it takes dedicated work queues of type user, and 4e1w-s has none"],
        ..row(
            "run/nothing.sh",
            "--for spdk with shared queues",
            "dray run --for spdk --profile 4e1w-s -- sh \"$INPUT\"",
        )
    },
];
