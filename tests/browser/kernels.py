"""Kernels that have Flowbook imported when they begin, forked from one process that imported it.

To start and to import takes a kernel a second of a processor, longer than most of what tests have
it do. This program is both sides:

    python kernels.py                           # forks kernels; its input is the listening socket
    python kernels.py SOCKET CONNECTION_FILE    # is what JupyterLab takes for a kernel

What stands for a kernel passes interrupts on, and each of the two ends when the other does.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from threading import Thread

# No message is longer: it is the environment of a kernel, mostly.
SIZE = 1 << 20

# What an import does in a notebook.
CONNECT = ["from flowbook import _notebook", "_notebook.connect()", "del _notebook"]


def listening(path: str) -> socket.socket:
    """Where kernels are asked for, before anybody answers."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    return listener


def fork_kernels(listener: socket.socket) -> None:
    """Fork a kernel for each that asks, without end."""
    from ipykernel.kernelapp import IPKernelApp

    import flowbook  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody asks how a kernel ended.
    while True:
        client, _ = listener.accept()
        with client:
            if os.fork() == 0:
                listener.close()
                connection_file = _take_place_of(client)
                arguments = [f"-f={connection_file}", f"--IPKernelApp.parent_handle={os.getppid()}"]
                sys.argv = ["ipykernel_launcher", *arguments]
                IPKernelApp.launch_instance(arguments, exec_lines=CONNECT)
                sys.exit()


def _take_place_of(client: socket.socket) -> str:
    """Have this process be as the one that asks for it; return its connection file."""
    message, outputs, _, _ = socket.recv_fds(client, SIZE, 2)
    asked = json.loads(message)
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for output, number in zip(outputs, (1, 2), strict=True):
        os.dup2(output, number)
        os.close(output)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    client.send(str(os.getpid()).encode())
    Thread(target=_end_with, args=(client.dup(),), daemon=True).start()
    file: str = asked["connection_file"]
    return file


def _end_with(client: socket.socket) -> None:
    client.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)


def stand_for_kernel(path: str, connection_file: str) -> None:
    """Ask for a kernel, and end with it."""
    asked = {
        "connection_file": connection_file,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(path)
        socket.send_fds(server, [json.dumps(asked).encode()], [1, 2])
        kernel = int(server.recv(SIZE))
        signal.signal(signal.SIGINT, lambda *_: os.kill(kernel, signal.SIGINT))
        server.recv(1)


if __name__ == "__main__":
    if sys.argv[1:]:
        stand_for_kernel(*sys.argv[1:])
    else:
        fork_kernels(socket.socket(fileno=os.dup(0)))
