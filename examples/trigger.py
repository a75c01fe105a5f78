#!/usr/bin/env python3
"""Holds the last seconds of a ring through its recorder's socket, as a program does that has just seen something.

    holdfast record r.hf --size 1GiB --source stdin --name demo < data &
    ./trigger.py r.hf 10 "what was that?"

The socket speaks as docs/protocol.md says: frames of a length, a type and a number that the reply repeats.
"""

import os
import socket
import struct
import sys
import uuid

VERSION = 2
HELLO, STATUS, ORDER, ERROR = 1, 2, 7, 194
HOLD, HELD, REFUSED = 1, 1, 5
FOR_EVER = 2**63 - 1


def place(ring):
    """The socket of the ring's recorder, named after what the superblock has from byte 24 on."""
    with open(ring, "rb") as file:
        file.seek(24)
        name = str(uuid.UUID(bytes=file.read(16)))
    folder = os.environ.get("HOLDFAST_RUN")
    if not folder and os.getuid() == 0:
        folder = "/run/holdfast"
    if not folder:
        user = os.environ.get("XDG_RUNTIME_DIR")
        folder = f"{user}/holdfast" if user else f"/tmp/holdfast-{os.getuid()}"
    return f"{folder}/{name}.sock"


def text(string):
    encoded = string.encode()
    return struct.pack("<H", len(encoded)) + encoded


class Fields:
    """What a reply has, field by field."""

    def __init__(self, body):
        self.body, self.at = body, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.body, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def text(self):
        return self.take(f"{self.take('H')}s").decode()


class Recorder:
    """A connection to a recorder, with one request at a time."""

    def __init__(self, ring):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(place(ring))
        self.last = 0
        version = self.ask(HELLO, struct.pack("<H", VERSION)).take("H")
        if version != VERSION:
            raise RuntimeError(f"this recorder speaks version {version}")

    def ask(self, kind, body=b""):
        self.last += 1
        self.socket.sendall(struct.pack("<IHHQ", len(body), kind, 0, self.last) + body)
        size, reply, _, _ = struct.unpack("<IHHQ", self.exactly(16))
        fields = Fields(self.exactly(size))
        if reply == ERROR:
            raise RuntimeError(fields.text())
        return fields

    def exactly(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise RuntimeError("the recorder has ended")
            data += more
        return data

    def now(self):
        """The time of the clock that arrivals have."""
        status = self.ask(STATUS)
        status.take("16s")
        status.text(), status.text()
        # Of the ring: sizes and numbers, counts of slots, and two times that may be missing.
        status.take("4Q12I")
        for _ in range(2):
            if status.take("B"):
                status.take("q")
        status.take("IBQ")
        # Of the recorder: that it is there, its process and its start come before.
        _, _, _, now = status.take("BIqq")
        return now

    def hold(self, start, end, reason):
        """Holds all that arrived between two times, for ever: the hold's number, slots and bytes, once it would outlive a crash."""
        span = struct.pack("<qqQQB", start, end, 0, 0, 0)
        until, streams, sequences, finding = struct.pack("<q", FOR_EVER), struct.pack("<I", 0), b"\0", b"\0"
        # An order that is repeated under the same number, since its answer was lost, is one hold.
        number = b"\1" + uuid.uuid4().bytes
        order = span + until + streams + sequences + text(reason) + text("trigger.py") + finding + number
        outcome = self.ask(ORDER, struct.pack("<B", HOLD) + order)
        kind = outcome.take("B")
        if kind != HELD:
            why = f"refused, reason {outcome.take('B')}" if kind == REFUSED else f"outcome {kind}"
            raise RuntimeError(f"not held: {why} (docs/protocol.md, Order)")
        return outcome.take("QIQ")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    ring, seconds, reason = sys.argv[1:]
    recorder = Recorder(ring)
    now = recorder.now()
    hold, slots, size = recorder.hold(now - int(float(seconds) * 1e9), now, reason)
    print(f"hold {hold}: {slots} slots, {size} bytes")


if __name__ == "__main__":
    try:
        main()
    except (OSError, RuntimeError) as error:
        sys.exit(f"trigger: {error}")
