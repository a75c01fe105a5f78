"""Expressions over columns of some tables, which are told by their aliases: numbers, texts, times, casts."""

import random

from dialect import INTS, TABLES, TEXTS, TIMES, VALUES, Text, joined, t


class Expressions:
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

    def column(self, tables, names):
        return Text(f"{self.r.choice(tables)}.{self.r.choice(names)}")

    def integer(self, tables, depth=2):
        if depth == 0 or self.chance(0.4):
            return self.column(tables, INTS) if self.chance(0.8) else Text(str(self.r.randint(0, 5)))
        inner = lambda: self.integer(tables, depth - 1)
        kind = self.r.randrange(16)
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
            return t("({} {} {})", self.column(tables, INTS), self.pick("&", "|"), self.r.randint(0, 7))
        if kind == 10:
            return t("abs({})", inner())
        if kind == 11:
            return self.cast_to_integer(tables)
        if kind == 12:
            return self.part_of_time(tables)
        if kind < 15:
            return self.unsigned(tables)
        return t("- {}", self.column(tables, INTS))

    def unsigned(self, tables):
        """Arithmetic over unsigned columns: a whole number with a sign, as DuckDB has it with 128 bits."""
        def wide(name):
            column = self.column(tables, [name])
            return Text(column.ours, f"cast({column.theirs} as hugeint)")
        kind, by = self.r.randrange(9), self.r.randint(2, 4)
        if kind < 2:
            return t("({} - {})", wide("u"), wide("u"))
        if kind == 2:
            return t("({} - {})", wide("big"), wide("big"))
        if kind < 5:
            both = [wide("u"), self.pick(self.column(tables, INTS), Text(str(by)))]
            self.r.shuffle(both)
            return t("({} {} {})", both[0], self.pick("+", "-", "-", "*"), both[1])
        if kind == 5:
            one = wide(self.pick("u", "big"))
            return Text(f"({one.ours} / {by})", f"({one.theirs} // {by})")
        if kind == 6:
            return t("({} % {})", wide(self.pick("u", "big")), by)
        if kind == 7:
            return t("({} - {})", wide("ordinal"), wide("u"))
        return t("(- {})", wide("u"))

    def cast_to_integer(self, tables):
        """A fraction, a truth value, a text or an unsigned number as a whole number."""
        kind = self.r.randrange(8)
        # A cast of NaN, or of what is too great, is an error.
        real = self.column(tables, ["x"])
        small = t("case when {0} between -1e6 and 1e6 then {{}} end".replace("{0}", real.ours))
        if kind < 2:
            return t(small.ours, t("cast({} as bigint)", real))
        if kind == 2:
            by = self.pick("+ 0.25", "* 3", "- 0.5", "/ 4")
            return t(small.ours, t("{}({} {} as {})", self.pick("cast", "try_cast"), real, by, self.pick("bigint", "integer", "smallint")))
        if kind == 3:
            return t(small.ours, t("cast({} as decimal(12, 2))::bigint", real))
        if kind == 4:
            return t("cast({} as integer)", self.column(tables, ["b"]))
        if kind == 5:
            return t("try_cast({} as bigint)", self.column(tables, ["big", "u", "id"]))
        if kind == 6:
            return t("try_cast({} as {})", self.column(tables, ["s", "id", "w"]), self.pick("bigint", "tinyint"))
        return Text(self.pick("cast(2.5 as bigint)", "cast(-2.5 as bigint)", "2.5::double::bigint", "3.5::double::integer",
                              "cast(1.49 as smallint)", "0.5::bigint"))

    def part_of_time(self, tables):
        """A part of a time."""
        part = self.pick("year", "quarter", "month", "week", "day", "dow", "doy", "hour", "minute", "second", "isodow", "millisecond",
                         "microsecond")
        column = self.column(tables, TIMES)
        return t("extract({} from {})", part, column) if self.chance(0.5) else t("date_part('{}', {})", part, column)

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
        if self.chance(0.1):
            return t("extract(epoch from {})", self.column(tables, TIMES))
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
            return Text(f"cast((length(json_get({table}.payload, 'o')) > 2) as varchar)",
                        f"cast((length(case when json_valid({table}.payload_text) then json_extract_string({table}.payload_text, '$.o') end) > 2) "
                        "as varchar)")
        return Text(f"json_{name}({table}.payload, '{path}')",
                    f"case when json_valid({table}.payload_text) then json_extract_string({table}.payload_text, '{of}') end")

    def moment(self, tables):
        """A time."""
        column = self.column(tables, TIMES)
        step = f"interval '{self.pick('1 second', '3 seconds', '2 milliseconds', '5 milliseconds', '300 microseconds', '1 hour', '36 hours')}'"
        kind = self.r.randrange(8)
        if kind == 0:
            return t("{} {} {}", column, self.pick("+", "-"), self.pick(step, "interval '1 month'", "interval '1 day 2 hours'"))
        if kind == 1:
            return Text(f"date_bin({step}, {column.ours})", f"time_bucket({step}, {column.theirs}, timestamp '1970-01-01')")
        if kind == 2:
            origin = f"timestamp '{self.pick('2026-01-01 00:00:01', '2030-05-05 00:00:00.0004', '1969-01-01 00:00:00')}'"
            return Text(f"date_bin({step}, {column.ours}, {origin})", f"time_bucket({step}, {column.theirs}, {origin})")
        if kind == 3:
            return t("date_trunc('{}', {})", self.pick("second", "minute", "hour", "day", "week", "month", "quarter", "year"), column)
        if kind == 4:
            return t("{} {} {}", column, self.pick("+", "-"), self.difference(tables))
        if kind == 5 and self.chance(0.3):
            return t("cast(cast({} as date) as timestamp)", column)
        return column

    def text(self, tables):
        column = self.column(tables, TEXTS)
        kind = self.r.randrange(8)
        if kind == 0:
            return t("upper({})", column)
        if kind == 1:
            return t("{} || {}", column, self.pick("'x'", "''"))
        if kind == 2:
            return t("substr({}, 1, 1)", column)
        if kind == 3:
            return t("coalesce({}, 'none')", column)
        if kind == 4:
            return t("cast({} as varchar)", self.pick(self.column(tables, INTS + ["u", "b", "big"]), self.integer(tables, 1)))
        if self.chance(0.2):
            return self.payload_text(tables)
        return column

    def value(self, tables):
        """Any value."""
        kind = self.r.randrange(12)
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
        if kind == 8:
            return self.length(tables)
        if kind == 9:
            return self.part_of_length(tables)
        return self.column(tables, ["ordinal"] + VALUES)
