"""Starts a program again whenever it ends, as a kubelet would: `python -m hack.testbed.again PROGRAM ARGUMENT…`.

For operators that end by rules of their own, on a machine that is slow for a moment. SIGTERM ends both for good.
"""

import signal
import subprocess
import sys
import threading

from hack.testbed.process import die_with_me

# As the first back-off of a kubelet is longer: nothing here comes up in less.
_PAUSE_SECONDS = 1.0


def main() -> None:
    """Run it again and again until SIGTERM."""
    ending = threading.Event()
    running: list[subprocess.Popen[bytes]] = []

    def end(number: int, _frame: object) -> None:
        ending.set()
        for program in running:
            program.send_signal(number)

    signal.signal(signal.SIGTERM, end)
    while not ending.is_set():
        with subprocess.Popen(sys.argv[1:], preexec_fn=die_with_me()) as program:  # noqa: PLW1509 (as in process.py)
            running[:] = [program]
            if ending.is_set():
                program.terminate()
            code = program.wait()
        running.clear()
        if not ending.is_set():
            print(f"{sys.argv[1]} ended with {code}, and is started again", flush=True)
            ending.wait(_PAUSE_SECONDS)


if __name__ == "__main__":
    main()
