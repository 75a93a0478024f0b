"""Models of symbols on the command line: HMMs tag items of one attribute, networks are for Python."""

from __future__ import annotations

from pathlib import Path

from dualfield import DiscriminativeBayesNet, DiscriminativeHMM

X = [["the", "dog", "barks"], ["the", "cat", "sleeps"], ["dogs", "bark"]]
Y = [["D", "N", "V"], ["D", "N", "V"], ["N", "V"]]


def test_an_hmm_tags_items(shell):
    model = DiscriminativeHMM(0.1, tol=1e-4).fit(X, Y)
    model.save("m")
    Path("items").write_text("D\tthe\nN\tcat\nV\tbarks\n\nN\tbirds\nV\tbark\n")
    tagged = shell("tag", "--model", "m", "items").stdout
    first, second = model.predict([["the", "cat", "barks"], ["birds", "bark"]])
    assert tagged.split() == [*first, *second]
    assert "accuracy: 100.00%" in shell("evaluate", "--model", "m", "items").stdout
    out = shell("inspect", "m").stdout
    assert "labels       3: D N V" in out
    assert "simplicial, converged" in out
    assert f"{model.transitions_[0, 1]:.3f}" in out
    Path("wide").write_text("D\tthe\ta\n")
    assert "streams of symbols; the model was trained on 1" in shell("tag", "--model", "m", "wide", code=1).stderr


def test_networks_are_for_python(shell):
    DiscriminativeBayesNet(eta=0.1).fit([["sun", "warm"], ["rain", "cold"]], ["out", "in"]).save("m")
    assert "simplicial, converged" in shell("inspect", "m").stdout
    said = shell("tag", "--model", "m", code=1, stdin="a\n").stderr
    assert said == "Error: m: works on tables of categories, for which there is no file format here.\n"
