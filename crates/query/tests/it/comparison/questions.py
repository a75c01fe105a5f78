"""Generated SQL questions and DuckDB's answers. Reads {"seeds", "count", "tables"} as JSON from standard input and
writes one JSON object a line: seed, kind, the text for Holdfast, and the rows of DuckDB, or its error.

Where the two dialects differ on purpose (docs/search.md, "Differences from PostgreSQL and DuckDB"), a part of a
question is a pair: the text for Holdfast, and that with the same meaning for DuckDB."""

import datetime
import ipaddress
import json
import math
import random
import sys

import duckdb

EPOCH = datetime.datetime(1970, 1, 1)
INTS, TEXTS = ["id", "w"], ["s"]
TABLES = ["a", "b", "c"]
VALUES = ["id", "w", "u", "x", "s", "b", "ts", "event_time", "time", "ip", "mac", "bin"]
ADDRESSES = ["10.0.0.1", "10.0.0.2", "10.1.0.1", "10.2.3.4", "192.168.0.9", "2001:db8::1", "::", "ffff::"]
NETWORKS = ["10.0.0.0/8", "10.0.0.0/31", "192.168.0.0/16", "2001:db8::/32", "0.0.0.0/0", "::/0"]
MACS = ["02:00:00:00:00:01", "02:00:00:00:00:ff", "fe:00:00:00:00:01", "00:00:00:00:00:00"]


def mapped(address):
    """The digits of an address in the order of addresses: IPv4 as ::ffff:a.b.c.d."""
    address = ipaddress.ip_address(address)
    return format(int(address) + (0xFFFF << 32 if address.version == 4 else 0), "032x")


def network(text):
    """The digits of the first and the last address of a network."""
    net = ipaddress.ip_network(text)
    return mapped(net[0]), mapped(net[-1])


class Text:
    """A part of a question in both dialects."""

    def __init__(self, ours, theirs=None):
        self.ours, self.theirs = ours, ours if theirs is None else theirs


def t(form, *parts):
    """Puts parts into the places {} of a form."""
    parts = [part if isinstance(part, Text) else Text(str(part)) for part in parts]
    return Text(form.format(*(p.ours for p in parts)), form.format(*(p.theirs for p in parts)))


