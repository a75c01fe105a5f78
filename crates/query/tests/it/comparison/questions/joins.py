"""Joins and set operations."""

from aggregates import Aggregates
from dialect import INTS, TEXTS, TIMES, Text, joined, t


class Joins(Aggregates):
    def join(self):
        one, a = self.source()
        other, b = self.source()
        kind = self.pick("join", "left join", "right join", "full join", "cross join", "using", "natural", "semi", "comma")
        values = self.listed([t("{}.ordinal", a), t("{}.ordinal", b)] + [self.value([a, b])])
        if kind == "cross join":
            return t("select {} from {} cross join {}{}", values, one, other, self.where([a, b], 1))
        if kind == "comma":
            return t("select {} from {}, {}{}", values, one, other, self.where([a, b], 1, True))
        if kind == "using":
            how = self.pick("join", "join", "left join", "left join", "right join", "full join")
            return t("select w c0, {}.ordinal c1, {}.ordinal c2 from {} {} {} using (w)", a, b, one, how, other)
        if kind == "natural":
            return t("select count(*) c0, max(w) c1 from (select w, s from {}) natural {}join (select w, s, id from {})", one,
                     self.pick("", "left ", "left ", "full "), other)
        if kind == "semi":
            how = self.pick("semi", "anti")
            on = t("{}.w = {}.w", a, b)
            ours = t("select {}.ordinal from {} left {} join {} on {}", a, one, how, other, on)
            theirs = t("select {}.ordinal from {} {} join {} on {}", a, one, how, other, on)
            return Text(ours.ours, theirs.theirs)
        on = self.pick("{0}.w = {1}.w", "{0}.id = {1}.id", "{0}.s = {1}.s", "{0}.u = {1}.u", "{0}.x = {1}.x", "{0}.b = {1}.b",
                       "{0}.w is not distinct from {1}.w", "{0}.s is not distinct from {1}.s", "{0}.id < {1}.w",
                       "{0}.w = {1}.w and {0}.id <> {1}.id", "{0}.w = {1}.w or {0}.id = {1}.id", "{0}.ip = {1}.ip",
                       "{0}.mac = {1}.mac", "{0}.bin = {1}.bin", "{0}.ts = {1}.ts", "{0}.ip is not distinct from {1}.ip",
                       "{0}.x is not distinct from {1}.x", "{0}.big = {1}.big", "{0}.day = {1}.day", "{0}.u = {1}.id", "{0}.ordinal = {1}.w",
                       "{0}.day - {1}.day between interval '0 seconds' and interval '1 day'", "{0}.x / 2.0 = {1}.x * 0.5", "{0}.x < {1}.x",
                       "{0}.event_time between {1}.event_time - interval '2 milliseconds' and {1}.event_time").format(a, b)
        on = Text(on)
        if self.chance(0.4):
            on = t("{} and {}", t("({})", on), self.atom([a, b]))
        joins = t("{} {} {} on {}", one, kind, other, on)
        if self.chance(0.2):
            third, c = self.source()
            joins = t("{} {} {} on {}.w = {}.w", joins, self.pick("join", "left join", "full join"), third, b, c)
        return t("select {} from {}{}", values, joins, self.where([a, b], 0.4))

    def branch(self, columns):
        source, alias = self.source()
        kinds = {"i": lambda: self.column([alias], INTS), "s": lambda: self.column([alias], TEXTS),
                 "x": lambda: self.column([alias], ["x"]), "b": lambda: self.column([alias], ["b"]),
                 "a": lambda: self.column([alias], ["ip"]), "m": lambda: self.column([alias], ["mac", "mac"]),
                 "n": lambda: self.column([alias], ["bin"]), "t": lambda: self.column([alias], TIMES),
                 "u": lambda: self.column([alias], ["u", "big"]), "d": lambda: self.difference([alias]),
                 "f": lambda: self.number([alias])}
        return t("select {} from {}{}", self.listed([kinds[kind]() for kind in columns]), source, self.where([alias], 0.4))

    def sets(self):
        columns = self.pick("i", "s", "x", "ii", "is", "ix", "bs", "b", "a", "m", "n", "t", "f", "an", "xa", "u", "ui", "d", "dt")
        kind = lambda: self.pick("union", "intersect", "except") + self.pick("", " all", " distinct")
        one = t("{} {} {}", self.branch(columns), kind(), self.branch(columns))
        if self.chance(0.4):
            one = t("{} {} {}", one, kind(), self.branch(columns)) if self.chance(0.5) else \
                t("({}) {} ({} {} {})", one, kind(), self.branch(columns), kind(), self.branch(columns))
        if self.chance(0.2):
            return t("select count(*) c0 from ({}) sets", one)
        return one
