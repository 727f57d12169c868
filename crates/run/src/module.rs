//! The driver as a module: what lsmod and modprobe find.

use std::fmt::Write;
use std::path::Path;

/// Files of `/sys/module/idxd` that do not change.
pub(crate) const FILES: [(&str, &str); 2] = [("coresize", "147456\n"), ("initstate", "live\n")];
/// The one that does.
pub(crate) const REFERENCES: &str = "refcnt";

/// Where programs find the commands, before those of the machine.
pub(crate) const COMMANDS: &str = "/dev/.dray-bin";
/// Where the kernel lists modules.
pub(crate) const MODULES: &str = "/proc/modules";
/// What lies over it.
pub(crate) const LIST: &str = "/dev/.dray-modules";

/// The machine's modules, without an idxd of its own, and this one.
pub(crate) fn list(machine: &str) -> String {
    let mut text = String::from("idxd 147456 0 - Live 0x0000000000000000\n");
    for line in machine.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        if name != "idxd" {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// modprobe(8) and rmmod(8) for idxd: to remove the driver disables and clears all that it had, to load
/// it finds the devices as they are after power-on. It refuses while work queues are open, as the kernel
/// does. Other modules are the machine's.
const SCRIPT: &str = r#"#!/bin/sh
# idxd of this session; everything else is the machine's.
name=${0##*/}
remove=; idxd=; other=
for word; do
    case $word in
    -r | --remove) remove=1 ;;
    idxd | idxd.ko) idxd=1 ;;
    -*) ;;
    *=*) ;;
    *) other=1 ;;
    esac
done
test "$name" = rmmod && remove=1
if test -z "$idxd" || test -n "$other"; then
    PATH=${PATH#/dev/.dray-bin:}
    exec "$name" "$@"
fi
test -n "$remove" || exit 0
cd /sys/bus/dsa/devices || exit 1
for clients in wq*/clients; do
    if test "$(cat "$clients")" != 0; then
        echo "$name: FATAL: Module idxd is in use." >&2
        exit 1
    fi
done
for device in dsa*; do
    case $device in dsa[0-9]*) ;; *) continue ;; esac
    test "$(cat "$device/state")" = enabled || continue
    echo "$device" >/sys/bus/dsa/drivers/idxd/unbind || exit 1
done
"#;

/// lsmod(8), for machines that have no list of modules, or no such program.
const LIST_SCRIPT: &str = r#"#!/bin/sh
printf '%-23s %5s  %s\n' Module Size 'Used by'
while read -r name size used by rest; do
    by=${by%,}
    test "$by" = - && by=
    printf '%-19s %9s  %s\n' "$name" "$size" "$used${by:+ $by}"
done </dev/.dray-modules
"#;

/// The commands, and what they are, when they lie in `commands` and the list of modules is `list`.
pub(crate) fn scripts(commands: &Path, list: &Path) -> [(&'static str, String); 3] {
    let module = SCRIPT.replace(COMMANDS, &commands.to_string_lossy());
    [
        ("modprobe", module.clone()),
        ("rmmod", module),
        ("lsmod", LIST_SCRIPT.replace(LIST, &list.to_string_lossy())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_list_names_idxd_once() {
        let machine = "fuse 1 0 - Live 0x0\nidxd 9 9 - Live 0x0\nidxd_bus 1 1 idxd, Live 0x0\n";
        let text = list(machine);
        let names: Vec<&str> = text.lines().filter_map(|l| l.split(' ').next()).collect();
        assert_eq!(names, ["idxd", "fuse", "idxd_bus"]);
    }

    #[test]
    fn the_scripts_name_their_own_paths() {
        assert!(SCRIPT.contains(COMMANDS));
        assert!(LIST_SCRIPT.contains(LIST));
    }
}
