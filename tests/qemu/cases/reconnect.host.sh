# The back end is killed, and started again. PACKED=1: with packed rings, whose state QEMU
# does not keep: the driver is loaded again.
. "$(dirname "$0")/../host.sh"
a=$work/a.sock b=$work/b.sock
packed=${PACKED:-0} properties=
[ "$packed" = 0 ] || properties=,packed=on
switch=(vhost --port "$a" --port "$b" --forward switch --mover virtual --interrupt --stats-file "$work/stats")
start "$work/vhost" "$a" "$b" -- "${switch[@]}"
boot "$console" "$here/cases/reconnect.sh" --net "$a$properties" --net "$b$properties" --append "dray.packed=$packed" &
guest=$!
started+=("$guest")
await_text "$guest" '^READY' "$console" && {
    # Sockets stay behind, as after a crash.
    kill -9 "$started_pid"
    wait "$started_pid" 2>/dev/null
    rm -f "$a" "$b"
    await_text "$guest" '^SILENT' "$console"
    start "$work/again" "$a" "$b" -- "${switch[@]}"
}
wait "$guest"
status=$?
end "$started_pid" || status=1
cat "$work/vhost" "$work/again"
no_failed_copy "$work/stats" || status=1
exit "$status"
