# vm: --tiers --watchdog 600 --inject halt@60
# The device halts while it copies pages: what it never ended stays where it was, the core copies the rest, and the
# program that writes all the time finds each word as it wrote it.
. /migrate.sh
start_migrate 0 1
knob reason_mask 8
echo 2000 >/sys/module/dray_migrate/parameters/timeout_ms
migrate write 16777216 4k 0 >/tmp/small 2>&1 &
small=$!
await 60 sh -c "dmesg | grep -q 'need system reset\|HALTED\|halted'"
await 60 sh -c "! grep -q '^fallback_no_queue 0' /sys/module/dray_migrate/parameters/counters"
[ "$(dmesg | grep -c 'no queue can be used: the core copies')" -eq 1 ] || die "the fall-back is not said once"
sleep 1
kill -USR1 $small
wait $small || die "small pages: $(cat /tmp/small)"
cat /tmp/small /sys/module/dray_migrate/parameters/counters
unload_migrate
dmesg | grep -E 'idxd|dray_migrate' | tail -8
no_complaint