def joined(sign, parts):
    return t(sign.join("{}" for _ in parts), *parts)


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.aliases = 0

    def pick(self, *choices):
        return self.r.choice(choices)

    def chance(self, share):
        return self.r.random() < share

    def alias(self):
        self.aliases += 1
        return f"q{self.aliases}"

    # Expressions over columns of some tables, by their aliases.

    def column(self, tables, names):
        return Text(f"{self.r.choice(tables)}.{self.r.choice(names)}")

    def integer(self, tables, depth=2):
        if depth == 0 or self.chance(0.4):
            return self.column(tables, INTS) if self.chance(0.8) else Text(str(self.r.randint(0, 5)))
        inner = lambda: self.integer(tables, depth - 1)
        kind = self.r.randrange(12)
        if kind < 3:
            return t("({} {} {})", inner(), self.pick("+", "-", "*"), inner())
        if kind == 3:
            return t("{} % {}", self.column(tables, INTS), self.r.randint(2, 4))
        if kind == 4:
            column, by = self.column(tables, INTS), self.r.randint(2, 4)
            return Text(f"({column.ours} / {by})", f"({column.theirs} // {by})")
        if kind == 5:
            return t("coalesce({}, {})", inner(), inner())
        if kind == 6:
            return t("nullif({}, {})", inner(), inner())
        if kind == 7:
            return t("case when {} then {} else {} end", self.condition(tables, 1), inner(), inner())
        if kind == 8:
            return t("{}({}, {})", self.pick("greatest", "least"), inner(), inner())
        if kind == 9:
            return t("({} {} {})", inner(), self.pick("&", "|"), self.r.randint(0, 7))
        if kind == 10:
            return t("abs({})", inner())
        return t("- {}", self.column(tables, INTS))

    def number(self, tables, depth=1):
        if self.chance(0.5):
            return self.integer(tables, depth)
        if self.chance(0.6):
            return self.column(tables, ["x"])
        if self.chance(0.2):
            return self.payload_number(tables)
        if self.chance(0.2):
            return t("- {}", self.column(tables, ["x"]))
        if self.chance(0.1):
            return t("case {} when {} then 7.5 when 1.5 then 0.0 else {} end", *(self.column(tables, ["x"]) if self.chance(0.6) else
                     self.pick("0.0", "-0.0", "cast('NaN' as double)") for _ in "abc"))
        if self.chance(0.2):
            return t("{}({}, {})", self.pick("greatest", "least", "nullif", "coalesce"), self.column(tables, ["x"]), self.pick("1.0", "0.0"))
        by = self.pick(Text("2.0"), Text("0.5"), Text("0.0"), self.column(tables, ["x"]))
        return t("({} {} {})", self.column(tables, ["x"]), self.pick("+", "-", "*", "/"), by)

    def payload_number(self, tables):
        """A number in the bytes or in the JSON of a payload."""
        table = self.pick(*tables)
        if self.chance(0.3):
            name, of, path = self.pick(("int", "bigint", "n"), ("float", "double", "o.f"))
            inner = f"json_extract_string({table}.payload_text, '$.{path}')"
            return Text(f"json_get_{name}({table}.payload, '{path}')",
                        f"case when json_valid({table}.payload_text) then cast({inner} as {of}) end")
        count, offset = self.pick(1, 2, 4), self.r.randint(0, 9)
        order, signed = self.pick("be", "le"), self.chance(0.5)
        places = range(offset, offset + count)
        digits = " || ".join(f"substr(hex({table}.payload), {2 * place + 1}, 2)"
                             for place in (places if order == "be" else reversed(places)))
        name = f"{'i' if signed else 'u'}{8 * count}{order if count > 1 else ''}"
        value = f"cast('0x' || {digits} as bigint)"
        if signed:
            value = f"({value} + {1 << (8 * count - 1)}) % {1 << (8 * count)} - {1 << (8 * count - 1)}"
        return Text(f"{name}({table}.payload, {offset})",
                    f"case when octet_length({table}.payload) >= {offset + count} then {value} end")

    def payload_text(self, tables):
        """Bytes of a payload as text."""
        table = self.pick(*tables)
        kind = self.r.randrange(4)
        if kind == 0:
            return Text(f"text({table}.payload)", f"{table}.payload_text")
        if kind == 1:
            return Text(f"hex({table}.payload)", f"lower(hex({table}.payload))")
        if kind == 2:
            offset, count = self.r.randint(0, 9), self.r.randint(0, 9)
            return Text(f"hex(bytes({table}.payload, {offset}, {count}))",
                        f"lower(substr(hex({table}.payload), {2 * offset + 1}, {2 * count}))")
        name, path, of = self.pick(("get", "n", "$.n"), ("get_text", "o.t", "$.o.t"), ("get", "l[0]", "$.l[0]"), ("get", "o", "$.o"),
                                   ("get_text", "l[1]", "$.l[1]"))
        if path == "o":
            return Text(f"length(json_get({table}.payload, 'o')) > 2", f"length(case when json_valid({table}.payload_text) then "
                        f"json_extract_string({table}.payload_text, '$.o') end) > 2")
        return Text(f"json_{name}({table}.payload, '{path}')",
                    f"case when json_valid({table}.payload_text) then json_extract_string({table}.payload_text, '{of}') end")

    def moment(self, tables):
        """A time."""
        column = self.column(tables, ["ts", "event_time", "time"])
        step = f"interval '{self.pick('1 second', '3 seconds', '2 milliseconds', '5 milliseconds', '300 microseconds', '1 hour')}'"
        kind = self.r.randrange(6)
        if kind == 0:
            return t("{} {} {}", column, self.pick("+", "-"), step)
        if kind == 1:
            return Text(f"date_bin({step}, {column.ours})", f"time_bucket({step}, {column.theirs}, timestamp '1970-01-01')")
        if kind == 2:
            origin = f"timestamp '{self.pick('2026-01-01 00:00:01', '2030-05-05 00:00:00.0004', '1969-01-01 00:00:00')}'"
            return Text(f"date_bin({step}, {column.ours}, {origin})", f"time_bucket({step}, {column.theirs}, {origin})")
        if kind == 3:
            return t("date_trunc('{}', {})", self.pick("second", "minute", "hour", "day", "month"), column)
        return column

    def text(self, tables):
        column = self.column(tables, TEXTS)
        kind = self.r.randrange(6)
        if kind == 0:
            return t("upper({})", column)
        if kind == 1:
            return t("{} || {}", column, self.pick("'x'", "''"))
        if kind == 2:
            return t("substr({}, 1, 1)", column)
        if kind == 3:
            return t("coalesce({}, 'none')", column)
        if self.chance(0.2):
            return self.payload_text(tables)
        return column

    def value(self, tables):
        """Any value."""
        kind = self.r.randrange(10)
        if kind < 3:
            return self.integer(tables)
        if kind == 3:
            return self.number(tables)
        if kind == 4:
            return self.text(tables)
        if kind == 5:
            return t("({})", self.condition(tables, 1))
        if kind == 6:
            return self.moment(tables)
        if kind == 7:
            return self.payload_number(tables)
        return self.column(tables, ["ordinal"] + VALUES)

    def pair(self, tables):
        """Two values that can be compared."""
        kind = self.r.randrange(12)
        if kind < 3:
            return self.integer(tables, 1), self.integer(tables, 1)
        if kind == 3:
            return self.number(tables), self.number(tables)
        if kind == 4:
            return self.text(tables), self.pick(Text("'a'"), Text("'b'"), self.column(tables, TEXTS))
        if kind == 5:
            return self.column(tables, ["u"]), self.pick(self.column(tables, ["u"]), Text(str(self.r.randint(0, 4))))
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
        return self.column(tables, ["x"]), self.pick(*map(Text, ("0.0", "-0.0", "1.5", "cast('NaN' as double)")))

    def address(self, tables):
        table = self.pick(*tables)
        return Text(f"{table}.ip", f"{table}.ip_key")

    def address_literal(self):
        address = self.pick(*ADDRESSES)
        return Text(f"'{address}'", f"'{mapped(address)}'")

    def constant(self):
        return self.pick("0", "1", "2", "3", "null") if self.chance(0.7) else str(self.r.randint(-1, 6))

    def atom(self, tables):
        kind = self.r.randrange(20)
        if kind < 4:
            one, other = self.pair(tables)
            return t("{} {} {}", one, self.pick("=", "<>", "!=", "<", "<=", ">", ">="), other)
        if kind < 6:
            one, other = self.pair(tables)
            return t("{} is {}distinct from {}", one, self.pick("", "not "), other)
        if kind == 6:
            return t("{} is {}null", self.column(tables, VALUES), self.pick("", "not "))
        if kind == 7:
            three = [self.integer(tables, 1) for _ in range(3)]
            return t("{} {}between {} and {}", three[0], self.pick("", "not "), *three[1:])
        if kind == 8 and self.chance(0.4):
            some = ", ".join(self.pick("0.0", "-0.0", "1.5", "-2.0", "cast('NaN' as double)", "null") for _ in range(self.r.randint(1, 5)))
            return t("{} {}in ({})", self.number(tables), self.pick("", "not "), some)
        if kind == 9 and self.chance(0.5):
            # Lists of one value, with nulls and columns in them.
            value = self.pick(self.column(tables, INTS), self.column(tables, ["s"]))
            items = ["'a'", "'b'", "''", "null"] if value.ours.endswith(".s") else ["0", "1", "2", "3", "null"]
            columns = TEXTS if value.ours.endswith(".s") else INTS
            one = lambda: joined(", ", [Text(self.pick(*items)) if self.chance(0.8) else self.column(tables, columns)
                                        for _ in range(self.r.randint(1, 4))])
            lists = [t("{} {}in ({})", value, self.pick("", "not "), one()) for _ in range(self.r.randint(2, 3))]
            return t("{}({})", self.pick("", "not "), joined(self.pick(" and ", " or "), lists))
        if kind < 10:
            some = ", ".join(self.constant() for _ in range(self.r.randint(1, 6)))
            return t("{} {}in ({})", self.integer(tables, 1), self.pick("", "not "), some)
        if kind == 10:
            return t("{} {}{} {}", self.text(tables), self.pick("", "not "), self.pick("like", "ilike"),
                     self.pick("'a%'", "'%b'", "'_'", "'A'", "'%'"))
        if kind == 11:
            one, pattern = self.column(tables, TEXTS), self.pick("'^a'", "'b$'", "'[ab]+'")
            not_ours, not_theirs = self.pick(("~", ""), ("!~", "not "))
            return Text(f"{one.ours} {not_ours} {pattern}", f"{not_theirs}regexp_matches({one.theirs}, {pattern})")
        if kind == 12:
            return t("({}) is {}{}", self.atom(tables), self.pick("", "not "), self.pick("true", "false", "null"))
        if kind == 13:
            return t("isnan({})", self.column(tables, ["x"]) if self.chance(0.5) else t("({} / {})", *(self.column(tables, ["x"]) for _ in "ab")))
        if kind == 14:
            return t("{} {} {}", self.number(tables), self.pick("<", "<=", "=", "<>", ">=", ">"),
                     self.pick("1.5", "0.25", "0.0", "cast('NaN' as double)"))
        if kind == 15:
            one, net = self.address(tables), self.pick(*NETWORKS)
            return Text(f"in_net({one.ours}, '{net}')", "{} between '{}' and '{}'".format(one.theirs, *network(net)))
        if kind == 16:
            some = joined(", ", [self.address_literal() for _ in range(self.r.randint(1, 3))])
            return t("{} {}in ({})", self.address(tables), self.pick("", "not "), some)
        if kind == 17:
            return t("{} {}between {} and {}", self.address(tables), self.pick("", "not "), self.address_literal(), self.address_literal())
        if kind == 18:
            table = self.pick(*tables)
            pattern = self.pick("element [0-9]+$", "(?i)ELEMENT 1", "^$", "x[01]", "true|false", ".")
            return Text(f"matches({table}.payload, '{pattern}')", f"regexp_matches({table}.payload_text, '{pattern}', 's')")
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

    # Subqueries.

    def membership(self, tables):
        inner, table = self.alias(), self.pick(*TABLES)
        where = []
        if self.chance(0.5):
            where.append(self.atom([inner]))
        if self.chance(0.5):
            column = self.pick("id", "w", "u", "s")
            where.append(t("{}.{} {} {}.{}", inner, column, self.pick("=", "=", "=", "<>", "<"), self.pick(*tables), column))
        elif self.chance(0.2):
            where.append(self.condition([inner], 1))
        if self.chance(0.1):
            deeper = self.alias()
            where.append(t("{}exists (select 1 from {} {} where {}.id = {}.id)", self.pick("", "not "),
                           self.pick(*TABLES), deeper, deeper, inner))
        where = t(" where {}", joined(" and ", where)) if where else Text("")
        kind = self.r.randrange(14)
        if kind < 4:
            one = self.pick(self.integer(tables, 1), Text(str(self.r.randint(0, 6))), self.column(tables, INTS))
            return t("{} {}in (select {} from {} {}{})", one, self.pick("", "not ", "not "),
                     self.pick(self.column([inner], INTS), self.integer([inner], 1)), table, inner, where)
        if kind == 4:
            return t("{} {}in (select {}.s from {} {}{})", self.text(tables), self.pick("", "not "), inner, table, inner, where)
        if kind == 5:
            return t("{} {}in (select {}.ordinal from {} {}{})", self.column(tables, ["ordinal"]), self.pick("", "not "),
                     inner, table, inner, where)
        if kind < 9:
            return t("{}exists (select {} from {} {}{})", self.pick("", "not "), self.pick("1", "*", f"{inner}.id"),
                     table, inner, where)
        aggregate = self.pick("count(*)", "count({}.w)", "max({}.id)", "sum({}.w)", "min({}.id)").format(inner)
        if kind == 9:
            return t("{}exists (select {} from {} {}{})", self.pick("", "not "), aggregate, table, inner, where)
        if kind == 10:
            return t("{} {}in (select {} from {} {}{})", self.integer(tables, 1), self.pick("", "not "), aggregate,
                     table, inner, where)
        if kind == 11:
            return t("{} {} (select {} from {} {}{})", self.integer(tables, 1), self.pick("=", "<", ">=", "<>"), aggregate,
                     table, inner, where)
        if kind == 12:
            return t("{} {} {} (select {} from {} {}{})", self.integer(tables, 1), self.pick("=", "<", ">=", "<>"),
                     self.pick("any", "all"), self.column([inner], INTS), table, inner, where)
        group = self.pick("w", "s", "id")
        having = self.pick("", f" having count(*) > {self.r.randint(0, 2)}")
        return t("{}exists (select {} from {} {}{} group by {}.{}{})", self.pick("", "not "), aggregate, table, inner, where,
                 inner, group, having)

    # Questions.

    def source(self):
        """A table, or one that is derived, with an alias."""
        alias, table = self.alias(), self.pick(*TABLES)
        if self.chance(0.85):
            return t("{} {}", table, alias), alias
        inner = self.alias()
        return t("(select * from {} {} where {}) {}", table, inner, self.condition([inner], 1), alias), alias

    def listed(self, values):
        return joined(", ", [t("{} c{}", value, number) for number, value in enumerate(values)])

    def where(self, tables, share=0.6, subqueries=False):
        return t(" where {}", self.condition(tables, 2, subqueries)) if self.chance(share) else Text("")

    def plain(self):
        source, alias = self.source()
        values = [self.value([alias]) for _ in range(self.r.randint(1, 3))]
        distinct = self.pick("", "", "distinct ")
        return t("select {}{} from {}{}", distinct, self.listed(values), source, self.where([alias], 0.8))

    def subquery(self):
        source, alias = self.source()
        if self.chance(0.2):
            condition = self.membership([alias])
            return t("select {}.ordinal from {} where {}", alias, source, condition)
        return t("select {}.ordinal from {} where {}", alias, source, self.condition([alias], 2, True))

    def scalar(self):
        source, alias = self.source()
        inner = self.alias()
        aggregate = self.pick("count(*)", "max({}.id)", "sum({}.w) + 1", "coalesce(sum({}.w), -1)", "count({}.w) * 2").format(inner)
        where = t(" where {}.{} = {}.{}", inner, "id", alias, self.pick("id", "w")) if self.chance(0.7) else Text("")
        return t("select {}.ordinal, (select {} from {} {}{}) c from {}{}", alias, aggregate, self.pick(*TABLES), inner, where,
                 source, self.where([alias], 0.3))

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
            how = self.pick("join", "left join", "right join", "full join")
            return t("select w c0, {}.ordinal c1, {}.ordinal c2 from {} {} {} using (w)", a, b, one, how, other)
        if kind == "natural":
            return t("select count(*) c0, max(w) c1 from (select w, s from {}) natural {}join (select w, s, id from {})", one,
                     self.pick("", "left ", "full "), other)
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
                       "{0}.x is not distinct from {1}.x", "{0}.x / 2.0 = {1}.x * 0.5", "{0}.x < {1}.x",
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
                 "n": lambda: self.column([alias], ["bin"]), "t": lambda: self.column([alias], ["ts", "event_time"]),
                 "f": lambda: self.number([alias])}
        return t("select {} from {}{}", self.listed([kinds[kind]() for kind in columns]), source, self.where([alias], 0.4))

    def sets(self):
        columns = self.pick("i", "s", "x", "ii", "is", "ix", "bs", "b", "a", "m", "n", "t", "f", "an", "xa")
        kind = lambda: self.pick("union", "intersect", "except") + self.pick("", " all", " distinct")
        one = t("{} {} {}", self.branch(columns), kind(), self.branch(columns))
        if self.chance(0.4):
            one = t("{} {} {}", one, kind(), self.branch(columns)) if self.chance(0.5) else \
                t("({}) {} ({} {} {})", one, kind(), self.branch(columns), kind(), self.branch(columns))
        if self.chance(0.2):
            return t("select count(*) c0 from ({}) sets", one)
        return one

    def aggregate_of(self, alias):
        number = lambda: self.pick(self.column([alias], INTS), self.integer([alias], 1))
        real = lambda: t("case when isnan({0}.x) then null else {0}.x end".replace("{0}", alias))
        kind = self.r.randrange(28)
        simple = ["count(*)", "count({})", "count(distinct {})", "sum({})", "min({})", "max({})", "avg({})", "sum(distinct {})",
                  "median({})", "stddev({})", "stddev_pop({})", "var_samp({})", "var_pop({})", "bit_and({})", "bit_or({})",
                  "bit_xor({})"]
        if kind < len(simple):
            whole = t(simple[kind], number()) if "{}" in simple[kind] else Text(simple[kind])
            if kind == 3 or kind == 7:
                return t("cast({} as double)", whole)
            return whole
        if kind == 16:
            return t("{}({})", self.pick("bool_and", "bool_or"), self.column([alias], ["b"]))
        if kind == 17:
            return t("{}({})", self.pick("min", "max", "count"), self.column([alias], ["s", "x", "u", "ts", "mac", "bin", "event_time"]))
        if kind == 18:
            return t("string_agg({0}.s, ',' order by {0}.ordinal)".replace("{0}", alias))
        if kind == 19:
            which, order = self.pick("first", "last"), self.pick("", " desc")
            return Text(*(f"{name}({alias}.id order by {alias}.ordinal{order})" for name in (which + "_value", which)))
        if kind == 20:
            name = self.pick("corr", "covar_samp", "covar_pop", "regr_slope", "regr_intercept", "regr_count", "regr_avgx", "regr_avgy")
            both = f"{name}(cast({alias}.id as double), cast({alias}.w as double))"
            # Where all x are equal, DuckDB has NaN.
            return Text(both, f"nullif({both}, cast('NaN' as double))")
        if kind == 21:
            return t("{}({})", self.pick("sum", "avg", "min", "max", "median"), real())
        if kind == 22:
            return t("count(distinct {})", self.pick(*(f"{alias}.{name}" for name in VALUES), "5", "'a'"))
        if kind == 23:
            part = self.pick("0.5", "0.25", "0.9")
            inner = t("cast({}.w as double)", alias)
            # Holdfast interpolates with six digits.
            return Text(f"round(percentile_cont({part}) within group (order by {inner.ours}), 4)",
                        f"round(quantile_cont({inner.theirs}, {part}), 4)")
        if kind == 24:
            return t("sum({}.x)", alias)
        if kind == 25:
            name = self.pick("min", "max")
            return Text(f"{name}({alias}.ip)", f"arg_{name}({alias}.ip, {alias}.ip_key)")
        if kind == 26:
            return t("{}({})", self.pick("min", "max", "count"), self.number([alias]))
        return t("count({}.{})", alias, self.pick(*VALUES))

    def aggregates(self):
        source, alias = self.source()
        values = [self.aggregate_of(alias) for _ in range(self.r.randint(1, 3))]
        if self.chance(0.3):
            values = [t("{} filter (where {})", value, self.atom([alias])) if "cast(sum" not in value.ours and "percentile" not in value.ours
                      and " order by " not in value.ours and not value.ours.startswith("cast(") and value.ours == value.theirs else value for value in values]
        where = self.where([alias], 0.4)
        if self.chance(0.3):
            return t("select {} from {}{}", self.listed(values), source, where)
        groups = [self.pick(self.column([alias], VALUES), t("{}.w % 2", alias), self.number([alias]), self.moment([alias])) for _ in range(self.r.randint(1, 2))]
        # A literal is a place in the list of columns to DuckDB, and a value to Holdfast.
        groups = [Text(f"{alias}.w") if "." not in group.ours else group for group in groups]
        if len(groups) == 2 and groups[0].ours == groups[1].ours:
            groups = groups[:1]
        by = joined(", ", groups)
        if self.chance(0.25):
            by = t("{}({})", self.pick("rollup", "cube"), by)
        having = t(" having {}", self.pick(Text("count(*) > 1"), t("max({}.id) > 2", alias), t("sum({}.w) is not null", alias))) \
            if self.chance(0.3) else Text("")
        return t("select {} from {}{} group by {}{}", self.listed(groups + values), source, where, by, having)

    def window(self, alias):
        order = t("order by {}{}.ordinal", self.pick("", t("{}.w{} nulls {}, ", alias, self.pick("", " desc"), self.pick("first", "last"))), alias)
        partition = self.pick(Text(""), t("partition by {} ", self.pick(self.column([alias], ["w", "s", "b", "x", "x", "u", "ip", "mac", "bin", "ts"]), self.number([alias]))))
        over = t("over ({}{})", partition, order)
        peers = t("over ({}order by {}{} nulls first)", partition,
                  self.pick(self.column([alias], ["w", "x", "x", "ts", "bin"]), self.address([alias]), self.number([alias])), self.pick("", " desc"))
        bound = lambda side: self.pick("unbounded " + side, "current row", f"{self.r.randint(0, 3)} {side}")
        frame = f"{self.pick('rows', 'rows', 'groups')} between {bound('preceding')} and {bound('following')}"
        framed = t("over ({}{} {})", partition, order, frame)
        column = t("{}.{}", alias, self.pick("id", "w", "s", "x", "mac", "bin", "ts"))
        kind = self.r.randrange(16)
        if kind < 2:
            return t("{}() {}", self.pick("row_number", "rank", "dense_rank"), over)
        if kind == 2:
            return t("{}() {}", self.pick("rank", "dense_rank", "percent_rank", "cume_dist"), peers)
        if kind == 3:
            return t("ntile({}) {}", self.r.randint(1, 4), over)
        if kind < 6:
            args = t("{}{}", column, self.pick("", ", 1", ", 2", ", 3"))
            return t("{}({}) {}", self.pick("lag", "lead"), args, over)
        if kind == 6:
            return t("{}({}.id, {}, {}) {}", self.pick("lag", "lead"), alias, self.r.randint(0, 2), self.pick("0", "-1", "null"), over)
        if kind < 9:
            name, offset = self.pick("lag", "lead"), self.pick("", ", 1", ", 2", ", 3")
            return Text(f"{name}({column.ours}{offset}) ignore nulls {over.ours}", f"{name}({column.theirs}{offset} ignore nulls) {over.theirs}")
        if kind == 9:
            return t("{}({}) {}", self.pick("first_value", "last_value"), column, self.pick(over, framed))
        if kind == 10:
            name, over = self.pick("first_value", "last_value"), self.pick(over, framed)
            return Text(f"{name}({column.ours}) ignore nulls {over.ours}", f"{name}({column.theirs} ignore nulls) {over.theirs}")
        if kind == 11:
            return t("nth_value({}, {}) {}", column, self.r.randint(1, 3), self.pick(over, framed))
        if kind == 12:
            return t("{}({}) {}", self.pick("count", "min", "max"), column, self.pick(over, framed, peers))
        if kind == 13:
            low, high = self.r.randint(0, 3), self.r.randint(0, 3)
            return t("count(*) over ({}order by {}.w range between {} preceding and {} following)", partition, alias, low, high)
        if kind == 14:
            return t("cast(sum({}.w) {} as double)", alias, self.pick(over, framed, peers))
        return t("avg({}.w) {}", alias, self.pick(over, framed, peers))

    def windows(self):
        source, alias = self.source()
        values = [t("{}.ordinal", alias)] + [self.window(alias) for _ in range(self.r.randint(1, 2))]
        return t("select {} from {}{}", self.listed(values), source, self.where([alias], 0.3))

    def ordered(self):
        source, alias = self.source()
        column = self.pick("id", "x", "s", "b", "u", "ts", "ip", "mac", "bin", "event_time", "time")
        by = self.address([alias]) if column == "ip" else self.number([alias]) if self.chance(0.1) else t("{}.{}", alias, column)
        order = t("{}{}{}", by, self.pick(" asc", " desc"), self.pick(" nulls first", " nulls last"))
        tail = self.pick("", f" limit {self.r.randint(0, 9)}", f" limit {self.r.randint(1, 9)} offset {self.r.randint(0, 9)}", " offset 3")
        if self.chance(0.2):
            return t("select distinct on ({0}.w) {0}.w c0, {0}.ordinal c1 from {1} order by {0}.w nulls first, {2}, {0}.ordinal{3}"
                     .replace("{0}", alias).replace("{1}", "{}").replace("{2}", "{}").replace("{3}", "{}"), source, order, tail)
        return t("select {}.{} c0, {}.ordinal c1 from {}{} order by {}, {}.ordinal{}", alias, column, alias, source,
                 self.where([alias], 0.4), order, alias, tail)

    def nested(self):
        """A question over another one."""
        kind = self.r.randrange(3)
        if kind == 0:
            one = self.pick(self.aggregates, self.sets, self.windows, self.plain)()
            return t("with z as ({}) select count(*) c0, count(z.c0) c1 from z", one)
        if kind == 1:
            source, alias = self.source()
            return t("with z as (select {}.w k, count(*) n from {} group by {}.w) select d.ordinal, z.n c from {} d {} z on d.w {} z.k",
                     alias, source, alias, self.pick(*TABLES), self.pick("join", "left join"), self.pick("=", "is not distinct from"))
        one = self.branch("i")
        source, alias = self.source()
        return t("select {}.ordinal from {} where {}.id {}in ({})", alias, source, alias, self.pick("", "not "), one)

    def nearest(self):
        """Rows of one table with those of another that are nearest in time."""
        one, other = self.r.sample(TABLES, 2)
        column = self.pick("time", "event_time")
        micros = self.pick(None, 0, 100, 250, 1000, 3000)
        within = "null" if micros is None else f"interval '{micros} microseconds'"
        call = f"nearest('{one}', '{other}', {within}, 'event_time')" if column == "event_time" else \
            f"nearest('{one}', '{other}')" if micros is None and self.chance(0.5) else f"nearest('{one}', '{other}', {within})"
        distance = f"abs(epoch_us(r.{column}) - epoch_us(l.{column}))"
        # Of those as near the earlier one; of the same time the last before and the first behind.
        order = f"{distance}, r.{column}, case when r.{column} > l.{column} then r.ordinal else -cast(r.ordinal as bigint) end"
        near = "" if micros is None else f" and {distance} <= {micros}"
        pairs = (f"select l.*, p.o {other}_ordinal, p.id {other}_id, p.s {other}_s, p.{column} {other}_{column} from {one} l left join (select l.ordinal k, "
                 f"r.ordinal o, r.id, r.s, r.{column}, row_number() over (partition by l.ordinal order by {order}) n from {one} l join {other} r "
                 f"on r.{column} is not null and l.{column} is not null{near}) p on p.k = l.ordinal and p.n = 1")
        source, alias = Text(f"{call} n", f"({pairs}) n"), "n"
        names = [f"{other}_{name}" for name in ("ordinal", "id", "s", column)]
        where = self.pick(Text(""), t(" where n.{} is {}null", names[0], self.pick("", "not ")), t(" where {}", self.atom([alias])),
                          t(" where n.{} > 1 or {}", names[1], self.atom([alias])))
        if self.chance(0.2):
            return t("select n.w c0, count(*) c1, count(n.{}) c2, max(n.{}) c3 from {}{} group by n.w", names[0], names[1], source, where)
        return t("select n.ordinal c0, n.{} c1, n.{} c2, {} c3 from {}{}", names[0], self.pick(*names), self.value([alias]), source, where)

    KINDS = [("plain", 4), ("subquery", 6), ("scalar", 1), ("join", 4), ("sets", 3), ("aggregates", 4), ("windows", 4), ("ordered", 2),
             ("nested", 2), ("nearest", 2)]

    def question(self):
        names = [name for name, weight in self.KINDS for _ in range(weight)]
        kind = self.pick(*names)
        return kind, getattr(self, kind)()


