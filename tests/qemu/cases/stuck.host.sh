# A guest that does not go on is ended, and where it is is said: in a program, and before the first instruction.
. "$(dirname "$0")/../host.sh"
echo 'while :; do :; done' >"$work/loop.sh"
status=0
expect() { # WHAT TEXT
    grep -qE "$2" "$work/said" || {
        note "$1: \"$2\" was not said"
        status=1
    }
}
boot "$console" "$work/loop.sh" --watchdog 60 --watchdog-at-most "${WATCHDOG_S:-2400}" >"$work/said" 2>&1
[ $? -eq 124 ] || status=1
cat "$work/said"
expect "a loop" 'processor [01]: at [0-9a-f]{16}, (a program|the kernel)'
expect "a loop" 'RIP: [0-9a-f]+:'
expect "a loop" 'stuck after [0-9]+ s; the last line was: DRAY-BEGIN'
: >"$console"
boot "$console" "$work/loop.sh" --watchdog 5 --qemu -S >"$work/said" 2>&1
[ $? -eq 124 ] || status=1
cat "$work/said"
expect "a halted machine" 'processor 0: at 0000fff0, firmware'
expect "a halted machine" 'the kernel says nothing to an NMI'
expect "a halted machine" 'stuck after [0-9]+ s; the last line was: none, it has said nothing'
exit "$status"
