"""What conlleval prints, by its published definition and in its order of operations, written anew for the tests.

It walks over the tokens with the tags of two neighbours in hand and decides whether a chunk ends or starts between
them; it never collects spans, as the library does. Boundaries between sentences count as a token outside.
"""

from __future__ import annotations

from collections import Counter

Label = tuple[str, str]  # prefix and type


def split(label: str) -> Label:
    prefix, dash, kind = label.partition("-")
    return (prefix, kind) if dash else (label, "")


# Pairs of neighbouring prefixes between which a chunk ends, or starts, whatever the types are.
ENDS = {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O"), ("E", "E"), ("E", "I"), ("E", "O")}
STARTS = {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I"), ("E", "E"), ("E", "I"), ("O", "E")}


def ends(before: Label, now: Label) -> bool:
    return (before[0], now[0]) in ENDS or (before[0] not in ("O", ".") and before[1] != now[1])


def starts(before: Label, now: Label) -> bool:
    return (before[0], now[0]) in STARTS or (now[0] not in ("O", ".") and before[1] != now[1])


def percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole > 0 else 0.0


def line(correct: int, found: int, true: int) -> str:
    precision, recall = percent(correct, found), percent(correct, true)
    f = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f:6.2f}"


def conlleval(y_true: list[list[str]], y_pred: list[list[str]], raw: bool = False) -> str:
    correct, true, found = Counter(), Counter(), Counter()
    n_tokens = n_right = 0
    inside = False
    outside = ("O", "")
    last_true, last_pred = outside, outside
    pairs = []
    for one, other in zip(y_true, y_pred, strict=True):
        for pair in zip(one, other, strict=True):
            named = [label if label == "O" or not raw else f"B-{label}" for label in pair]
            pairs.append((split(named[0]), split(named[1]), True))
        pairs.append((outside, outside, False))
    for t, p, is_token in pairs:
        if inside:
            end_true, end_pred = ends(last_true, t), ends(last_pred, p)
            if end_true and end_pred and last_pred[1] == last_true[1]:
                inside = False
                correct[last_true[1]] += 1
            elif end_true != end_pred or p[1] != t[1]:
                inside = False
        start_true, start_pred = starts(last_true, t), starts(last_pred, p)
        inside = inside or (start_true and start_pred and p[1] == t[1])
        true[t[1]] += start_true
        found[p[1]] += start_pred
        n_tokens += is_token
        n_right += is_token and t == p
        last_true, last_pred = t, p
    said = [
        f"processed {n_tokens} tokens with {true.total()} phrases; "
        f"found: {found.total()} phrases; correct: {correct.total()}.",
        f"accuracy: {percent(n_right, n_tokens):6.2f}%; {line(correct.total(), found.total(), true.total())}",
    ]
    kinds = sorted(kind for kind in {*true, *found} if true[kind] or found[kind])
    said += [f"{kind:>17}: {line(correct[kind], found[kind], true[kind])}  {found[kind]}" for kind in kinds]
    return "\n".join(said)
