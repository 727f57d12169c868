# vm: --inject 6=0x28
# A command that the device refuses: the driver has its code, and the next attempt succeeds.
cd /sys/bus/dsa/devices
configure
accel-config enable-device dsa0
# Error 0x28 of Enable WQ: the maximum transfer size is too large.
if accel-config enable-wq dsa0/wq0.3; then die "Enable WQ was to fail"; fi
expect dsa0/cmd_status 0x28
expect wq0.3/state disabled
accel-config enable-wq dsa0/wq0.3
expect wq0.3/state enabled
copied '4 descriptors 262144 bytes 0 faults' /dev/dsa/wq0.3 enqcmd 4 65536
# Page requests have no way over vfio-user: a queue whose descriptors may block on a fault is refused, with this error.
accel-config config-wq dsa0/wq0.2 --block-on-fault=1
if accel-config enable-wq dsa0/wq0.2; then die "a queue that blocks on faults was enabled"; fi
expect dsa0/cmd_status 0x25
