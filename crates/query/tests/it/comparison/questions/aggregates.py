"""Aggregates, in groups and sets of groups."""

import re

from dialect import INTS, TIMES, VALUES, Text, joined, t
from windows import Windows


class Aggregates(Windows):
    def aggregate_of(self, alias):
        number = lambda: self.pick(self.column([alias], INTS), self.integer([alias], 1))
        real = lambda: t("case when isnan({0}.x) then null else {0}.x end".replace("{0}", alias))
        kind = self.r.randrange(32)
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
            return t("{}({})", self.pick("min", "max", "count"), self.column([alias], ["s", "x", "u", "big", "ts", "day", "mac", "bin", "event_time"]))
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
        if kind == 27:
            return t("{}({})", self.pick("max", "min", "count"), self.pick(self.difference, self.difference, self.length)([alias]))
        if kind == 28:
            return self.pick(t("(max({}) - min({}))", *[self.column([alias], TIMES)] * 2),
                             Text(f"(max({alias}.u) - min({alias}.id))", f"(cast(max({alias}.u) as hugeint) - min({alias}.id))"),
                             Text(f"sum({alias}.u - {alias}.w)", f"sum(cast({alias}.u as hugeint) - {alias}.w)"),
                             t("count(distinct {})", self.difference([alias])))
        if kind == 29:
            wide = self.pick("u", "ordinal")
            return Text(f"avg({alias}.{wide} - {alias}.u)", f"avg(cast({alias}.{wide} as hugeint) - cast({alias}.u as hugeint))")
        if kind == 30:
            # An order that says nothing.
            return t("{}({} order by {}{})", self.pick("count", "count", "sum", "min", "max"), self.column([alias], INTS),
                     self.column([alias], ["id", "w", "s", "x"]), self.pick("", " desc", f", {alias}.ordinal"))
        return t("count({}.{})", alias, self.pick(*VALUES))

    def distinct(self, values):
        """Values that differ not only by a cast: the engine calls both the same, and refuses."""
        by_name = {}
        for value in values:
            name = value.ours
            while (shorter := re.sub(r"(?:try_)?cast\(((?:[^()]|\([^()]*\))*?) as [a-z]+(?:\([^()]*\))?\)|::[a-z]+", r"\1", name)) != name:
                name = shorter
            by_name.setdefault(name, value)
        return list(by_name.values())

    def group_sets(self, groups):
        """Sets of groups over expressions."""
        by = joined(", ", groups)
        forms = ["rollup({})", "cube({})", "grouping sets (({}), ())"]
        if len(groups) == 2:
            one, other = groups
            return self.pick(*(t(form, by) for form in forms), t("grouping sets (({}), ({}), ({}, {}))", one, other, one, other),
                             t("{}, rollup({})", one, other), t("grouping sets ({}, ({}, {}))", other, one, other))
        return t(self.pick(*forms), by)

    def aggregates(self):
        source, alias = self.source()
        values = [self.aggregate_of(alias) for _ in range(self.r.randint(1, 3))]
        if self.chance(0.3):
            values = [t("{} filter (where {})", value, self.atom([alias])) if "cast(sum" not in value.ours and "percentile" not in value.ours
                      and " order by " not in value.ours and not value.ours.startswith(("cast(", "(")) and value.ours == value.theirs else value for value in values]
        values = self.distinct(values)
        where = self.where([alias], 0.4)
        if self.chance(0.3):
            return t("select {} from {}{}", self.listed(values), source, where)
        groups = [self.pick(self.column([alias], VALUES), t("{}.w % 2", alias), self.number([alias]), self.moment([alias]), self.difference([alias]), self.part_of_length([alias])) for _ in range(self.r.randint(1, 2))]
        # A literal is a place in the list of columns to DuckDB, and a value to Holdfast.
        groups = [Text(f"{alias}.w") if "." not in group.ours else group for group in groups]
        # A key that is a cast alone has the name of its column, at which the engine may fail with sets of groups.
        groups = [t("{}.w", alias) if group.ours.startswith("cast(") else group for group in groups]
        groups = self.distinct(groups)
        by = joined(", ", groups)
        if self.chance(0.25):
            by = self.group_sets(groups)
        having = t(" having {}", self.pick(Text("count(*) > 1"), t("max({}.id) > 2", alias), t("sum({}.w) is not null", alias))) \
            if self.chance(0.3) else Text("")
        return t("select {} from {}{} group by {}{}", self.listed(groups + values), source, where, by, having)
