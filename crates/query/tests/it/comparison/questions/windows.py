"""Window functions, over windows written out and over named ones."""

from dialect import Text, joined, t
from subqueries import Subqueries


class Windows(Subqueries):
    def __init__(self, seed):
        super().__init__(seed)
        # Definitions of the question's named windows; none where they are written out.
        self.named = None

    def over(self, partition, order, frame=""):
        """A window, by a name of it or of a part of it, or written out."""
        whole = t("over ({}{}{})", partition, order, frame)
        if self.named is None or self.chance(0.2):
            return whole
        name, partitioned = f"w{len(self.named)}", f"w{len(self.named) + 1}"
        if self.chance(0.4):
            self.named.append(f"{name} as ({partition.ours})")
            return Text(f"over ({name} {order.ours}{frame})", whole.theirs)
        if self.chance(0.3):
            self.named.append(f"{name} as ({partition.ours})")
            self.named.append(f"{partitioned} as ({name} {order.ours})")
            name = partitioned
        elif frame and self.chance(0.4):
            self.named.append(f"{name} as ({partition.ours}{order.ours}{frame})")
            return Text(f"over {name}", whole.theirs)
        else:
            self.named.append(f"{name} as ({partition.ours}{order.ours})")
        plain = f"over {name}" if self.chance(0.5) else f"over ({name})"
        return Text(f"over ({name}{frame})" if frame else plain, whole.theirs)

    def window(self, alias):
        order = t("order by {}{}.ordinal", self.pick("", t("{}.w{} nulls {}, ", alias, self.pick("", " desc"), self.pick("first", "last"))), alias)
        partition = self.pick(Text(""), t("partition by {} ", self.pick(
            self.column([alias], ["w", "s", "b", "x", "x", "u", "big", "ip", "mac", "bin", "ts", "day"]), self.number([alias]))))
        over = self.over(partition, order)
        by = self.pick(self.column([alias], ["w", "x", "x", "ts", "bin", "big", "day"]), self.address([alias]), self.number([alias]),
                       self.length([alias]))
        peers = lambda: self.over(partition, t("order by {}{} nulls first", by, self.pick("", " desc")))
        bound = lambda side: self.pick("unbounded " + side, "current row", f"{self.r.randint(0, 3)} {side}")
        frame = f" {self.pick('rows', 'rows', 'groups')} between {bound('preceding')} and {bound('following')}"
        framed = lambda: self.over(partition, order, frame)
        column = t("{}.{}", alias, self.pick("id", "w", "s", "x", "mac", "bin", "ts", "big", "day"))
        kind = self.r.randrange(18)
        if kind < 2:
            return t("{}() {}", self.pick("row_number", "rank", "dense_rank"), over)
        if kind == 2:
            return t("{}() {}", self.pick("rank", "dense_rank", "percent_rank", "cume_dist"), peers())
        if kind == 3:
            return t("ntile({}) {}", self.r.randint(1, 4), over)
        if kind < 6:
            args = t("{}{}", column, self.pick("", ", 1", ", 2", ", 3"))
            return t("{}({}) {}", self.pick("lag", "lead"), args, over)
        if kind == 6:
            return t("{}({}.id, {}, {}) {}", self.pick("lag", "lead"), alias, self.r.randint(0, 2), self.pick("0", "-1", "null"), over)
        if kind == 7:
            name, offset = self.pick("lag", "lead"), self.pick("", "", ", 1", ", 1", ", 2")
            return Text(f"{name}({column.ours}{offset}) ignore nulls {over.ours}", f"{name}({column.theirs}{offset} ignore nulls) {over.theirs}")
        if kind == 8:
            # The step of a counter.
            name, of = self.pick("lag", "lead"), self.pick("u", "big", "ordinal", "day", "w")
            wide = f"cast({alias}.{of} as hugeint)" if of in ("u", "big", "ordinal") else f"{alias}.{of}"
            return Text(f"{alias}.{of} - {name}({alias}.{of}) {over.ours}", f"{wide} - {name}({wide}) {over.theirs}")
        if kind == 9:
            return t("{}({}) {}", self.pick("first_value", "last_value"), column, self.pick(over, framed()))
        if kind == 10:
            name, over = self.pick("first_value", "last_value"), self.pick(over, framed())
            return Text(f"{name}({column.ours}) ignore nulls {over.ours}", f"{name}({column.theirs} ignore nulls) {over.theirs}")
        if kind == 11:
            return t("nth_value({}, {}) {}", column, self.r.randint(1, 3), self.pick(over, framed()))
        if kind < 14:
            return t("{}({}) {}", self.pick("count", "min", "max"), column, self.pick(over, framed(), peers()))
        if kind == 14:
            low, high = self.r.randint(0, 3), self.r.randint(0, 3)
            return t("count(*) {}", self.over(partition, t("order by {}.w", alias), f" range between {low} preceding and {high} following"))
        if kind == 15:
            return t("cast(sum({}.{}) {} as double)", alias, self.pick("w", "u"), self.pick(over, framed(), peers()))
        if kind == 16:
            return t("{}({}) {}", self.pick("max", "min", "count"), self.difference([alias]), self.pick(over, framed(), peers()))
        return t("avg({}.w) {}", alias, self.pick(over, framed(), peers()))

    def windows(self):
        self.named = [] if self.chance(0.5) else None
        source, alias = self.source()
        values = [t("{}.ordinal", alias)] + [self.window(alias) for _ in range(self.r.randint(1, 2))]
        where = self.where([alias], 0.3)
        tail = t(" qualify {} <= 2", t("row_number() {}", self.over(Text(""), t("order by {}.ordinal", alias)))) if self.chance(0.1) \
            else t(" order by {}, 1", self.window(alias)) if self.chance(0.1) else Text("")
        clause = Text(f" window {', '.join(self.named)}", "") if self.named else Text("")
        self.named = None
        return t("select {} from {}{}{}{}", self.listed(values), source, where, clause, tail)

    def grouped_windows(self):
        """Windows over groups."""
        self.named = [] if self.chance(0.6) else None
        source, alias = self.source()
        group = self.pick("w", "s", "u", "b", "id")
        by = t("order by {}.{} nulls first", alias, group)
        values = [t("{}.{}", alias, group)]
        for _ in range(self.r.randint(1, 2)):
            frame = self.pick("", "", " rows between 1 preceding and current row")
            value = self.pick("sum(count(*)) {}", "count(*) - lag(count(*)) {}", "max(max({0}.id)) {1}", "row_number() {}", "first_value(min({0}.id)) {1}")
            over = self.over(Text(""), by, "" if "lag" in value or "row_number" in value else frame)
            value = t(value.replace("{0}", alias).replace("{1}", "{}"), over)
            values.append(t("cast({} as bigint)", value))
        where = self.where([alias], 0.3)
        clause = Text(f" window {', '.join(self.named)}", "") if self.named else Text("")
        self.named = None
        return t("select {} from {}{} group by {}.{}{}", self.listed(values), source, where, alias, group, clause)
