# The stock driver finds the device, and accel-config leads it through its life.
cd /sys/bus/dsa/devices
expect dsa0/state disabled
expect dsa0/pasid_enabled 1
expect dsa0/version 0x100
expect dsa0/max_work_queues 8
expect dsa0/max_engines 4
dmesg | grep -q 'idxd 0000:00:01.0: Intel(R) Accelerator Device (v100)' || die "no greeting"
configure
enable 0 1 2 3
expect dsa0/state enabled
[ -c /dev/dsa/wq0.2 ] && [ -c /dev/dsa/wq0.3 ] || die "no character devices"
[ -d /sys/class/dma/dma0chan0 ] && [ -d /sys/class/dma/dma0chan1 ] || die "no DMA channels"
accel-config list | grep -q '"state":"enabled"' || die "accel-config lists nothing"
accel-config save-config -s /tmp/saved
accel-config disable-wq dsa0/wq0.2
expect wq0.2/state disabled
[ ! -e /dev/dsa/wq0.2 ] || die "a character device of a disabled queue"
# Once more, from a file.
accel-config disable-device dsa0
expect dsa0/state disabled
expect wq0.0/state disabled
accel-config load-config -c /tmp/saved -e
expect dsa0/state enabled
expect wq0.1/state enabled
expect dsa0/errors 00000000,00000000,00000000,00000000,00000000,00000000,00000000,00000000
# A queue that has been disabled has no configuration any more.
accel-config disable-wq dsa0/wq0.0
if accel-config enable-wq dsa0/wq0.0; then die "a queue without a name was enabled"; fi
expect wq0.0/state disabled
# The driver lets go of a disabled device and takes it again.
accel-config disable-device dsa0
echo 0000:00:01.0 >/sys/bus/pci/drivers/idxd/unbind
[ ! -e /sys/bus/dsa/devices/dsa0 ] || die "the device is still there"
echo 0000:00:01.0 >/sys/bus/pci/drivers/idxd/bind
expect /sys/bus/dsa/devices/dsa0/state disabled
