"""Runs redis-server under a command, with values of so many bytes: redis.py DIR VALUES BYTES COMMAND...

Prints the server's allocator, what DEBUG DIGEST says, and how BGSAVE ended. What the server writes to stderr is
passed on. A server that stands still is ended, and this ends with 1.
"""
import atexit, fcntl, os, random, signal, socket, subprocess, sys, termios, time

# Some twenty times as long as it takes on a machine with three other loads on each core.
SECONDS = 400

directory, values, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
path = os.path.join(directory, "socket")
server = subprocess.Popen(
    sys.argv[4:]
    + ["redis-server", "--port", "0", "--unixsocket", path, "--dir", directory, "--save", ""]
    + ["--enable-debug-command", "yes", "--daemonize", "no"],
    stdout=subprocess.PIPE,
    start_new_session=True,
)


def end():
    """Ends what was started and still runs: the command, and the server that it has started."""
    for number, patience in (signal.SIGTERM, 10), (signal.SIGKILL, 60):
        try:
            # The command may have ended without the server that it has started.
            os.killpg(server.pid, number)
        except ProcessLookupError:
            return
        try:
            server.wait(patience)
        except subprocess.TimeoutExpired:
            pass


def late(number, frame):
    sys.exit(f"redis-server has stood still: {doing}, after {SECONDS} seconds")


atexit.register(end)
doing = "it has not said that it is ready"
signal.signal(signal.SIGALRM, late)
signal.alarm(SECONDS)
for line in server.stdout:
    if b"eady to accept connections" in line or b"server is now ready" in line:
        break
else:
    sys.exit("the server has not started")
# Whatever else it says is read, so that it never waits.
import threading

threading.Thread(target=server.stdout.read, daemon=True).start()

connection = socket.socket(socket.AF_UNIX)
connection.connect(path)
answers = connection.makefile("rb")


def answer():
    line = answers.readline()
    kind, rest = line[:1], line[1:-2]
    if kind in b"+-":
        return rest
    if kind == b":":
        return int(rest)
    if kind == b"$":
        return None if int(rest) < 0 else answers.read(int(rest) + 2)[:-2]
    return [answer() for _ in range(int(rest))]


def send(part):
    """Sends a part when the server has read the parts before: what it copies does not depend on what else runs."""
    while fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)) != bytes(4):
        time.sleep(0)
    connection.sendall(part)


def command(*words):
    global doing
    doing = f"no answer to {words[:2]}"
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    send(b"*%d\r\n" % len(words))
    for word in words:
        send(b"$%d\r\n" % len(word))
        send(word + b"\r\n")
    return answer()


random.seed(7)
held = {}
for index in range(values):
    held[index] = random.randbytes(size)
    assert command("SET", f"k{index}", held[index]) == b"OK"
for _ in range(3):
    for index, value in held.items():
        assert command("GET", f"k{index}") == value, index
for index in range(values // 3):
    more = bytes(size // 10)
    command("SETRANGE", f"k{index}", 1000, more)
    value = held[index]
    value = value[:1000] + more + value[1000 + len(more) :]
    command("APPEND", f"k{index}", value)
    held[index] = value + value
    assert command("GETRANGE", f"k{index}", 0, -1) == held[index], index
memory = command("INFO", "memory").split()
print([line for line in memory if b"mem_allocator" in line][0].decode())
print(command("DEBUG", "DIGEST").decode())
command("BGSAVE")
while b"rdb_bgsave_in_progress:1" in command("INFO", "persistence"):
    pass
status = [line for line in command("INFO", "persistence").split() if b"bgsave_status" in line]
print(status[0].decode())
doing = "it does not end"
connection.sendall(b"*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n")
code = server.wait()
check = subprocess.run(
    ["redis-check-rdb", os.path.join(directory, "dump.rdb")], stdout=subprocess.PIPE
)
print("dump", check.returncode)
sys.exit(code)
