"""Generated SQL questions and DuckDB's answers. Reads {"seeds", "count", "tables"} as JSON from standard input and
writes one JSON object a line: seed, kind, the text for Holdfast, and the rows of DuckDB, or its error. Without tables:
conditions alone.

Where the two dialects differ on purpose (docs/search.md, "Differences from PostgreSQL and DuckDB"), a part of a
question is a pair: the text for Holdfast, and that with the same meaning for DuckDB."""

import datetime
import json
import math
import sys

from queries import Maker

EPOCH = datetime.datetime(1970, 1, 1)
# Columns of a table: the first ones are those of Holdfast, the others serve translations.
COLUMNS = {"ordinal": "ubigint", "time": "timestamp", "event_time": "timestamp", "id": "bigint", "w": "bigint", "u": "ubigint",
           "big": "ubigint", "x": "double", "s": "varchar", "b": "boolean", "ts": "timestamp", "day": "timestamp", "ip": "varchar",
           "mac": "varchar", "bin": "blob", "payload": "blob", "ip_key": "varchar", "payload_text": "varchar"}
PLACES = {"timestamp": "make_timestamp(cast(? as bigint) // 1000)", "blob": "unhex(?)"}


def nanoseconds(span):
    return str((span.days * 86400 + span.seconds) * 10**9 + span.microseconds * 1000)


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
        return nanoseconds(value.replace(tzinfo=None) - EPOCH)
    if isinstance(value, datetime.timedelta):
        return nanoseconds(value)
    return repr(value) if isinstance(value, float) else str(value)


def database(tables):
    """A database with the tables."""
    import duckdb

    base = duckdb.connect(config={"threads": 1})
    # The plainest plan is the most certain one.
    base.execute("pragma disable_optimizer")
    for name, rows in tables.items():
        base.execute(f"create table {name} ({', '.join(map(' '.join, COLUMNS.items()))})")
        for row in rows:
            places = ", ".join(PLACES.get(kind, "?") for kind in COLUMNS.values())
            base.execute(f"insert into {name} values ({places})", [row[column] for column in COLUMNS])
    return base


def answered(base, question):
    try:
        return {"rows": [[cell(value) for value in row] for row in base.execute(question.theirs).fetchall()]}
    except Exception as error:
        return {"error": str(error)}


def main():
    given = json.load(sys.stdin)
    if "tables" not in given:
        for seed in given["seeds"]:
            maker = Maker(seed)
            for _ in range(given["count"]):
                print(json.dumps({"seed": seed, "condition": maker.bare_condition()}))
        return
    base = database(given["tables"])
    for seed in given["seeds"]:
        maker = Maker(seed)
        for _ in range(given["count"]):
            kind, question = maker.question()
            said = {"seed": seed, "kind": kind, "sql": question.ours, "theirs": question.theirs}
            print(json.dumps(said | answered(base, question)))


if __name__ == "__main__":
    main()
