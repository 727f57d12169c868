# vm: --tiers --programs --watchdog 2000
# `dray tier` between two memory nodes: what it demotes is on the other node as the kernel counts it, and what is read
# again and again is found and comes back. By the kernel's migration: static programs by command, by number and by
# control group, with rights and without, through the end of dray; the kernel's tracepoint tells of as many pages. By
# the agent: with DAMON and with hints. The machine is set up for the kernel's own tiering, and set back.
[ -d /sys/devices/system/node/node1 ] || die "one memory node only"
echo 0 >/proc/sys/kernel/numa_balancing
export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu

# 8 MiB are read, 48 MiB are not, and 24 MiB have room on node 0.
tiered() { # TRACKING base|huge OPTION...
    local how=$1 pages=$2
    shift 2
    say "tracking $how, $pages pages $*"
    dray tier --back-end uffd --fast node:0:24M --slow node:1 --tracking "$how" --knob interval_ms=50 --overhead 50 --stats "$@" -- \
        tier 2048 12288 "$pages" 0 600 >/tmp/said 2>/tmp/stats || die "$(cat /tmp/said /tmp/stats)"
    cat /tmp/said /tmp/stats
    on_their_nodes
}
# The kernel's counts: written on node 0, demoted to node 1, and those that are read back on node 0.
on_their_nodes() {
    awk '/^WRITTEN/ {written = $3 + $6}
        /^DEMOTED/ {demoted = $4}
        /^FOUND/ {found = $3; cold = $7}
        END {exit !(written > 2048 && demoted >= 1024 && found >= 1920 && cold >= 6144)}' /tmp/said ||
        die "pages are not where they are to be"
    grep -q WHOLE /tmp/said || die "bytes are lost"
}

# The kernel of the guest monitors the whole machine, and lets nobody else: that is said.
stat=/sys/module/damon_stat/parameters/enabled
if [ "$(cat $stat 2>/dev/null)" = Y ]; then
    dray tier --tracking damon -- tier 256 1024 base 1 $((20 * slow)) 2>/tmp/stats || true
    cat /tmp/stats
    grep -q 'in use by the kernel.s damon_stat' /tmp/stats || die "nothing is said"
    echo N >$stat
fi
tiered damon base
grep -q 'tracking: reads and writes by DAMON' /tmp/stats || die "not by DAMON"
expect /sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds 0
tiered hints base
grep -q 'tracking: writes by PAGEMAP_SCAN, reads by hint faults' /tmp/stats || die "not by hints"

say "a process that runs"
mount -t tracefs trace /sys/kernel/tracing 2>/dev/null || true
tier-static 2048 12288 base 0 600 >/tmp/said 2>&1 &
program=$!
await 60 grep -q WRITTEN /tmp/said
dray tier watch --time 3600 --format json >/tmp/watched 2>/tmp/watch.err &
watch=$!
await 60 sh -c '[ "$(cat /sys/kernel/tracing/instances/dray-*/events/migrate/mm_migrate_pages/enable)" = 1 ]'
dray tier --fast node:0:24M --slow node:1 --tracking damon --knob interval_ms=50 --overhead 50 --stats --pid $program \
    >/tmp/moved 2>/tmp/stats || die "$(cat /tmp/moved /tmp/stats)"
cat /tmp/moved /tmp/stats
wait $program || die "the program: $(cat /tmp/said)"
cat /tmp/said
on_their_nodes
grep -q 'tracking: reads and writes by DAMON' /tmp/stats || die "not by DAMON"
expect /sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds 0
kill -TERM $watch
wait $watch || die "watch: $(cat /tmp/watch.err)"
cat /tmp/watched
# Both count the same pages: the kernel those that it migrated for a system call, dray those that changed node.
ours=$(sed -E 's/^([0-9]+) pages demoted.*, ([0-9]+) promoted.*/\1 \2/' /tmp/moved | awk '{print $1 + $2}')
grep -q 'process .* tiers' /tmp/stats && ! grep -q 'before they were looked at' /tmp/stats || die "it ended, and that is an error"
awk -v ours="$ours" '/"reason": "syscall_or_cpuset"/ {calls = 1}
    /"succeeded"/ {pages += $2}
    END {print "watch: " pages + 0 " pages, dray: " ours; exit !(calls && pages >= 2048 && ours >= 2048)}' /tmp/watched ||
    die "few pages"
