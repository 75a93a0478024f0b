"""Inference with grammars

The best trees of a PCFG counted in 2,765 trees of the Penn treebank sample, beside NLTK's `ViterbiParser` on test
sentences of 6 to 8 words, log-probabilities equal; a dense grammar of 9,000 rules beside torch-struct in double
precision on one thread, log-partitions checked to 1e-10; and how many words a second the treebank's grammar takes.
Processor time, best of interleaved rounds; two threads by the clock. Trees of 3,000, those up to 25 words, train a CRF
by dual ascent.
"""

from __future__ import annotations

import inspect
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.graph_inference import seconds
from dualfield import CRF, DiscriminativePCFG, _native
from dualfield.data import clean_tree
from dualfield.io import read_trees
from dualfield.structures import Grammar, Scores

N_TRAIN, LONGEST = 3000, 40


def treebank() -> tuple[list[Any], list[Any]] | None:
    """Trees for training and for tests, with their empty elements and function tags off."""
    if not os.environ.get("DUALFIELD_DATA"):
        return None
    trees = [clean_tree(tree) for tree in read_trees(Path(os.environ["DUALFIELD_DATA"]) / "treebank_trees.txt.gz")]
    return [tree for tree in trees[:N_TRAIN] if tree], [tree for tree in trees[N_TRAIN:] if tree]


def up_to(trees: list[Any], most: int, least: int = 2) -> list[Any]:
    return [tree for tree in trees if least <= len(tree.words()) <= most]


def scores_of(model: Any, trees: list[Any]) -> tuple[Scores, int]:
    """Scores of the sentences that have a parse, and their number of words."""
    X = [tree.tokens() for tree in trees]
    kept = [x for x, fits in zip(X, model.structure_.is_possible(model.model_.scores(X)), strict=True) if fits]
    return model.model_.scores(kept), sum(map(len, kept))


def nltk_parser(model: Any) -> Any:
    """The same grammar as NLTK has it."""
    from nltk.grammar import PCFG, Nonterminal, ProbabilisticProduction
    from nltk.parse import ViterbiParser

    rules = model.structure_.rules
    names = [Nonterminal(name) for name in (*rules.symbols, "<ROOT>")]
    children = [
        *((names[b], names[c]) for _, b, c in rules.binary.T.tolist()),
        *((rules.terminals[t],) for t, _, _ in rules.lexical.T.tolist()),
        *((names[a],) for a in rules.roots.tolist()),
    ]
    probabilities = np.exp(model.model_.parameters).tolist()
    made = zip(probabilities, rules.parents.tolist(), children, strict=True)
    grammar = PCFG(names[-1], [ProbabilisticProduction(names[a], right, prob=p) for p, a, right in made])
    limit = {"max_time": None} if "max_time" in inspect.signature(ViterbiParser).parameters else {}  # since 3.10
    return ViterbiParser(grammar, **limit)


def beside_nltk(model: Any, test: list[Any]) -> list[dict[str, Any]]:
    try:
        parser = nltk_parser(model)
    except ImportError:
        return []
    found = []
    for tree in [one for one in up_to(test, 8, 6) if not np.isnan(fitting(model, one))][:4]:
        scores, n = scores_of(model, [tree])
        begin = time.process_time()
        theirs = next(iter(parser.parse(tree.tags()))).logprob() * np.log(2.0)
        taken = time.process_time() - begin
        ours = model.structure_.log_partition(scores, temperature=0.0)[0]
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
        each = seconds({"ours": lambda s=scores: model.structure_.argmax(s)}, 9)["ours"]
        found.append({"n_words": n, "log_probability": float(ours), "times_nltk": taken / each})
    return found


def fitting(model: Any, tree: Any) -> float:
    X = [tree.tokens()]
    return 0.0 if model.structure_.is_possible(model.model_.scores(X))[0] else np.nan


def speeds(model: Any, test: list[Any]) -> list[dict[str, Any]]:
    found = []
    structure = model.structure_
    for least, most in ((2, 15), (20, 40)):
        scores, n = scores_of(model, up_to(test, most, least))
        each = seconds(
            {
                "best tree": lambda s=scores: structure.argmax(s),
                "log-partition": lambda s=scores: structure.log_partition(s),
                "marginals": lambda s=scores: structure.marginals(s, cliques="sum"),
            }
        )
        wall = seconds(
            {"one": lambda s=scores: structure.argmax(s), "two": lambda s=scores: structure.argmax(s, n_jobs=2)},
            clock=time.perf_counter,
        )
        same = np.array_equal(structure.argmax(scores), structure.argmax(scores, n_jobs=2)) and np.array_equal(
            structure.marginals(scores).node, structure.marginals(scores, n_jobs=2).node
        )
        found.append(
            {
                "words": f"{least} to {most}",
                "words_per_second": {name: n / time_of for name, time_of in each.items()},
                "two_threads_speed_up": wall["one"] / wall["two"],
                "same_on_two_threads": bool(same),
            }
        )
    return found


