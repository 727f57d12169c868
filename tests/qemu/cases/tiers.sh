# vm: --tiers --watchdog 1200
# Demotion, promotion and compaction while a program writes and checks without end, the device refuses descriptors now
# and then, and the module is unloaded and loaded again, twice or, with `--append dray.seconds=600`, for so long.
. /migrate.sh
seconds=$(sed -n 's/.*dray.seconds=\([0-9]*\).*/\1/p' /proc/cmdline)
seconds=${seconds:-0}
[ "$(ls -d /sys/devices/virtual/memory_tiering/memory_tier* | wc -l)" -eq 2 ] || die "not two memory tiers"

# Reclaim on demand is a control group's.
mkdir -p /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/case
# Anonymous memory alone; older kernels (6.12) know no more than 200.
swappiness=max
echo "0 swappiness=max" 2>/dev/null >/sys/fs/cgroup/case/memory.reclaim || swappiness=200
reclaim() { # BYTES
    # What cannot be reclaimed is told as an error; what was demoted is counted below.
    echo "$1 swappiness=$swappiness" 2>/dev/null >/sys/fs/cgroup/case/memory.reclaim || true
}

start_migrate 0 1
# Batches for compaction (0), move_pages (3), NUMA faults (5) and demotion (8).
batch_all() {
    knob use_concur_to_compact 1
    knob use_concur_to_demote 1
    knob reason_mask $(($(cat /proc/sys/vm/reason_mask) | 1 << 3 | 1 << 5))
}
batch_all
echo 1 >/sys/kernel/mm/numa/demotion_enabled

# A program that keeps its memory until its input ends.
hold() { # NAME migrate's arguments...
    local name=$1
    shift
    mkfifo "/tmp/$name.end"
    (echo 0 >/sys/fs/cgroup/case/cgroup.procs && exec migrate "$@") <"/tmp/$name.end" >"/tmp/$name" 2>&1 &
    eval "$name=$!"
    # The fifo has a writer until `release`.
    case $name in
    idle) exec 5>"/tmp/$name.end" ;;
    holes) exec 6>"/tmp/$name.end" ;;
    esac
    await 60 grep -q READY "/tmp/$name"
}
released() { # NAME
    local name=$1
    case $name in
    idle) exec 5>&- ;;
    holes) exec 6>&- ;;
    esac
    eval "wait \$$name" || die "$name: $(cat "/tmp/$name")"
    cat "/tmp/$name"
    rm "/tmp/$name.end"
}

# What was done is the device's: each page that the kernel says it migrated was copied by it, but for pages that it
# refused, that are no memory of programs (page tables' and drivers' pages copy themselves), or that were retried.
report() { # WHAT
    echo "$1: migrated $(migrated), by device $(since pages_by_device), by core $(since pages_by_core)," \
        "batched $(since pages_batched), submissions $(since submissions), given back $(since pairs_given_back)," \
        "not anonymous $(since pairs_not_anonymous), referenced $(since pairs_referenced)"
    [ "$(since pages_by_device)" -gt 0 ] || die "$1: none by the device"
    [ "$(since pages_by_core)" -eq 0 ] || die "$1: some by the core"
    # The kernel's counter, its tracepoint, the module's tracepoint, and the bytes are the same pages. What the device
    # copied and the kernel then did not migrate, or copied again, is a difference of a few.
    echo "$1: pgmigrate_success $(migrated), mm_migrate_pages $(traced_migrated), dray_copy $(traced_device)," \
        "bytes / 4096 $(($(since bytes_by_device) / 4096))"
    [ "$(traced_migrated)" -eq "$(migrated)" ] || die "$1: the kernel's tracepoint differs from its counter"
    [ "$(($(traced_device) * 4096))" -eq "$(since bytes_by_device)" ] || die "$1: bytes differ from the tracepoint"
    difference=$(($(since bytes_by_device) / 4096 - $(migrated)))
    [ "$difference" -ge 0 ] && [ $((difference * 100)) -le "$(migrated)" ] || die "$1: $difference pages copied in vain"
    # A submission has at least 64 pages, or all of its call's.
    sed -n 's/.*dray_copy: .* folios=\([0-9]*\) pages=\([0-9]*\) by=device submissions=\([0-9]*\) .*/\1 \2 \3/p' $trace/trace |
        awk -v name="$1" '
            {copies++; pages += $2; submissions += $3; most = $2 < 128 ? 1 : int($2 / 64)}
            $2 < 32 {few++; few_pages += $2}
            $3 > most && $1 == $2 {bad++; print "too many submissions: " $0}
            END {
                printf "%s: %d copies, %d pages, %d submissions (%.1f pages each); under 32 pages: %d copies, %d pages; without them %.1f pages a submission\n",
                    name, copies, pages, submissions, pages / submissions, few, few_pages,
                    (submissions > few) ? (pages - few_pages) / (submissions - few) : 0
                exit bad != 0
            }' || die "$1: more than a submission for 64 pages"
}

