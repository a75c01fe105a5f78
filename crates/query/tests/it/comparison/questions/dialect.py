"""Parts of questions in both dialects, and the values that questions name."""

import ipaddress

INTS, TEXTS, TIMES = ["id", "w"], ["s"], ["ts", "event_time", "time", "day"]
TABLES = ["a", "e", "c"]
VALUES = ["id", "w", "u", "big", "x", "s", "b", "ts", "event_time", "time", "day", "ip", "mac", "bin"]
ADDRESSES = ["10.0.0.1", "10.0.0.2", "10.1.0.1", "10.2.3.4", "192.168.0.9", "2001:db8::1", "::", "ffff::"]
NETWORKS = ["10.0.0.0/8", "10.0.0.0/31", "192.168.0.0/16", "2001:db8::/32", "0.0.0.0/0", "::/0", "::/64", "128.0.0.0/1", "2000::/3"]
MACS = ["02:00:00:00:00:01", "02:00:00:00:00:ff", "fe:00:00:00:00:01", "00:00:00:00:00:00"]
MAPPED = ipaddress.ip_network("::ffff:0:0/96")


def mapped(address):
    """The digits of an address in the order of addresses: IPv4 as ::ffff:a.b.c.d."""
    address = ipaddress.ip_address(address)
    return format(int(address) + (int(MAPPED[0]) if address.version == 4 else 0), "032x")


def in_network(key, text):
    """A condition on the digits of an address: a network of IPv6 has no address of IPv4."""
    net = ipaddress.ip_network(text)
    inside = f"{key} between '{mapped(net[0])}' and '{mapped(net[-1])}'"
    if net.version == 6 and net.supernet_of(MAPPED):
        return f"({inside} and {key} not between '{mapped(MAPPED[0])}' and '{mapped(MAPPED[-1])}')"
    return inside


class Text:
    """A part of a question in both dialects."""

    def __init__(self, ours, theirs=None):
        self.ours, self.theirs = ours, ours if theirs is None else theirs


def t(form, *parts):
    """Puts parts into the places {} of a form."""
    parts = [part if isinstance(part, Text) else Text(str(part)) for part in parts]
    return Text(form.format(*(p.ours for p in parts)), form.format(*(p.theirs for p in parts)))


def joined(sign, parts):
    """Puts a sign between parts."""
    return t(sign.join("{}" for _ in parts), *parts)