def dense(n_symbols: int = 10, n_tags: int = 20, n_words: int = 12, n_sentences: int = 4) -> dict[str, Any]:
    """Every symbol is made of every two, every word may have every tag, and scores are random."""
    rng = np.random.default_rng(0)
    symbols, tags = [f"A{a:02}" for a in range(n_symbols)], [f"T{t:02}" for t in range(n_tags)]
    every = symbols + tags
    rules = [(a, (b, c)) for a in symbols for b in every for c in every]
    grammar = Grammar.from_rules([*rules, *((tag, ("'w'",)) for tag in tags)])
    shape = grammar.shape([["w"] * n_words] * n_sentences)
    table = rng.standard_normal((n_symbols, len(every), len(every)))
    terms = rng.standard_normal((n_sentences, n_words, n_tags))
    place = {name: at for at, name in enumerate(every)}
    cliques = np.zeros(grammar.n_cliques)
    for rule, (a, b, c) in enumerate(grammar.rules.binary.T.tolist()):
        names = [grammar.rules.symbols[one] for one in (a, b, c)]
        cliques[rule] = table[place[names[0]], place[names[1]], place[names[2]]]
    node = np.zeros((shape.n_nodes, grammar.n_labels))
    columns = [grammar.labels.index(tag) for tag in tags]
    for i in range(n_sentences):
        rows = shape.rows(i, np.arange(n_words), np.arange(1, n_words + 1))
        node[np.ix_(rows, columns)] = terms[i]
    scores = Scores(node, None, cliques, shape=shape)
    answer: dict[str, Any] = {"n_rules": len(grammar.rules.binary[0]), "n_words": n_words}
    calls = {"ours": lambda: grammar.marginals(scores, cliques="sum")}
    try:
        import torch
        import torch_struct
    except ImportError:
        answer["skipped"] = "torch-struct is not installed"
    else:
        torch.set_num_threads(1)
        roots = torch.full((n_sentences, n_symbols), -1e9, dtype=torch.float64)
        roots[:, 0] = 0.0
        theirs = (torch.tensor(terms), torch.tensor(np.tile(table, (n_sentences, 1, 1, 1))), roots)
        np.testing.assert_allclose(
            torch_struct.SentCFG(theirs).partition.detach().numpy(), grammar.log_partition(scores), rtol=1e-10
        )
        calls["torch"] = lambda: torch_struct.SentCFG(tuple(one.clone() for one in theirs)).marginals
    each = seconds(calls, 5)
    answer["words_per_second"] = n_words * n_sentences / each["ours"]
    if "torch" in each:
        answer["times_torch_struct"] = each["torch"] / each["ours"]
    return answer


def training(train: list[Any]) -> dict[str, Any]:
    trees = up_to(train, 25)
    X = [tree.tokens() for tree in trees]
    begin = time.process_time()
    model = CRF("grammar", C=1.0, solver="block_dual", tol=1e-3).fit(X, trees)
    return {
        "n_trees": len(trees),
        "seconds": time.process_time() - begin,
        "relative_gap": model.dual_gap_ / (model.objective_ - model.dual_gap_),
        "passes": model.n_iter_,
    }


def run() -> dict[str, Any]:
    with threadpool_limits(1):
        result = {"name": "grammar_inference", "instruction_set": _native.instruction_set(), "dense": dense()}
        trees = treebank()
        if trees is None:
            return result | {"skipped": "the treebank is not there"}
        train, test = up_to(trees[0], LONGEST), trees[1]
        model = DiscriminativePCFG(eta=0.0).fit([tree.tokens() for tree in train], train)
        return result | {
            "n_rules": model.structure_.n_cliques,
            "nltk": beside_nltk(model, test),
            "speeds": speeds(model, test),
            "training": training(train),
        }


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    one = result["dense"]
    peer = f"{one['times_torch_struct']:,.1f}" if "times_torch_struct" in one else "not installed"
    lines = ["| dense grammar | words | words/s, marginals | × torch-struct |", "|" + "---|" * 4]
    lines.append(f"| {one['n_rules']:,} rules | {one['n_words']} | {one['words_per_second']:,.0f} | {peer} |")
    if "speeds" not in result:
        return "\n".join(lines)
    lines += [
        "",
        f"| {result['n_rules']:,} rules | best tree, words/s | log-partition | marginals | × on two threads |",
        "|" + "---|" * 5,
    ]
    for case in result["speeds"]:
        rate = case["words_per_second"]
        lines.append(
            f"| {case['words']} words | {rate['best tree']:,.0f} | {rate['log-partition']:,.0f} "
            f"| {rate['marginals']:,.0f} | {case['two_threads_speed_up']:.2f} |"
        )
    if result["nltk"]:
        lines += ["", "| words | log-probability | × NLTK |", "|" + "---|" * 3]
        lines += [f"| {c['n_words']} | {c['log_probability']:.4f} | {c['times_nltk']:,.0f} |" for c in result["nltk"]]
    trained = result["training"]
    lines += ["", "| trees | training, s | passes | relative gap |", "|" + "---|" * 4]
    lines.append(
        f"| {trained['n_trees']:,} | {trained['seconds']:.1f} | {trained['passes']} | {trained['relative_gap']:.1e} |"
    )
    return "\n".join(lines)