[ -z "$(ls /sys/kernel/tracing/instances)" ] || die "watch leaves its trace behind"

say "a control group: two static programs, a small and a huge page each"
mkdir -p /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /sys/fs/cgroup/app/one /sys/fs/cgroup/app/two
dray tier --fast 32M --knob interval_ms=50 --overhead 50 --stats --cgroup app >/tmp/moved 2>/tmp/stats &
session=$!
grouped() { # GROUP PAGES
    echo 0 >/sys/fs/cgroup/app/"$1"/cgroup.procs
    exec tier-static 2048 10240 "$2" 0 600 >/tmp/said."$2" 2>&1
}
(grouped one base) &
one=$!
(grouped two huge) &
two=$!
wait $one || die "$(cat /tmp/said.base)"
wait $two || die "$(cat /tmp/said.huge)"
await 10 rmdir /sys/fs/cgroup/app/one /sys/fs/cgroup/app/two
rmdir /sys/fs/cgroup/app
wait $session || die "the group is gone: $(cat /tmp/moved /tmp/stats)"
cat /tmp/moved /tmp/stats /tmp/said.base /tmp/said.huge
grep -q "fast node 0 .*, slow node 1 .*: from the kernel's memory tiers" /tmp/stats || die "not discovered"
awk '/^FOUND/ {found += $3; cold += $7} /^WHOLE/ {whole++} END {exit !(whole == 2 && found >= 3840 && cold >= 8192)}' \
    /tmp/said.base /tmp/said.huge || die "pages are not where they are to be"

say "without rights"
mkdir -p /etc
echo 'user:x:1000:1000::/:/bin/sh' >>/etc/passwd
chmod 1777 /tmp
su user -c "exec dray tier --pid $$" >/tmp/moved 2>/tmp/stats && die "another user's process"
cat /tmp/stats
grep -q "cannot be looked into" /tmp/stats || die "nothing is said"
# What moves its pages is killed: the program goes on, and nothing is lost.
su user -c 'exec dray tier --fast 2M --policy rotate --knob interval_ms=20 -- tier-static 256 1024 base 7 5' \
    >/tmp/said 2>/tmp/stats &
session=$!
await 60 grep -q WRITTEN /tmp/said
await 60 grep -q 'without CAP_SYS_NICE and CAP_SYS_ADMIN' /tmp/stats
await 60 grep -q DEMOTED /tmp/said
kill -KILL $session || die "it has ended"
await 60 grep -q WHOLE /tmp/said
cat /tmp/stats /tmp/said
! grep -q 'pages demoted' /tmp/stats || die "it was not killed"

say "the kernel's own tiering"
demotion=$(cat /sys/kernel/mm/numa/demotion_enabled) balancing=$(cat /proc/sys/kernel/numa_balancing)
dray tier prepare --node 1 --state /tmp/prepared || die "prepare"
expect /sys/kernel/mm/numa/demotion_enabled true
expect /proc/sys/kernel/numa_balancing 2
[ -z "$(cat /sys/devices/system/node/node1/cpulist)" ] || die "node 1 has cores"
dray tier prepare --node 1 --state /tmp/prepared 2>/tmp/stats && die "prepared twice"
grep -q 'the machine is prepared' /tmp/stats || die "$(cat /tmp/stats)"
dray tier prepare --undo --state /tmp/prepared || die "undo"
expect /sys/kernel/mm/numa/demotion_enabled "$demotion"
expect /proc/sys/kernel/numa_balancing "$balancing"
