"""Questions with tables by their own names: aliases that can go are taken out of the text for Holdfast.

The text for DuckDB keeps them: there, each column says whose it is."""

import re

from dialect import TABLES

TOKENS = re.compile(r"'[^']*'|[A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_*][A-Za-z_0-9]*)?|\(|\)|[^\s]")
SOURCE = re.compile(rf"\b({'|'.join(TABLES)}) (q\d+)\b")


class Block:
    """A select, and the one around it."""

    def __init__(self, outer):
        self.outer, self.sources, self.bare = outer, 0, {}

    def path_to(self, other):
        """The blocks from this one up to one around it, without that one."""
        blocks, block = [], self
        while block is not other:
            if block is None:
                return None
            blocks.append(block)
            block = block.outer
        return blocks


def blocks_of(text):
    """The select in which each word of a text stands."""
    block = top = Block(None)
    stack, tokens = [], list(TOKENS.finditer(text))
    places = {}
    for number, token in enumerate(tokens):
        word = token.group().lower()
        following = tokens[number + 1].group().lower() if number + 1 < len(tokens) else ""
        if word == "(":
            stack.append(block)
            if following in ("select", "with", "("):
                block = Block(block)
        elif word == ")":
            block = stack.pop()
        elif word in ("union", "intersect", "except"):
            block = Block(block.outer)
        elif word in ("from", "join", ","):
            pass
        places[token.start()] = block
    return tokens, places


def without_aliases(text, random):
    """The text with some of its aliases left out."""
    if "lateral" in text or " using " in text or "natural" in text:
        return text
    tokens, places = blocks_of(text)
    owners = {}
    for source in SOURCE.finditer(text):
        owners[source.group(2)] = (source.group(1), places[source.start(1)])
    # Every alias is of some source, also of those that are derived.
    for alias in set(re.findall(r"\) ((?:q\d+)|z|n|sets)\b", text)):
        at = text.index(f") {alias}")
        owner = next((places[token.start()] for token in tokens if token.start() == at), None)
        if owner:
            owner.sources += 1
    for _, block in owners.values():
        block.sources += 1
    replaced = {}
    for alias, (table, block) in owners.items():
        if table in block.bare.values() or random.random() < 0.4:
            continue
        uses = [places[token.start()] for token in tokens if token.group().startswith(alias + ".")]
        paths = [use.path_to(block) for use in uses]
        # An inner table of the same name would take its columns.
        if any(path is None or any(table in inner.bare.values() for inner in path) for path in paths):
            continue
        block.bare[alias] = table
        # A name alone is that of the innermost table.
        replaced[alias] = (table, block, block.sources == 1 and random.random() < 0.7)
    # Blocks that became bare later may have taken the columns of one around them.
    for alias, (table, block, _) in list(replaced.items()):
        for token in tokens:
            if token.group().startswith(alias + "."):
                if any(table in inner.bare.values() for inner in places[token.start()].path_to(block)):
                    replaced.pop(alias, None)
    written, at = [], 0
    for number, token in enumerate(tokens):
        word = token.group()
        alias, _, column = word.partition(".")
        before = tokens[number - 1].group() if number else ""
        if alias in replaced:
            table, block, alone = replaced[alias]
            written.append(text[at:token.start()])
            if column:
                written.append(column if alone and places[token.start()] is block else f"{table}.{column}")
            elif before != table:
                written.append(word)
            else:
                written[-1] = written[-1].rstrip(" ")
            at = token.end()
    return "".join(written) + text[at:]
