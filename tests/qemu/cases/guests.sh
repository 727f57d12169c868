# One of two guests that a switch connects. The host names it, and reads what they say.
load_network
number=$(sed -n 's/.*dray.guest=\([12]\).*/\1/p' /proc/cmdline)
namespace net eth0 "10.0.0.$number"
case $number in
1)
    receive $net
    echo LISTENING
    wait $listener
    echo "sum $(sha256sum </tmp/arrived)"
    # The other guest pings until it ends.
    await 120 sh -c "! nsenter -t $net -n ping -c 1 -w 2 10.0.0.2 >/dev/null"
    ;;
2)
    within $net ping -c 10 -i 0.2 -w $((60 * slow)) 10.0.0.1 | grep '10 packets transmitted, 10 packets received' || die "no ping"
    dd if=/dev/urandom of=/tmp/file bs=1M count=8 2>/dev/null
    echo "sum $(sha256sum </tmp/file)"
    send $net 10.0.0.1 /tmp/file
    within $net ping -c 10 -i 0.2 -w $((60 * slow)) 10.0.0.1 | grep '10 packets transmitted, 10 packets received' || die "no ping"
    ;;
esac
