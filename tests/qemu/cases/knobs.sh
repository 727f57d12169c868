# vm: --tiers
# The knobs of page migration and their rules, the timer's life, and what is refused: a kernel that the module does not
# know, queues of the wrong type or mode, no queue at all.
. /migrate.sh
vm=/proc/sys/vm
echo 0 >/proc/sys/kernel/numa_balancing

# A kernel without a member that the module would need; it says which.
if insmod /lib/modules/dray_migrate.ko unknown=no_such_member 2>/dev/null; then die "an unknown kernel was taken"; fi
dmesg | grep -q 'dray_migrate: struct idxd_wq has no no_such_member as it is known' || die "it does not say what differs"
insmod /lib/modules/dray_migrate.ko timeout_ms=$((60000 * slow))

# Without a queue there is nothing to enable, and the order is dsa_state, use_dsa_copy_pages.
refused dsa_state 1
dmesg | grep -q 'dsa_state: no enabled work queue has driver_name=dray_migrate' || die "no reason"
refused use_dsa_copy_pages 1
for bad in 'dsa_state 2' 'use_dsa_copy_pages -1' 'limit_chans 0' 'limit_chans 9' 'limit_mt_num 0' 'limit_mt_num 17' \
    'dsa_copy_threshold 0' 'dsa_copy_threshold 1025' 'use_concur_to_compact 2' 'use_concur_to_demote x' \
    'reason_mask 1024' 'nr_dma_chan 9' 'min_bytes 0'; do
    refused $bad
done
expect $vm/limit_chans 8
expect $vm/limit_mt_num 4
expect $vm/dsa_copy_threshold 12
# Two names of one knob.
knob nr_dma_chan 2
expect $vm/limit_chans 2
knob min_bytes 40000
expect $vm/dsa_copy_threshold 10
knob use_concur_to_compact 1
knob use_concur_to_demote 1
expect $vm/reason_mask 257
knob reason_mask 0
expect $vm/use_concur_to_demote 0

# Queues of the wrong kind.
configure_migrate 0
configure_migrate_wq 1 type=user
configure_migrate_wq 2 driver_name=dmaengine
configure_migrate_wq 3 mode=shared
accel-config enable-device dsa0
if bind_migrate 1; then die "a user queue was taken"; fi
dmesg | grep -q "dray_migrate: wq0.1: its type is not kernel" || die "no reason for the queue's refusal"
if bind_migrate 2; then die "another driver's queue was taken"; fi
if bind_migrate 3; then die "a shared queue without a threshold was taken"; fi
expect /sys/bus/dsa/devices/wq0.3/state disabled

# A shared queue (ENQCMDS), and the rest of the order.
echo 12 >/sys/bus/dsa/devices/wq0.3/threshold
bind_migrate 3 || die "the shared queue was refused"
knob dsa_state 1
knob use_dsa_copy_pages 1
refused dsa_state 0
refused limit_chans 1
refused cpu_multi_copy_pages 1
knob use_dsa_copy_pages 0
knob cpu_multi_copy_pages 1
refused use_dsa_copy_pages 1
knob cpu_multi_copy_pages 0
knob use_dsa_copy_pages 1
knob reason_mask 8

# The timer: started once, stopped once, read.
if echo 0 2>/dev/null >/proc/timer; then die "a stopped timer was stopped"; fi
echo 1 >/proc/timer
if echo 1 2>/dev/null >/proc/timer; then die "a running timer was started"; fi
if echo 2 2>/dev/null >/proc/timer; then die "the timer took a 2"; fi
mark
migrate move 4194304 4k 1
echo 0 >/proc/timer
cat /proc/timer
[ "$(since pages_by_device)" -eq 1024 ] || die "not by the shared queue"
grep -q "^migrate_pages reason=syscall_or_cpuset mode=sync calls=1 pages=1024 failed=0" /proc/timer || die "the timer's calls"
grep -q "^copy by=device order=9 copies=2 pages=1024" /proc/timer || die "the timer's copies"
[ "$(migrated)" -eq 1024 ] || die "pgmigrate_success"
migrate move 1048576 4k 1
grep -q "calls=1 pages=1024" /proc/timer || die "a stopped timer counts"

# Below the threshold the core copies.
knob dsa_copy_threshold 1024
mark
migrate move 1048576 4k 1
[ "$(since pages_by_core)" -eq 256 ] || die "not by the core below the threshold"
knob dsa_copy_threshold 1

# The queue goes: the core copies, counted, and the log says it once.
unbind_migrate 3
mark
migrate move 1048576 4k 1
migrate move 1048576 4k 1
[ "$(since fallback_no_queue)" -eq 512 ] || die "the fall-back is not counted"
[ "$(dmesg | grep -c 'no queue can be used: the core copies')" -eq 1 ] || die "the fall-back is not said once"
# The device goes, too.
accel-config disable-device dsa0
migrate move 1048576 4k 1
unload_migrate
no_complaint