# Columns of a table: the first ones are those of Holdfast, the others serve translations.
COLUMNS = {"ordinal": "ubigint", "time": "timestamp", "event_time": "timestamp", "id": "bigint", "w": "bigint", "u": "ubigint",
           "x": "double", "s": "varchar", "b": "boolean", "ts": "timestamp", "ip": "varchar", "mac": "varchar", "bin": "blob",
           "payload": "blob", "ip_key": "varchar", "payload_text": "varchar"}
PLACES = {"timestamp": "make_timestamp(cast(? as bigint) // 1000)", "blob": "unhex(?)"}


def cell(value):
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, datetime.datetime):
        span = value.replace(tzinfo=None) - EPOCH
        return str((span.days * 86400 + span.seconds) * 10**9 + span.microseconds * 1000)
    return repr(value) if isinstance(value, float) else str(value)


def main():
    given = json.load(sys.stdin)
    base = duckdb.connect(config={"threads": 1})
    # The plainest plan is the most certain one.
    base.execute("pragma disable_optimizer")
    for name, rows in given["tables"].items():
        base.execute(f"create table {name} ({', '.join(map(' '.join, COLUMNS.items()))})")
        for row in rows:
            places = ", ".join(PLACES.get(kind, "?") for kind in COLUMNS.values())
            base.execute(f"insert into {name} values ({places})", [row[column] for column in COLUMNS])
    for seed in given["seeds"]:
        maker = Maker(seed)
        for _ in range(given["count"]):
            kind, question = maker.question()
            said = {"seed": seed, "kind": kind, "sql": question.ours, "theirs": question.theirs}
            try:
                said["rows"] = [[cell(value) for value in row] for row in base.execute(question.theirs).fetchall()]
            except duckdb.Error as error:
                said["error"] = str(error)
            print(json.dumps(said))


if __name__ == "__main__":
    main()
