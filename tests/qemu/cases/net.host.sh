# The switch, whose copies a virtual DSA makes, and one guest at both of its ports.
. "$(dirname "$0")/../host.sh"
a=$work/a.sock b=$work/b.sock
start "$work/vhost" "$a" "$b" -- vhost --port "$a" --port "$b" --forward switch --mover virtual --interrupt \
    --stats-file "$work/stats"
boot "$console" "$here/cases/net.sh" --net "$a" --net "$b,packed=on"
status=$?
end "$started_pid" || status=1
cat "$work/vhost"
no_failed_copy "$work/stats" || status=1
exit "$status"
