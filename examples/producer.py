#!/usr/bin/env python3
"""Sends every line of standard input as one element to a tcp: or udp: source of Holdfast, or, as `given`, with its number
and its first word as attributes to a tcp: source.

    holdfast record r.hf --size 1GiB --source tcp:127.0.0.1:5000 --name demo &
    seq 1000 | ./producer.py tcp 127.0.0.1 5000

Over TCP every element has its length in front: 4 bytes, little-endian (--frame len32, which tcp: has by default).
With attributes it has a header, too: --frame attr32 --attr line:uint=given --attr word:text=given.
Over UDP every element is a datagram.
"""

import socket
import struct
import sys


class TcpProducer:
    """Elements over TCP. When the ring is slower than we are, `send` waits: nothing is lost."""

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port))

    def send(self, element):
        self.socket.sendall(struct.pack("<I", len(element)) + element)

    def close(self):
        self.socket.close()


def value(given):
    """A value of a header; None is a null."""
    return b"\xff\xff" if given is None else struct.pack("<H", len(given)) + given


class GivenProducer(TcpProducer):
    """Elements over TCP, each with its number and its first word."""

    line = 0

    def send(self, element):
        self.line += 1
        word = element.split(b" ", 1)[0][:100]
        header = value(struct.pack("<Q", self.line)) + value(word)
        lengths = struct.pack("<IH", 2 + len(header) + len(element), len(header))
        self.socket.sendall(lengths + header + element)


class UdpProducer:
    """Elements over UDP. Those that find no room are dropped, and the ring has a gap that counts them."""

    def __init__(self, host, port):
        family, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0][::4]
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.connect(address)

    def send(self, element):
        self.socket.send(element)

    def close(self):
        self.socket.close()


def main(arguments):
    kinds = {"tcp": TcpProducer, "udp": UdpProducer, "given": GivenProducer}
    if len(arguments) != 3 or arguments[0] not in kinds or not arguments[2].isdigit():
        sys.exit("usage: producer.py tcp|udp|given HOST PORT < lines")
    producer = kinds[arguments[0]](arguments[1], int(arguments[2]))
    for line in sys.stdin.buffer:
        producer.send(line.removesuffix(b"\n"))
    producer.close()


if __name__ == "__main__":
    main(sys.argv[1:])