# Each copy as an event; `shape WORKLOAD,FOLIOS,PAGES,COUNT` lines of them are what figures/traces is made of.
start_trace
shapes() { # WORKLOAD=REASON...
    sed -n "s/.*dray_copy: reason=\([0-9]*\) .* folios=\([0-9]*\) pages=\([0-9]*\) .*/\1 \2 \3/p" $trace/trace | sort |
        uniq -c | awk -v workloads="$*" '
            BEGIN {
                for (n = split(workloads, all, " "); n > 0; n--) {split(all[n], one, "="); name[one[2]] = one[1]}
            }
            $2 in name {print "shape " name[$2] "," $3 "," $4 "," $1}'
    echo >$trace/trace
}

echo 1 >/proc/timer
mark
hold idle idle 67108864 4k
reclaim 64M
report demotion
shapes demotion=8
released idle

mark
hold holes fragments 268435456
echo 1 >/proc/sys/vm/compact_memory
report compaction
shapes compaction=0
released holes

# NUMA faults, often: the scan of an address space is every 100 ms, and no page is too cold.
at=/sys/kernel/debug/sched/numa_balancing
echo 0 >$at/scan_delay_ms
echo 100 >$at/scan_period_min_ms
echo 100 >$at/scan_period_max_ms
echo 1 >/proc/sys/kernel/numa_balancing
mark
migrate hot 8388608 4k $((60 * slow)) || die "hot"
report promotion
# The pages were moved away before they were promoted.
shapes promotion=5 moved=3
migrate move 33554432 2m 1
shapes huge=3
echo 0 >$trace/events/dray_migrate/enable
echo 0 >$trace/events/migrate/mm_migrate_pages/enable
echo 0 >/proc/timer
cat /proc/timer
# The histograms as data: `calls REASON,MODE,FROM,TO,COUNT` by pages of a call, `copies COPIER,ORDER,FROM,TO,COUNT` by ns.
awk '
    /^migrate_pages/ {kind = "calls"; split($2, a, "="); split($3, b, "=")}
    /^copy/ {kind = "copies"; split($2, a, "="); split($3, b, "=")}
    /^  / {split($1, range, "-"); print kind " " a[2] "," b[2] "," range[1] "," ($1 ~ /-/ ? range[2] : range[1]) "," $2}' /proc/timer

say "all of it, with refused descriptors, disabled queues, and the module unloaded and loaded again"
set_up_again() {
    rmmod dray_migrate || die "rmmod"
    insmod /lib/modules/dray_migrate.ko fail_every=97 timeout_ms=$((60000 * slow))
    # A queue that is not configured would be a shared one, without PASID, and spoil the whole configuration.
    set_migrate_wq 0
    set_migrate_wq 1
    for wq in 0 1; do
        bind_migrate $wq || die "queue $wq cannot be enabled again"
    done
    knob dsa_state 1
    knob dsa_copy_threshold 1
    knob use_dsa_copy_pages 1
    batch_all
}
migrate write 16777216 4k 0 >/tmp/write.4k 2>&1 &
small=$!
migrate write 16777216 2m 0 >/tmp/write.2m 2>&1 &
large=$!
hold idle idle 67108864 4k
now() { cut -d. -f1 /proc/uptime; }
rounds=0 injected=0 refused=0 lost=0 begin=$(now)
while [ "$rounds" -lt 2 ] || [ $(($(now) - begin)) -lt "$seconds" ]; do
    kill -0 $small && kill -0 $large || die "a writer has ended: $(cat /tmp/write.4k /tmp/write.2m)"
    set_up_again
    reclaim 32M
    echo 1 >/proc/sys/vm/compact_memory
    await 120 sh -c "! grep -q '^fallback_error 0' /sys/module/dray_migrate/parameters/counters"
    # A queue goes while it is used; then all of the module.
    unbind_migrate $((rounds % 2))
    injected=$((injected + $(counter faults_injected)))
    refused=$((refused + $(counter fallback_error)))
    lost=$((lost + $(counter pages_lost)))
    rounds=$((rounds + 1))
done
kill -USR1 $small $large
wait $small || die "writer of small pages: $(cat /tmp/write.4k)"
wait $large || die "writer of huge pages: $(cat /tmp/write.2m)"
cat /tmp/write.4k /tmp/write.2m
released idle
echo "$rounds rounds in $(($(now) - begin)) s: $injected descriptors refused, $refused pages copied by the core for that," \
    "$lost pages lost"
unload_migrate
dmesg | grep dray_migrate: | sed 's/.*dray_migrate: //' | sort | uniq -c | sort -rn | head
no_complaint
