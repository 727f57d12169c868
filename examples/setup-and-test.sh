#!/bin/sh
# Configures a device by the driver's files alone, as on a fresh machine, and runs program.c on it.
#
#   dray run --personality 5.18 -- sh setup-and-test.sh
set -eu
here=$(dirname "$0")
devices=/sys/bus/dsa/devices
drivers=/sys/bus/dsa/drivers

set_to() {
    echo "$2" >"$devices/$1"
}

set_to wq0.0/group_id 0
set_to wq0.0/mode shared
set_to wq0.0/size 16
set_to wq0.0/threshold 16
set_to wq0.0/priority 10
set_to wq0.0/type user
set_to wq0.0/name app
# Kernels from 6.7 on ask for the driver, too.
if [ -e "$devices/wq0.0/driver_name" ]; then
    set_to wq0.0/driver_name user
fi
set_to engine0.0/group_id 0
echo dsa0 >"$drivers/idxd/bind"
echo wq0.0 >"$drivers/user/bind"

program=$(mktemp)
trap 'rm -f "$program"' EXIT
cc -O2 -o "$program" "$here/program.c"
"$program" /dev/dsa/wq0.0
