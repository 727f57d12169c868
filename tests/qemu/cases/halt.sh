# vm: --inject halt-flr@30 --inject halt@60
# The device halts under load. If it needs a function level reset the driver makes one, and its user queues are
# there again; if a reset command would do, the driver says that the device is halted and goes no further.
cd /sys/bus/dsa/devices
configure
# The driver restores the queues that were enabled, and all engines: a group whose queues were not would have
# engines alone, which Enable Device refuses.
enable 0 1 2 3
copy /dev/dsa/wq0.2 movdir64b 1000 16384 >/tmp/load 2>&1 &
load=$!
await 60 sh -c "dmesg | grep -q 'Clients has claim on wq 2'"
kill -9 $load 2>/dev/null || true
wait $load || true
await 60 grep -q enabled wq0.2/state
copy /dev/dsa/wq0.2 movdir64b 10 16384
copy /dev/dsa/wq0.2 movdir64b 1000 16384 >/tmp/load 2>&1 &
load=$!
await 60 sh -c "dmesg | grep -q 'Device is HALTED'"
dmesg | grep ' idxd ' | tail -12
kill -9 $load 2>/dev/null || true
