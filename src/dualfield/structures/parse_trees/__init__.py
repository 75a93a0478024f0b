"""Trees over the words of a sentence as structures: brackets without a grammar, grammars, and heads."""
