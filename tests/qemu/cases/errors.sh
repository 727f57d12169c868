# vm: --inject 6=0x28
# A command that the device refuses: the driver says which, and the next attempt succeeds.
cd /sys/bus/dsa/devices
configure
accel-config enable-device dsa0
accel-config enable-wq dsa0/wq0.2 && die "Enable WQ was to fail"
expect dsa0/cmd_status 0x28
dmesg | grep -i 'idxd.*wq' | tail -3
accel-config enable-wq dsa0/wq0.2
expect wq0.2/state enabled
copy /dev/dsa/wq0.2 movdir64b 4 65536
