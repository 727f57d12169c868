# Function level reset while programs submit: the driver saves its configuration and has it again afterwards.
cd /sys/bus/dsa/devices
configure
# The driver restores the queues that were enabled, and all engines: a group whose queues were not would have
# engines alone, which Enable Device refuses.
enable 0 1 2 3
for way in '2 movdir64b' '3 enqcmd'; do
    set -- $way
    copy "/dev/dsa/wq0.$1" "$2" 1 1000000 endless >"/tmp/load.$1" 2>&1 &
    eval "load$1=$!"
    await 30 grep -q 1 "wq0.$1/clients"
done
sleep 1
echo 1 >/sys/bus/pci/devices/0000:00:01.0/reset
kill -9 $load2 $load3 2>/dev/null || true
wait $load2 || true
wait $load3 || true
expect dsa0/state enabled
expect wq0.2/state enabled
expect wq0.3/state enabled
copy /dev/dsa/wq0.2 movdir64b 20 65536
copy /dev/dsa/wq0.3 enqcmd 20 65536
dmesg | grep ' idxd ' | tail -8
