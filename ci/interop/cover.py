"""A pairwise cover: for each peer, every pair of levels that the peer supports occurs in a case that it supports.

The order of everything is fixed, so the same tables give the same cases.
"""

import itertools
import json
import pathlib

import levels
from dtypes import DTYPES

HERE = pathlib.Path(__file__).parent
DIRECTIONS = ("write", "read")
PEERS = ("zarr-python", "zarrs", "tensorstore", "numcodecs")


class Support:
    """A peer's support table: rules, each naming levels under which the peer does not do a case, and why."""

    def __init__(self, peer):
        self.peer = peer
        self.rules = json.loads((HERE / "support" / f"{peer}.json").read_text())["rules"]
        for rule in self.rules:
            for key, want in rule["when"].items():
                if key not in levels.FACTORS and key not in ("version", "kind"):
                    raise SystemExit(f"{peer}: no factor is named {key}")
                known = {"version": ["2", "3"], "kind": sorted({d.kind for d in DTYPES.values()})}
                for level in want:
                    if level.removeprefix("!").removesuffix("*") == "" or not any(
                        match([level.removeprefix("!")], k) for k in known.get(key) or levels.FACTORS[key]
                    ):
                        raise SystemExit(f"{peer}: {key} has no level {level}")

    def rule_for(self, case, direction):
        """The index of the first rule that excludes `case`, or `None` where the peer supports it."""
        for i, rule in enumerate(self.rules):
            if rule.get("direction", direction) == direction and all(
                match(want, value_of(case, key)) for key, want in rule["when"].items()
            ):
                return i
        return None


def factor_of(key):
    return {"version": "layout", "kind": "dtype"}.get(key, key)


def value_of(case, key):
    if key == "version":
        return case["layout"][1] if case["layout"].startswith("v2") else "3"
    if key == "kind":
        return DTYPES[case["dtype"]].kind
    return case[key]


def match(want, value):
    """Whether a pattern fits, a level or a prefix ending in `*`; patterns that begin with `!` must none of them fit."""
    if want[0].startswith("!"):
        return not any(match([w[1:]], value) for w in want)
    return any(value.startswith(w[:-1]) if w.endswith("*") else value == w for w in want)


class Constraint:
    def __init__(self, keys, allowed):
        self.keys, self.allowed = keys, allowed


def constraints_of(support):
    out = [Constraint(keys, lambda case, f=f, keys=keys: f(*(case[k] for k in keys))) for keys, f in levels.CONSTRAINTS]
    for rule in support.rules:
        if rule.get("direction", "write") != "write":
            continue
        keys = tuple(factor_of(k) for k in rule["when"])
        when = rule["when"]
        out.append(Constraint(keys, lambda case, when=when: not all(match(w, value_of(case, k)) for k, w in when.items())))
    return out


class Search:
    """Completes a partial case to one that the peer supports."""

    def __init__(self, support):
        self.names = list(levels.FACTORS)
        self.by_factor = {n: [] for n in self.names}
        for c in constraints_of(support):
            for k in set(c.keys):
                self.by_factor[k].append(c)

    def fits(self, case, factor):
        return all(c.allowed(case) for c in self.by_factor[factor] if all(k in case for k in c.keys))

    def complete(self, fixed, rank):
        case = {}
        for k, v in fixed.items():
            case[k] = v
            if not self.fits(case, k):
                return None
        return self._extend(case, [n for n in self.names if n not in fixed], rank)

    def _extend(self, case, left, rank):
        if not left:
            return dict(case)
        factor = left[0]
        for level in sorted(levels.FACTORS[factor], key=lambda v: rank(case, factor, v)):
            case[factor] = level
            if self.fits(case, factor):
                found = self._extend(case, left[1:], rank)
                if found:
                    return found
            del case[factor]
        return None


def pairs(case):
    names = list(levels.FACTORS)
    return [(a, case[a], b, case[b]) for a, b in itertools.combinations(names, 2)]


def cover():
    """The cases, and per peer the number of level pairs it supports."""
    supports = {p: Support(p) for p in PEERS}
    uncovered, counts = {}, {}
    cases, seen = [], set()
    names = list(levels.FACTORS)
    used = {(n, v): 0 for n in names for v in levels.FACTORS[n]}

    def add(case):
        key = tuple(case[n] for n in names)
        if key in seen:
            return
        seen.add(key)
        cases.append(case)
        for n in names:
            used[n, case[n]] += 1
        for p in PEERS:
            if supports[p].rule_for(case, "write") is None:
                uncovered[p].difference_update(pairs(case))

    all_pairs = [
        (a, x, b, y)
        for a, b in itertools.combinations(names, 2)
        for x in levels.FACTORS[a]
        for y in levels.FACTORS[b]
    ]
    for p in PEERS:
        uncovered[p] = set(all_pairs)
    for p in PEERS:
        search = Search(supports[p])
        open_pairs = uncovered[p]
        possible = 0

        def rank(case, factor, level):
            gain = sum(pair_of(names, k, v, factor, level) in open_pairs for k, v in case.items())
            return (-gain, used[factor, level], levels.FACTORS[factor].index(level))

        for pair in all_pairs:
            if pair not in open_pairs:
                possible += 1
                continue
            a, x, b, y = pair
            case = search.complete({a: x, b: y}, rank)
            if case is None:
                open_pairs.discard(pair)
            else:
                possible += 1
                add(case)
                open_pairs.discard(pair)
        counts[p] = possible
    for p in PEERS:
        for n, rule in enumerate(supports[p].rules):
            for direction in DIRECTIONS:
                if rule.get("direction", direction) == direction and not any(
                    supports[p].rule_for(c, direction) == n and not levels.vacuous(c) for c in cases
                ):
                    add(probe(supports[p], n, direction))
    return cases, counts


def probe(support, number, direction):
    """A case that one rule excludes and no earlier one does, so that a rule that went stale is found out."""
    rule = support.rules[number]
    names = list(levels.FACTORS)
    wanted = [
        [v for v in levels.FACTORS[n] if all(match(w, value_of({n: v}, k)) for k, w in rule["when"].items() if factor_of(k) == n)]
        for n in names
    ]
    # The rarer levels last: what a factor begins with is what most peers do.
    for choice in itertools.product(*wanted):
        case = dict(zip(names, choice))
        if levels.valid(case) and not levels.vacuous(case) and support.rule_for(case, direction) == number:
            return case
    raise SystemExit(f"{support.peer}: rule {number} excludes no case that an earlier one does not: {rule}")


def pair_of(names, a, x, b, y):
    return (a, x, b, y) if names.index(a) < names.index(b) else (b, y, a, x)


if __name__ == "__main__":
    import time

    start = time.time()
    found, counts = cover()
    print(len(found), counts, f"{time.time() - start:.1f} s")
