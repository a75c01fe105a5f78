"""Conditions on rows of some tables: comparisons, lists, tuples, patterns, addresses."""

from dialect import ADDRESSES, INTS, MACS, NETWORKS, TEXTS, VALUES, Text, in_network, joined, mapped, t
from lengths import Lengths

# Patterns of `similar to`, and what they mean as a regular expression for a whole text.
SIMILAR = {"a%": "a.*", "%b": ".*b", "_": ".", "(a|b)+": "(a|b)+", "a|ab": "a|ab", "[ab]{2}": "[ab]{2}", "a?b": "a?b", ".": "\\.",
           "^a": "\\^a", "%": ".*", "": "", "b$": "b\\$", "_b": ".b", "[^a]%": "[^a].*"}
# Near the border between numbers with and without a sign.
BIG = [str(2**63 + by) for by in (-2, -1, 0, 1, 5)] + ["0"]


class Conditions(Lengths):
    def pair(self, tables):
        """Two values that can be compared."""
        kind = self.r.randrange(15)
        if kind < 3:
            return self.integer(tables, 1), self.integer(tables, 1)
        if kind == 3:
            return self.number(tables), self.number(tables)
        if kind == 4:
            return self.text(tables), self.pick(Text("'a'"), Text("'b'"), self.column(tables, TEXTS))
        if kind == 5:
            return self.column(tables, ["u"]), self.pick(self.column(tables, ["u", "big", "id"]), Text(str(self.r.randint(-1, 4))))
        if kind == 6:
            return self.column(tables, ["b"]), self.pick(Text("true"), Text("false"), self.column(tables, ["b"]))
        if kind == 7:
            return self.moment(tables), self.moment(tables)
        if kind == 8:
            return self.address(tables), self.pick(self.address(tables), self.address_literal())
        if kind == 9:
            return self.column(tables, ["mac"]), self.pick(self.column(tables, ["mac"]), Text(f"'{self.pick(*MACS)}'"))
        if kind == 10:
            return self.column(tables, ["bin"]), self.column(tables, ["bin"])
        if kind == 11:
            return self.column(tables, ["big"]), self.pick(self.column(tables, ["big", "id"]), Text(self.pick(*BIG)))
        if kind == 12:
            return self.unsigned(tables), self.pick(self.integer(tables, 1), Text(str(self.r.randint(-2, 3))))
        if kind == 13:
            return self.part_of_length(tables), self.pick(self.integer(tables, 1), Text(self.pick("0", "1", "86400", "2.5")))
        return self.column(tables, ["x"]), self.pick(*map(Text, ("0.0", "-0.0", "1.5", "cast('NaN' as double)")))

    def address(self, tables):
        table = self.pick(*tables)
        return Text(f"{table}.ip", f"{table}.ip_key")

    def address_literal(self):
        address = self.pick(*ADDRESSES)
        return Text(f"'{address}'", f"'{mapped(address)}'")

    def constant(self):
        return self.pick("0", "1", "2", "3", "null") if self.chance(0.7) else str(self.r.randint(-1, 6))

    def field(self, tables):
        """A value of a tuple, and one of the same kind."""
        if self.chance(0.3):
            return self.column(tables, TEXTS), self.pick(Text("'a'"), Text("'b'"), self.column(tables, TEXTS))
        one = self.column(tables, INTS + ["u"])
        return one, self.pick(self.column(tables, INTS), Text(str(self.r.randint(0, 3))), Text("null") if self.chance(0.3) else Text("1"))

    def tuples(self, tables):
        """A condition on tuples. DuckDB takes them for structures: to it, the meaning is written out."""
        fields = [self.field(tables) for _ in range(self.r.randint(2, 3))]
        row = lambda parts: t("{}({})", self.pick("", "row"), joined(", ", parts))
        one, other = row([left for left, _ in fields]), row([right for _, right in fields])
        kind = self.r.randrange(10)
        def equal(values):
            return "(" + " and ".join(f"{left.theirs} = {right.theirs}" for (left, _), right in zip(fields, values)) + ")"
        if kind == 0:
            return Text(f"{one.ours} = {other.ours}", equal([right for _, right in fields]))
        if kind == 1:
            return Text(f"{one.ours} {self.pick('<>', '!=')} {other.ours}", f"(not {equal([right for _, right in fields])})")
        if kind < 5:
            sign = self.pick("<", "<=", ">", ">=")
            theirs = ""
            for at, (left, right) in reversed(list(enumerate(fields))):
                this = f"{left.theirs} {sign if at == len(fields) - 1 else sign[0]} {right.theirs}"
                theirs = f"({this} or ({left.theirs} = {right.theirs} and {theirs}))" if theirs else this
            return Text(f"{one.ours} {sign} {other.ours}", theirs)
        if kind < 8:
            some = [[right for _, right in fields]]
            for _ in range(self.r.randint(0, 2)):
                some.append([Text(self.pick("'a'", "'ab'", "''")) if left.ours.endswith(".s") else Text(self.constant())
                             for left, _ in fields])
            negated = self.pick("", "not ")
            plain = lambda parts: joined(", ", parts).ours
            return Text(f"({plain([left for left, _ in fields])}) {negated}in ({', '.join(f'({plain(values)})' for values in some)})",
                        f"({negated}({' or '.join(equal(values) for values in some)}))")
        if kind == 8:
            negated = self.pick("", "not ")
            return Text(f"{one.ours} is {negated}null", "(" + " and ".join(f"{left.theirs} is {negated}null" for left, _ in fields) + ")")
        negated = self.pick("", "not ")
        differ = " or ".join(f"{left.theirs} is distinct from {right.theirs}" for left, right in fields)
        return Text(f"{one.ours} is {negated}distinct from {other.ours}", f"({negated}({differ}))")

    def pattern(self, tables):
        """A text and a pattern."""
        kind = self.r.randrange(4)
        if kind == 0:
            return t("{} {}{} {}", self.text(tables), self.pick("", "not "), self.pick("like", "ilike"),
                     self.pick("'a%'", "'%b'", "'_'", "'A'", "'%'"))
        if kind == 1:
            one, pattern, negated = self.column(tables, TEXTS), self.pick(*SIMILAR), self.pick("", "not ")
            return Text(f"{one.ours} {negated}similar to '{pattern}'", f"({negated}regexp_full_match({one.theirs}, '{SIMILAR[pattern]}', 's'))")
        one, pattern = self.column(tables, TEXTS), self.pick("'^a'", "'b$'", "'[ab]+'", "'.*'", "'^.*$'", "''", "'.+'", "'a|b'")
        not_ours, not_theirs = self.pick(("~", ""), ("!~", "not "))
        return Text(f"{one.ours} {not_ours} {pattern}", f"({not_theirs}regexp_matches({one.theirs}, {pattern}))")

    def lists(self, tables):
        """Lists of one value, with nulls and columns in them."""
        value = self.pick(self.column(tables, INTS), self.column(tables, ["s"]))
        items = ["'a'", "'b'", "''", "null"] if value.ours.endswith(".s") else ["0", "1", "2", "3", "null"]
        columns = TEXTS if value.ours.endswith(".s") else INTS
        one = lambda: joined(", ", [Text(self.pick(*items)) if self.chance(0.8) else self.column(tables, columns)
                                    for _ in range(self.r.randint(1, 4))])
        lists = [t("{} {}in ({})", value, self.pick("", "not "), one()) for _ in range(self.r.randint(2, 3))]
        return t("{}({})", self.pick("", "not "), joined(self.pick(" and ", " or "), lists))

    def symmetric(self, tables):
        """A value between two others, of which either is the smaller one."""
        value, low, high = self.column(tables, INTS), self.pick(self.column(tables, INTS), Text("2")), Text(self.constant())
        negated = self.pick("", "not ")
        v, l, h = value.theirs, low.theirs, high.theirs
        return Text(f"{value.ours} {negated}between symmetric {low.ours} and {high.ours}",
                    f"({negated}(({v} >= {l} and {v} <= {h}) or ({v} >= {h} and {v} <= {l})))")

    def atom(self, tables):
        kind = self.r.randrange(24)
        if kind < 4:
            one, other = self.pair(tables)
            return t("{} {} {}", one, self.pick("=", "<>", "!=", "<", "<=", ">", ">="), other)
        if kind < 6:
            one, other = self.pair(tables)
            return t("{} is {}distinct from {}", one, self.pick("", "not "), other)
        if kind == 6:
            return t("{} is {}null", self.column(tables, VALUES), self.pick("", "not "))
        if kind == 7:
            if self.chance(0.15):
                return self.symmetric(tables)
            three = [self.integer(tables, 1) for _ in range(3)]
            return t("{} {}between {} and {}", three[0], self.pick("", "not "), *three[1:])
        if kind == 8 and self.chance(0.4):
            some = ", ".join(self.pick("0.0", "-0.0", "1.5", "-2.0", "cast('NaN' as double)", "null") for _ in range(self.r.randint(1, 5)))
            return t("{} {}in ({})", self.number(tables), self.pick("", "not "), some)
        if kind == 9 and self.chance(0.5):
            return self.lists(tables)
        if kind < 10:
            some = ", ".join(self.constant() for _ in range(self.r.randint(1, 6)))
            return t("{} {}in ({})", self.integer(tables, 1), self.pick("", "not "), some)
        if kind < 12:
            return self.pattern(tables)
        if kind == 12:
            return t("({}) is {}{}", self.atom(tables), self.pick("", "not "), self.pick("true", "false", "null"))
        if kind == 13:
            return t("isnan({})", self.column(tables, ["x"]) if self.chance(0.5) else t("({} / {})", *(self.column(tables, ["x"]) for _ in "ab")))
        if kind == 14:
            return t("{} {} {}", self.number(tables), self.pick("<", "<=", "=", "<>", ">=", ">"),
                     self.pick("1.5", "0.25", "0.0", "cast('NaN' as double)"))
        if kind == 15:
            one, net = self.address(tables), self.pick(*NETWORKS)
            return Text(f"in_net({one.ours}, '{net}')", in_network(one.theirs, net))
        if kind == 16:
            some = joined(", ", [self.address_literal() for _ in range(self.r.randint(1, 3))])
            return t("{} {}in ({})", self.address(tables), self.pick("", "not "), some)
        if kind == 17:
            return t("{} {}between {} and {}", self.address(tables), self.pick("", "not "), self.address_literal(), self.address_literal())
        if kind == 18:
            table = self.pick(*tables)
            pattern = self.pick("element [0-9]+$", "(?i)ELEMENT 1", "^$", "x[01]", "true|false", ".")
            return Text(f"matches({table}.payload, '{pattern}')", f"regexp_matches({table}.payload_text, '{pattern}', 's')")
        if kind == 19:
            return self.tuples(tables)
        if kind < 22:
            return self.length_condition(tables)
        return self.column(tables, ["b"])

    def condition(self, tables, depth=2, subqueries=False):
        if depth == 0 or self.chance(0.25):
            return self.membership(tables) if subqueries and self.chance(0.5) else self.atom(tables)
        inner = lambda: self.condition(tables, depth - 1, subqueries)
        kind = self.r.randrange(6)
        if kind < 2:
            return joined(" and ", [inner() for _ in range(self.r.randint(2, 3))])
        if kind < 4:
            return t("({})", joined(" or ", [inner() for _ in range(2)]))
        if kind == 4:
            return t("not ({})", inner())
        return t("not {}", self.atom(tables))
