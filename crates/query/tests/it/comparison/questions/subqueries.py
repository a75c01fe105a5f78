"""Subqueries: `in`, `exists`, `any` and `all`, in conditions and as values, and tables that see those before them."""

from conditions import Conditions
from dialect import INTS, TABLES, Text, joined, t


class Subqueries(Conditions):
    def __init__(self, seed):
        super().__init__(seed)
        self.table_of = {}

    def table(self, outer=()):
        """A table, often one that stands outside, too."""
        outside = [self.table_of[alias] for alias in outer if alias in self.table_of]
        return self.pick(*outside) if outside and self.chance(0.4) else self.pick(*TABLES)

    def inner_where(self, inner, tables):
        where = []
        if self.chance(0.5):
            where.append(self.atom([inner]))
        if self.chance(0.45):
            column = self.pick("id", "w", "u", "s")
            where.append(t("{}.{} {} {}.{}", inner, column, self.pick("=", "=", "=", "<>", "<"), self.pick(*tables), column))
        elif self.chance(0.2):
            where.append(self.condition([inner], 1))
        if self.chance(0.1):
            deeper = self.alias()
            where.append(t("{}exists (select 1 from {} {} where {}.id = {}.id)", self.pick("", "not "),
                           self.table([inner]), deeper, deeper, inner))
        return t(" where {}", joined(" and ", where)) if where else Text("")

    def nullable(self, tables):
        """A number that is null for more rows than its columns."""
        column = lambda: self.column(tables, INTS)
        return self.pick(lambda: t("nullif({}, {})", self.column(tables, ["ordinal", "id"]), self.r.randint(0, 5)),
                         lambda: t("case when {} > 1 then {} end", column(), column()),
                         lambda: t("({} + {})", column(), column()),
                         lambda: t("greatest({}, {})", column(), column()))()

    def membership(self, tables):
        inner, table = self.alias(), self.table(tables)
        self.table_of[inner] = table
        where = self.inner_where(inner, tables)
        kind = self.r.randrange(19)
        if kind < 4:
            one = self.pick(self.integer(tables, 1), Text(str(self.r.randint(0, 6))), self.column(tables, INTS), self.nullable(tables))
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
        if kind < 14:
            return t("{} {} {} (select {} from {} {}{})", self.integer(tables, 1), self.pick("=", "<", ">=", "<>"),
                     self.pick("any", "all"), self.column([inner], INTS), table, inner, where)
        if kind == 14:
            return self.tuple_membership(tables, inner, table)
        if kind == 15:
            limit = self.pick(f"order by {inner}.ordinal limit {self.r.randint(0, 4)}",
                              f"order by {inner}.ordinal desc offset {self.r.randint(0, 4)}")
            return t("{} {}in (select {} from {} {} {})", self.column(tables, INTS), self.pick("", "not "),
                     self.column([inner], INTS), table, inner, limit)
        group = self.pick("w", "s", "id")
        if kind == 16:
            sets = self.pick("rollup({0}.w)", "cube({0}.w, {0}.id)", "grouping sets (({0}.w), ())").format(inner)
            own = t(" where {}", self.atom([inner])) if self.chance(0.5) else Text("")
            return t("{} {}in (select {} from {} {}{} group by {})", self.column(tables, INTS), self.pick("", "not "),
                     self.pick(f"{inner}.w", "count(*)"), table, inner, own, sets)
        if kind == 17:
            truth = self.membership(tables) if self.chance(0.3) else t("{} {}in (select {} from {} {}{})", self.nullable(tables),
                      self.pick("", "not "), self.column([inner], INTS), table, inner, where)
            return t("({}) is {}{}", truth, self.pick("", "not "), self.pick("true", "false", "null"))
        having = self.pick("", f" having count(*) > {self.r.randint(0, 2)}")
        return t("{}exists (select {} from {} {}{} group by {}.{}{})", self.pick("", "not "), aggregate, table, inner, where,
                 inner, group, having)

    def tuple_membership(self, tables, inner, table):
        """A tuple among the rows of a subquery; for DuckDB, the meaning is written out."""
        left = [self.column(tables, INTS) for _ in "ab"]
        names = [self.column([inner], INTS) for _ in "ab"]
        own = self.atom([inner]) if self.chance(0.5) else Text("true")
        negated = self.pick("", "not ")
        equal = " and ".join(f"{one.theirs} = {other.theirs}" for one, other in zip(left, names))
        found = lambda test: f"exists (select 1 from {table} {inner} where ({own.theirs}) and ({equal}) {test})"
        where = "" if own.ours == "true" else f" where {own.ours}"
        return Text(f"({left[0].ours}, {left[1].ours}) {negated}in (select {names[0].ours}, {names[1].ours} from {table} {inner}{where})",
                    f"({negated}case when {found('is true')} then true when {found('is null')} then null else false end)")

    def aggregate_with(self, inner):
        return self.pick("count(*)", "max({}.id)", "sum({}.w) + 1", "coalesce(sum({}.w), -1)", "count({}.w) * 2", "min({}.u)").format(inner)

    def scalar(self):
        source, alias = self.source()
        inner = self.alias()
        table = self.table([alias])
        self.table_of[inner] = table
        if self.chance(0.4):
            truth = self.membership([alias])
            form = self.pick("({})", "({}) is null", "case when {} then 1 else 0 end", "not ({})")
            return t("select {}.ordinal c0, {} c1 from {}{}", alias, t(form, truth), source, self.where([alias], 0.3))
        where = t(" where {}.{} = {}.{}", inner, "id", alias, self.pick("id", "w")) if self.chance(0.7) else Text("")
        return t("select {}.ordinal, (select {} from {} {}{}) c from {}{}", alias, self.aggregate_with(inner), table, inner, where,
                 source, self.where([alias], 0.3))

    def lateral(self):
        """Rows of a table, each with those of a subquery that names its columns."""
        source, alias = self.source()
        inner, derived = self.alias(), self.alias()
        table = self.table([alias])
        self.table_of[inner] = table
        where = t(" where {}.{} = {}.{}", inner, self.pick("id", "w"), alias, self.pick("id", "w"))
        if self.chance(0.3):
            where = t("{} and {}", where, self.atom([inner]))
        how = self.pick(", lateral ({}) {}", " cross join lateral ({}) {}", " left join lateral ({}) {} on true")
        kind = self.r.randrange(12)
        if kind < 5:
            query = t("select {} v from {} {}{}", self.aggregate_with(inner), table, inner, where)
        elif kind < 9:
            query = t("select {}{} v from {} {}{}", self.pick("", "distinct "), self.column([inner], INTS), table, inner, where)
        elif kind == 9:
            query = t("select {}.w v from {} {}{} group by {}.w", inner, table, inner, where, inner)
        else:
            query = t("select {0}.id v from {1} {0} order by {0}.ordinal limit 2".replace("{0}", inner).replace("{1}", table))
        return t("select {}.ordinal c0, {}.v c1 from {}{}{}", alias, derived, source, t(how, query, derived),
                 self.pick(Text(""), t(" where {}", self.atom([alias])), t(" where {}.v > 1", derived)))
