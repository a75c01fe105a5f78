"""Questions of all kinds."""

import bare_tables
from dialect import INTS, TABLES, Text, joined, t
from joins import Joins


class Maker(Joins):
    def source(self):
        """A table, or one that is derived, with an alias."""
        alias, table = self.alias(), self.pick(*TABLES)
        if self.chance(0.85):
            self.table_of[alias] = table
            return t("{} {}", table, alias), alias
        inner, kind = self.alias(), self.r.randrange(6)
        if kind == 0:
            # Each row once: an order by ordinals is that of all rows.
            at = self.r.randint(1, 9)
            return Text(f"(select * from {table} where ordinal < {at} union all select * from {table} where ordinal >= {at}) {alias}"), alias
        if kind == 1:
            return Text(f"(select {inner}.*, row_number() over (order by {inner}.{self.pick('w', 'ordinal')}) rn from {table} {inner}) {alias}"), alias
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
    def ordered(self):
        source, alias = self.source()
        column = self.pick("id", "x", "s", "b", "u", "ts", "ip", "mac", "bin", "event_time", "time", "day", "big")
        by = self.address([alias]) if column == "ip" else self.number([alias]) if self.chance(0.1) else self.length([alias]) if self.chance(0.1) else \
            t("{}.{}", alias, column)
        order = t("{}{}{}", by, self.pick(" asc", " desc"), self.pick(" nulls first", " nulls last"))
        tail = self.pick("", f" limit {self.r.randint(0, 9)}", f" limit {self.r.randint(1, 9)} offset {self.r.randint(0, 9)}", " offset 3", Text(" fetch first 3 rows only", " limit 3"))
        if self.chance(0.2):
            return t("select distinct on ({0}.w) {0}.w c0, {0}.ordinal c1 from {1} order by {0}.w nulls first, {2}, {0}.ordinal{3}"
                     .replace("{0}", alias).replace("{1}", "{}").replace("{2}", "{}").replace("{3}", "{}"), source, order, tail)
        return t("select {}.{} c0, {}.ordinal c1 from {}{} order by {}, {}.ordinal{}", alias, column, alias, source,
                 self.where([alias], 0.4), order, alias, tail)

    def nested(self):
        """A question over another one."""
        kind = self.r.randrange(5)
        if kind == 0:
            one = self.pick(self.aggregates, self.sets, self.windows, self.plain)()
            return t("with z as ({}) select count(*) c0, count(z.c0) c1 from z", one)
        if kind == 1:
            source, alias = self.source()
            return t("with z as (select {}.w k, count(*) n from {} group by {}.w) select d.ordinal, z.n c from {} d {} z on d.w {} z.k",
                     alias, source, alias, self.pick(*TABLES), self.pick("join", "left join"), self.pick("=", "is not distinct from"))
        if kind == 2:
            return self.recursive()
        if kind == 3:
            # The same table within a table that is named, and outside.
            source, alias = self.source()
            inner, table = self.alias(), self.table([alias])
            one = t("with z as (select {0}.w, max({0}.id) m from {1} {0} group by {0}.w)".replace("{0}", inner).replace("{1}", table))
            # One that is no aggregate may have several rows: refused.
            how = self.pick("in (select z.m", "not in (select z.m", "= (select max(z.m)", "< (select sum(z.m)") if self.chance(0.9) \
                else "= (select z.m"
            return t("{} select {}.ordinal from {} where {}.id {} from z where z.w = {}.w)", one, alias, source, alias, how, alias)
        one = self.branch("i")
        source, alias = self.source()
        return t("select {}.ordinal from {} where {}.id {}in ({})", alias, source, alias, self.pick("", "not "), one)

    def recursive(self):
        """Numbers of which each is made of the one before it, and rows that have them."""
        most, kind = self.r.randint(2, 6), self.pick("all ", "")
        source, alias = self.source()
        numbers = f"with recursive r as (select 1 v union {kind}select v + 1 from r where v < {most})"
        return t("{} select r.v c0, {}.ordinal c1 from r {} {} on {}.id = r.v", numbers, alias, self.pick("join", "left join"), source, alias)

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

    def bare_condition(self):
        """A condition of a hold, on the columns of one stream."""
        alias = self.alias()
        return self.condition([alias]).ours.replace(f"{alias}.", "")

    KINDS = [("plain", 4), ("subquery", 6), ("scalar", 2), ("lateral", 1), ("join", 4), ("sets", 3), ("aggregates", 4), ("windows", 4),
             ("grouped_windows", 1), ("ordered", 2), ("nested", 2), ("nearest", 2)]

    def question(self):
        """A kind and a question of it; half of all questions name tables without aliases."""
        names = [name for name, weight in self.KINDS for _ in range(weight)]
        kind = self.pick(*names)
        self.table_of = {}
        question = getattr(self, kind)()
        if self.chance(0.5):
            question.ours = bare_tables.without_aliases(question.ours, self.r)
        return kind, question
