# Copies without end, for a guest that is killed.
configure
enable 2 3
copy /dev/dsa/wq0.2 movdir64b 1 1000000 endless >/tmp/first 2>&1 &
copy /dev/dsa/wq0.3 enqcmd 1 1000000 endless >/tmp/second 2>&1 &
await 30 grep -q 1 /sys/bus/dsa/devices/wq0.2/clients
await 30 grep -q 1 /sys/bus/dsa/devices/wq0.3/clients
sleep 1
echo LOADED
wait
