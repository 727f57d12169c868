# vm: --tiers --watchdog 600
# The device is disabled, and reset, while its queues copy pages for programs that write without end: the core copies
# instead, nothing is lost, and the queues are used again when they are enabled again.
. /migrate.sh
start_migrate 0 1
knob reason_mask 8
echo 2000 >/sys/module/dray_migrate/parameters/timeout_ms
migrate write 16777216 4k 0 >/tmp/small 2>&1 &
small=$!
migrate write 16777216 2m 0 >/tmp/large 2>&1 &
large=$!
grows() { # COUNTER: waits until it has grown
    local is
    is=$(counter "$1")
    await 60 sh -c "[ \$(sed -n 's/^$1 //p' /sys/module/dray_migrate/parameters/counters) -gt $is ]"
}
back() {
    bind_migrate 0 && bind_migrate 1 || die "the queues cannot be enabled again"
    grows pages_by_device
}
grows pages_by_device
say "a queue is disabled"
unbind_migrate 1
grows pages_by_device
say "the device is disabled"
accel-config disable-device dsa0
grows fallback_no_queue
# A disabled device has no configuration.
configure_migrate 0 1
accel-config enable-device dsa0 || die "the device cannot be enabled again"
back
say "function level reset"
echo 1 >/sys/bus/pci/devices/0000:00:01.0/reset
grows fallback_no_queue
expect /sys/bus/dsa/devices/dsa0/state enabled
set_migrate_wq 0
set_migrate_wq 1
back
kill -USR1 $small $large
wait $small || die "small pages: $(cat /tmp/small)"
wait $large || die "huge pages: $(cat /tmp/large)"
cat /tmp/small /tmp/large /sys/module/dray_migrate/parameters/counters
unload_migrate
no_complaint
