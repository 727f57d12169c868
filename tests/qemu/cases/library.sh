# vm: --programs --version 2 --watchdog 900
# The library on the kernel's own driver: its conformance suite on a dedicated queue by MOVDIR64B and by write(2), and on
# a shared queue by ENQCMD. The device is of version 2, which has every operation. What cannot be is refused by name.
cd /sys/bus/dsa/devices
configure
enable 2 3
export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu

# The table of a queue: its name in it, and how many rows must pass.
suite() { # COLUMN ROWS ARGUMENTS OF movers...
    local column=$1 rows=$2 passed
    shift 2
    movers "$@" >/tmp/table 2>&1 || die "movers $*: $(grep -E 'FAILED|error|failed' /tmp/table; tail -3 /tmp/table)"
    passed=$(sed -n "s/^$column: \([0-9]*\) ok, .*, 0 failed\$/\1/p" /tmp/table)
    sed -n "/^$column: [0-9]* ok/p; /: refused: /p" /tmp/table
    [ "${passed:-0}" -ge "$rows" ] || die "movers $*: ${passed:-no} rows passed, not $rows"
}
suite "hw dwq" 235 hw wq0.2
suite "hw write" 230 hw wq0.2 --submit write
suite "hw swq" 235 hw wq0.3
expect wq0.2/clients 0
expect wq0.3/clients 0
# What cannot be opened is named.
movers hw wq0.0 2>/tmp/said && die "a queue of the kernel's was opened"
cat /tmp/said
grep -q 'wq0.0/state says "disabled"' /tmp/said || die "no reason"
# Work in flight while the driver disables the queue and enables it again, disables it, and disables the device.
disrupted() { # QUEUE DISRUPTION ROW
    movers hw "$1" --disrupt "$2" >/tmp/table 2>&1 || die "movers hw $1 --disrupt $2: $(cat /tmp/table)"
    grep "^queue  *$3  *ok" /tmp/table || die "movers hw $1 --disrupt $2: $(cat /tmp/table)"
}
disrupted wq0.2 reset "reset with work in flight"
disrupted wq0.3 reset "reset with work in flight"
expect wq0.2/state enabled
disrupted wq0.2 disable "disabled with work in flight"
expect wq0.2/state disabled
disrupted wq0.3 reset-device "its device reset with work in flight"
expect dsa0/state disabled
