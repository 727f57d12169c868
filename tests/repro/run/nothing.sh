# Does not look for a device. With an argument it ends as that says.
case ${1-} in
    signal) kill -SEGV $$ ;;
    missing) exec /no/such/command ;;
esac
