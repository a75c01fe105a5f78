"""Lengths of time: differences of times, intervals with days and months, and their parts."""

from dialect import TIMES, Text, joined, t
from expressions import Expressions

INTERVALS = ["1 day", "24 hours", "36 hours", "1 month", "30 days", "720 hours", "2 days 3 hours", "1 second", "2.5 seconds",
             "90 minutes", "0 seconds", "1 day 1 microsecond", "1 month 1 day", "-1 day", "5 days -2 hours", "1 year"]


class Lengths(Expressions):
    def interval(self):
        return Text(f"interval '{self.pick(*INTERVALS)}'")

    def difference(self, tables):
        """The length between two times."""
        one, other = self.r.sample(TIMES, 2)
        return t("({} - {})", self.column(tables, [one]), self.column(tables, [other]))

    def length(self, tables):
        kind = self.r.randrange(8)
        if kind == 0:
            return t("({} {} {})", self.difference(tables), self.pick("+", "-"), self.interval())
        if kind == 1:
            return t("({} {} {})", self.difference(tables), self.pick("+", "-"), self.difference(tables))
        if kind == 2:
            return self.interval()
        if kind == 3:
            return t("case when {} then {} else {} end", self.condition(tables, 0), self.difference(tables), self.difference(tables))
        return self.difference(tables)

    def part_of_length(self, tables):
        part = self.pick("epoch", "epoch", "day", "hour", "minute", "second", "millisecond", "microsecond")
        # A sum of a difference and an interval has other fields, and the same length.
        length = self.length(tables) if part == "epoch" else self.difference(tables) if self.chance(0.8) else self.interval()
        return t("extract({} from {})", part, length) if self.chance(0.5) else t("date_part('{}', {})", part, length)

    def length_condition(self, tables):
        """A comparison of lengths."""
        one = self.difference(tables) if self.chance(0.7) else self.length(tables)
        other = lambda: self.interval() if self.chance(0.7) else self.length(tables)
        kind = self.r.randrange(8)
        if kind == 0:
            return t("{} {}between {} and {}", one, self.pick("", "not "), other(), other())
        if kind == 1:
            return t("{} {}in ({})", one, self.pick("", "not "), joined(", ", [other() for _ in range(self.r.randint(1, 3))]))
        if kind == 2:
            return t("{} is {}distinct from {}", one, self.pick("", "not "), other())
        if kind == 3:
            return t("nullif({}, {}) is null", one, other())
        if kind == 4:
            return t("case {} when {} then true when {} then false end", one, other(), other())
        return t("{} {} {}", one, self.pick("=", "<>", "<", "<=", ">", ">="), other())
