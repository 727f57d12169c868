# The driver is taken from the device, and the function reset, while programs submit.
cd /sys/bus/dsa/devices
slot=0000:00:01.0
configure
enable 2 3
copy /dev/dsa/wq0.3 enqcmd 1 262144 endless >/tmp/load 2>&1 &
load=$!
await 30 grep -q 1 wq0.3/clients
echo $slot >/sys/bus/pci/drivers/idxd/unbind
[ ! -e /sys/bus/dsa/devices/dsa0 ] || die "the device is still there"
kill -9 $load 2>/dev/null || true
wait $load || true
echo $slot >/sys/bus/pci/drivers/idxd/bind
cd /sys/bus/dsa/devices
expect dsa0/state disabled
configure
enable 2 3
copy /dev/dsa/wq0.3 enqcmd 20 65536
# Function level reset under load: the driver saves its configuration, and has it again afterwards.
copy /dev/dsa/wq0.3 enqcmd 1 262144 endless >/tmp/load 2>&1 &
load=$!
await 30 grep -q 1 wq0.3/clients
cat /sys/bus/pci/devices/$slot/reset_method
echo 1 >/sys/bus/pci/devices/$slot/reset
kill -9 $load 2>/dev/null || true
wait $load || true
dmesg | grep idxd | tail -5
