# vm: --inject halt@30
# The device halts under load: the driver says so, resets it, and it works again.
cd /sys/bus/dsa/devices
configure
enable 2
copy /dev/dsa/wq0.2 movdir64b 100 65536 >/tmp/load 2>&1 &
load=$!
await 60 sh -c "dmesg | grep -q 'idxd 0000:00:01.0: .*[Hh]alt'"
dmesg | grep idxd | tail -8
kill -9 $load 2>/dev/null || true
wait $load || true
