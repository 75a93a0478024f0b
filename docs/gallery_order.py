"""The order of the examples in the gallery: from the first steps to the finer points."""

ORDER = (
    "plot_tag_a_text.py",
    "plot_conll_file.py",
    "plot_read_a_model.py",
    "plot_errors_and_learning_curve.py",
    "plot_constraints_and_k_best.py",
    "plot_grid_search.py",
    "plot_digits_as_words.py",
    "plot_label_a_graph.py",
    "plot_parse_sentences.py",
    "plot_grammar.py",
    "plot_dependency_trees.py",
    "plot_partly_labelled.py",
    "plot_calibrated_probabilities.py",
    "plot_duality_gap.py",
    "plot_watch_a_fit.py",
    "plot_scores_of_your_own.py",
    "plot_structured_svm.py",
    "plot_denoising.py",
    "plot_segments_with_durations.py",
    "plot_supervised_hmm.py",
)


class ReadingOrder:
    """A sort key of sphinx-gallery; a file that is not listed above is an error, so that nobody forgets it."""

    def __init__(self, src_dir):
        self.src_dir = src_dir

    def __repr__(self):
        return "ReadingOrder"

    def __call__(self, filename):
        return ORDER.index(str(filename))
