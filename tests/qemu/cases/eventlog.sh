# vm: --version 2
# Completion records that the device cannot write are in the event log, and the kernel writes them for it. 300 of them at
# once are more than the log's 64 entries: the device waits for the driver, and none is lost.
configure
enable 2 3
# A program that holds its file open, for the counts are the file's.
flood() { # FILE WAY COUNT BYTES HOW
    hold=1 copy "$@" >/tmp/copied &
    program=$!
    await 60 grep -q copied /tmp/copied
    [ "$(cat /tmp/copied)" = "copied $3 descriptors $(($3 * $4)) bytes 0 faults" ] || die "not: $(cat /tmp/copied)"
    echo "copy $*: $(cat /tmp/copied)"
}
counted() { # NAME NUMBER
    local file
    file=$(find /sys/devices -name "$1") || die "no $1"
    [ "$(cat "$file")" = "$2" ]
}
flood /dev/dsa/wq0.3 enqcmd 300 4096 records
await 30 counted cr_faults 300
counted cr_fault_failures 0 || die "the kernel could not write a record"
kill $program
wait $program || true
flood /dev/dsa/wq0.2 movdir64b 16 4096 records
await 30 counted cr_faults 16
kill $program
wait $program || true
# Where nothing can be written the program hears nothing, and the others go on.
flood /dev/dsa/wq0.3 enqcmd 100 4096 lost
await 30 counted cr_fault_failures 100
copied '20 descriptors 1310720 bytes 0 faults' /dev/dsa/wq0.2 movdir64b 20 65536
kill $program
wait $program || true
copied '20 descriptors 1310720 bytes 0 faults' /dev/dsa/wq0.3 enqcmd 20 65536
expect /sys/bus/dsa/devices/dsa0/state enabled
accel-config disable-device dsa0
expect /sys/bus/dsa/devices/dsa0/state disabled
