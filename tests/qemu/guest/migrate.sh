# What the cases of page migration share; a case begins with `. /migrate.sh`.

# accel-config 4.1 knows a few names of drivers only: these queues are configured by hand.
configure_migrate() { # QUEUES...
    local wq
    accel-config config-engine dsa0/engine0.0 --group-id=0
    accel-config config-engine dsa0/engine0.1 --group-id=0
    for wq in "$@"; do
        configure_migrate_wq "$wq"
    done
}

configure_migrate_wq() { # NUMBER [ATTRIBUTE=VALUE]...
    local number=$1
    shift
    set_migrate_wq "$number" group_id=0 size=16 "$@"
}

# All but size and group, which the driver does not forget when a queue is disabled.
set_migrate_wq() { # NUMBER [ATTRIBUTE=VALUE]...
    local at=/sys/bus/dsa/devices/wq0.$1 attribute
    shift
    for attribute in mode=dedicated type=kernel name=migrate driver_name=dray_migrate priority=10 \
        max_batch_size=128 max_transfer_size=2097152 "$@"; do
        echo "${attribute#*=}" >"$at/${attribute%%=*}" || die "${at##*/}: $attribute"
    done
}

enable_migrate() { # QUEUES...
    local wq
    accel-config enable-device dsa0 || die "the device cannot be enabled"
    for wq in "$@"; do
        bind_migrate "$wq" || die "queue $wq cannot be enabled"
        expect "/sys/bus/dsa/devices/wq0.$wq/state" enabled
    done
}

bind_migrate() { # NUMBER
    echo "wq0.$1" 2>/dev/null >/sys/bus/dsa/drivers/dray_migrate/bind
}

unbind_migrate() { # NUMBER
    echo "wq0.$1" >/sys/bus/dsa/drivers/dray_migrate/unbind
}

# Writes a knob.
knob() { # NAME VALUE
    echo "$2" >"/proc/sys/vm/$1" || die "$1 cannot be $2"
}

# A write that must fail.
refused() { # NAME VALUE
    if echo "$2" 2>/dev/null >"/proc/sys/vm/$1"; then die "$1 was set to $2"; fi
}

counter() { # NAME
    sed -n "s/^$1 //p" /sys/module/dray_migrate/parameters/counters
}
vmstat() { # NAME
    sed -n "s/^$1 //p" /proc/vmstat
}

# Loads the module with queues and has the device copy every page.
start_migrate() { # QUEUES...
    [ -d /sys/devices/system/node/node1 ] || die "one memory node only"
    echo 0 >/proc/sys/kernel/numa_balancing
    configure_migrate "$@"
    # A busy host may take long: only cases that lose descriptors wait for less.
    insmod /lib/modules/dray_migrate.ko timeout_ms=$((60000 * slow))
    enable_migrate "$@"
    knob dsa_state 1
    knob dsa_copy_threshold 1
    knob use_dsa_copy_pages 1
}

# Remembers where the counters are; `since NAME` says how much was added.
mark() {
    cp /sys/module/dray_migrate/parameters/counters /tmp/counters
    vmstat pgmigrate_success >/tmp/pgmigrate_success
}
since() { # NAME
    echo $(($(counter "$1") - $(sed -n "s/^$1 //p" /tmp/counters)))
}
migrated() {
    echo $(($(vmstat pgmigrate_success) - $(cat /tmp/pgmigrate_success)))
}

# The kernel has not complained.
no_complaint() {
    if dmesg | grep -E 'Oops|BUG:|WARNING:|Bad page|general protection'; then die "the kernel complains"; fi
}

# Unloads the module, and says what all of its lives have copied: the host has the device's account of the same bytes.
unload_migrate() {
    rmmod dray_migrate || die "rmmod"
    dmesg | sed -n 's/.*dray_migrate: unloaded: \([0-9]*\) bytes were copied by devices, \([0-9]*\) pages.*/\1 \2/p' |
        awk '{bytes += $1; lost += $2} END {print "total_bytes_by_device " bytes; print "total_pages_lost " lost + 0}'
}

# The kernel's and the module's tracepoints, from here on.
start_trace() {
    mount -t tracefs trace /sys/kernel/tracing 2>/dev/null || true
    trace=/sys/kernel/tracing
    echo 8192 >$trace/buffer_size_kb
    echo 1 >$trace/events/dray_migrate/enable
    echo 1 >$trace/events/migrate/mm_migrate_pages/enable
    echo >$trace/trace
    cat $trace/per_cpu/cpu*/stats | grep -q 'overrun: [1-9]' && die "a trace that has lost events already"
    return 0
}
# Pages that the kernel says it has migrated, by its tracepoint; and those that the device has copied, by the module's.
traced_migrated() { sed -n 's/.*mm_migrate_pages: nr_succeeded=\([0-9]*\) .*/\1/p' $trace/trace | awk '{n += $1} END {print n + 0}'; }
traced_device() { sed -n 's/.*dray_copy: .* pages=\([0-9]*\) by=device .*/\1/p' $trace/trace | awk '{n += $1} END {print n + 0}'; }
