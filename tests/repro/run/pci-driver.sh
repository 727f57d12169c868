# The PCI function of a device: its driver, taken away and given back. Right: exit code 0
set -eu
cd /sys/bus/pci/devices
function=$(basename "$(dirname "$(readlink -f /sys/bus/dsa/devices/dsa0)")")
test "$(basename "$(readlink -f "$function/driver")")" = idxd
test -e "/sys/bus/pci/drivers/idxd/$function/dsa0"
if command -v lspci >/dev/null; then lspci -k -s "$function" | grep "Kernel driver in use: idxd"; fi
echo "$function" >"$function/driver/unbind"
test ! -e "$function/driver"
test ! -e /sys/bus/dsa/devices/dsa0
test ! -e /sys/bus/dsa/devices/wq0.0
test ! -e /dev/dsa/wq0.0
if (echo "$function" >/sys/bus/pci/drivers/idxd/unbind) 2>/dev/null; then exit 1; fi
echo "$function" >/sys/bus/pci/drivers/idxd/bind
test "$(cat /sys/bus/dsa/devices/dsa0/state)" = disabled
test "$(cat /sys/bus/dsa/devices/wq0.0/size)" = 0
if (echo "$function" >/sys/bus/pci/drivers/idxd/bind) 2>/dev/null; then exit 1; fi
if (echo 0000:00:00.7 >/sys/bus/pci/drivers/idxd/unbind) 2>/dev/null; then exit 1; fi
echo right
