#!/usr/bin/env python3
"""Elements for a `shm:` source of Holdfast, put into memory that both share: the calls of holdfast_producer.h for Python.

    with Producer("/run/camera.sock") as producer:
        producer.put(b"an element")

Python has no atomic stores of its own, so this is holdfast_producer.h itself, compiled by `cc` when it is first needed. Where there is
no compiler, build it elsewhere and name it in HOLDFAST_PRODUCER_LIBRARY:

    cc -O2 -shared -fPIC -D_GNU_SOURCE -DHOLDFAST_API=extern -include holdfast_producer.h -x c /dev/null -o producer.so

As a program it sends every line of its standard input as one element, as `given` with its number and its first word as attributes:

    holdfast record r.hf --size 1GiB --source shm:/tmp/demo.sock --name demo &
    seq 1000 | ./holdfast_producer.py put /tmp/demo.sock
"""

import ctypes
import errno
import functools
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

WAIT, TRY, DROP = range(3)


@functools.cache
def library():
    """The compiled calls."""
    ready = os.environ.get("HOLDFAST_PRODUCER_LIBRARY")
    if ready:
        return declared(ctypes.CDLL(ready, use_errno=True))
    header = pathlib.Path(__file__).with_name("holdfast_producer.h")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "producer.so")
        options = ["-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", "-DHOLDFAST_API=extern", "-include", header]
        subprocess.run(["cc", *options, "-x", "c", "/dev/null", "-o", path], check=True)
        # It stays when its file goes.
        return declared(ctypes.CDLL(path, use_errno=True))


def declared(calls):
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    calls.holdfast_open.argtypes = [pointer, ctypes.c_char_p]
    calls.holdfast_send.argtypes = [pointer, ctypes.c_int, ctypes.c_char_p, size, pointer, size]
    calls.holdfast_flush.argtypes = [pointer]
    calls.holdfast_close.argtypes = [pointer]
    calls.holdfast_close.restype = None
    calls.holdfast_dropped.argtypes = [pointer]
    calls.holdfast_dropped.restype = ctypes.c_uint64
    return calls


def header(*values):
    """The values of attributes that are given with an element, in the order of the schema; None is a null."""
    return b"".join(map(value, values))


def value(given):
    if given is None:
        return b"\xff\xff"
    if isinstance(given, bool):
        given = bytes([given])
    elif isinstance(given, int):
        given = struct.pack("<Q", given & (2**64 - 1))
    elif isinstance(given, float):
        given = struct.pack("<d", given)
    elif isinstance(given, str):
        given = given.encode()
    return struct.pack("<H", len(given)) + given


class Producer:
    """One visit at a source. For one thread at a time. What fails raises OSError; EPIPE (BrokenPipeError): the recorder has ended,
    and what that call should have put was not taken."""

    def __init__(self, path):
        # More than the structure has; its words are aligned.
        self.memory = (ctypes.c_uint64 * 32)()
        self.calls = library()
        self.path = path
        self.check(self.calls.holdfast_open(self.memory, os.fsencode(path)))

    def check(self, answer):
        if answer < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), str(self.path))
        return answer

    def send(self, how, element, attributes=b""):
        """0: it is in; 1: it was given up. `element` is bytes, or anything that shows its memory."""
        view = memoryview(element).cast("B")
        if view.readonly:
            # Bytes are passed as they are, all else that cannot be written to is copied.
            passed = element if isinstance(element, bytes) else bytes(view)
        else:
            passed = (ctypes.c_char * len(view)).from_buffer(view)
        while True:
            answer = self.calls.holdfast_send(self.memory, how, attributes, len(attributes), passed, len(view))
            # Python has seen to the signal in between.
            if answer >= 0 or ctypes.get_errno() != errno.EINTR:
                return self.check(answer)

    def put(self, element, attributes=b""):
        """Puts an element, waiting for room."""
        self.send(WAIT, element, attributes)

    def try_put(self, element, attributes=b""):
        """The same without waiting: whether there was room."""
        try:
            return self.send(TRY, element, attributes) == 0
        except BlockingIOError:
            return False

    def offer(self, element, attributes=b""):
        """The same without waiting; what finds no room is given up, and the ring has a gap that counts it."""
        return self.send(DROP, element, attributes) == 0

    def flush(self):
        """Waits until the recorder has taken all that was put."""
        while self.calls.holdfast_flush(self.memory) < 0:
            if ctypes.get_errno() != errno.EINTR:
                self.check(-1)

    @property
    def dropped(self):
        """Elements that were given up."""
        return self.calls.holdfast_dropped(self.memory)

    def close(self):
        self.calls.holdfast_close(self.memory)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def come_back(path):
    """The recorder has ended: until another one answers there."""
    while True:
        try:
            return Producer(path)
        except OSError:
            time.sleep(0.02)


def main(arguments):
    kinds = ["put", "drop", "given"]
    if len(arguments) != 2 or arguments[0] not in kinds:
        sys.exit("usage: holdfast_producer.py put|drop|given PATH < lines")
    how, path = arguments
    try:
        producer = Producer(path)
    except OSError as error:
        sys.exit(f"holdfast_producer.py: cannot open: {error}")
    dropped = 0
    for number, line in enumerate(sys.stdin.buffer, 1):
        line = line.removesuffix(b"\n")
        given = header(number, line.split(b" ", 1)[0][:100]) if how == "given" else b""
        while True:
            try:
                dropped += producer.send(DROP if how == "drop" else WAIT, line, given)
                break
            except BrokenPipeError:
                producer.close()
                producer = come_back(path)
    producer.close()
    if dropped:
        print(f"holdfast_producer.py: {dropped} lines were dropped", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
