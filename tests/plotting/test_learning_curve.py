"""Learning curves against fits by hand, and calibration before and after against the model's own numbers."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import log_loss

from dualfield import CRF, BaggedTagger, BayesianCRF, KernelLogisticRegression, LatentChain, LatentCRF, StructuredSVM
from dualfield.metrics import calibration_error, span_f1_score, token_log_loss
from dualfield.plotting import CalibrationChangeDisplay, LearningCurveDisplay
from tests.report.pages import BIO, corpus

X, Y = corpus(40, BIO, 0)
X_DEV, Y_DEV = corpus(25, BIO, 1)
POINTS = np.random.default_rng(0).normal(size=(90, 3))
SIDES = (POINTS[:, 0] + 0.5 * POINTS[:, 1] > 0).astype(int)


@pytest.mark.parametrize("warm", [False, True])
def test_scores_are_those_of_fits_to_growing_parts(warm):
    display = LearningCurveDisplay.from_estimator(
        CRF(tol=1e-8), X, Y, X_DEV, Y_DEV, sizes=[0.25, 20, 1.0], warm=warm, random_state=3
    )
    assert display.sizes.tolist() == [10, 20, 40]
    order = np.random.RandomState(3).permutation(40)
    for size, score, train in zip(display.sizes, display.scores, display.train_scores, strict=True):
        part = [X[at] for at in order[:size]], [Y[at] for at in order[:size]]
        model = CRF(tol=1e-8).fit(*part)
        assert score == pytest.approx(span_f1_score(Y_DEV, model.predict(X_DEV)))
        assert train == pytest.approx(span_f1_score(part[1], model.predict(part[0])))
    assert display.fits == ("warm starts" if warm else "cold fits")
    assert display.fits in repr(display)
    assert display.fits in display.html()
    assert display.to_frame()["held-out"].tolist() == display.scores.tolist()


def test_warm_starts_begin_at_the_weights_before(monkeypatch):
    seen = []
    fit = CRF.fit

    def counted(self, *args, **kwargs):
        seen.append((self.warm_start, hasattr(self, "objective_")))
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(CRF, "fit", counted)
    model = CRF()
    LearningCurveDisplay.from_estimator(model, X, Y, X_DEV, Y_DEV, sizes=[10, 40], warm=True)
    LearningCurveDisplay.from_estimator(model, X, Y, X_DEV, Y_DEV, sizes=[10, 40])
    assert seen == [(True, False), (True, True), (False, False), (False, False)]
    assert not hasattr(model, "objective_")
    assert model.warm_start is False


def test_classifiers_and_scorers():
    model = KernelLogisticRegression()
    display = LearningCurveDisplay.from_estimator(model, POINTS[:60], SIDES[:60], POINTS[60:], SIDES[60:], sizes=[1.0])
    assert display.score_name == "accuracy"
    assert display.scores == pytest.approx([model.fit(POINTS[:60], SIDES[:60]).score(POINTS[60:], SIDES[60:])])

    def negative_loss(model, X, y):
        return -log_loss(y, model.predict_proba(X))

    display = LearningCurveDisplay.from_estimator(
        model, POINTS[:60], SIDES[:60], POINTS[60:], SIDES[60:], sizes=[60], scoring=negative_loss
    )
    assert display.score_name == "negative_loss"
    assert display.scores == pytest.approx([-log_loss(SIDES[60:], model.predict_proba(POINTS[60:]))])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([0.5, 41], r"sizes\[1\] must be a share in \(0, 1\] or an int from 1 to 40\. Got 41 instead"),
        ([0.001], r"sizes\[0\] must be a share"),
        ([], r"sizes must have at least one entry"),
    ],
)
def test_sizes_that_cannot_be(sizes, message):
    with pytest.raises(ValueError, match=message):
        LearningCurveDisplay.from_estimator(CRF(), X, Y, X_DEV, Y_DEV, sizes=sizes)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"must be 1D, not empty and of the same length\. Got shapes \(1,\), \(2,\)"):
        LearningCurveDisplay([1], [0.5, 0.6], [0.5, 0.6])
    svm = StructuredSVM()
    if "warm_start" not in svm.get_params():
        with pytest.raises(ValueError, match=r"warm=True needs an estimator with the parameter warm_start"):
            LearningCurveDisplay.from_estimator(svm, X, Y, X_DEV, Y_DEV, warm=True)


# Calibration before and after


@pytest.mark.parametrize("kind", ["chain", "single"])
def test_calibration_before_and_after(kind):
    if kind == "chain":
        model = StructuredSVM(random_state=0, C=0.1).fit(X, Y).calibrate(*corpus(30, BIO, 2))
        data, truth = X_DEV, Y_DEV
    else:
        model = StructuredSVM("single", random_state=0).fit(POINTS[:40], SIDES[:40])
        model.calibrate(POINTS[40:60], SIDES[40:60])
        data, truth = POINTS[60:], SIDES[60:]
    display = CalibrationChangeDisplay.from_estimator(model, data, truth)
    after = model.predict_proba(data)
    scores = model.decision_scores(data)
    # By hand at T = 1: the scores of all labellings that agree on a node, normalised.
    node = model.structure_.marginals(scores, temperature=1.0).node
    before = np.split(node, scores.offsets[1:-1]) if kind == "chain" else node
    for at, rows in enumerate((before, after)):
        nested = (truth, rows) if kind == "chain" else ([truth.tolist()], [rows])
        assert display.errors[at] == pytest.approx(calibration_error(*nested, model.classes_))
        assert display.log_losses[at] == pytest.approx(token_log_loss(*nested, model.classes_))
    assert display.temperature == model.temperature
    assert display.to_frame()["temperature"].tolist() == [1.0, model.temperature]


def test_calibration_of_a_crf_trained_at_another_temperature():
    model = CRF(C=30.0, temperature=2.0).fit(X, Y)
    rows = model.predict_proba(X_DEV)
    display = CalibrationChangeDisplay.from_estimator(model.calibrate(*corpus(30, BIO, 2)), X_DEV, Y_DEV)
    assert display.log_losses[0] == pytest.approx(token_log_loss(Y_DEV, rows, model.classes_))
    assert display.to_frame()["temperature"].tolist() == [2.0, model.calibration_.temperature]
    assert "before, T = 2" in display.html()


def test_calibration_of_averages_and_sub_states():
    """Of several models the probabilities are means, before and after; those of sub-states are sums."""
    bagged = BaggedTagger(CRF(C=100.0), n_estimators=3, random_state=0)
    latent = LatentCRF(CRF(), LatentChain(2), n_restarts=1, random_state=0)
    for model in (bagged, BayesianCRF(C=100.0, n_predict=4), BayesianCRF(C=100.0, prediction="ep"), latent):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # sub-states have nothing to find here
            rows = model.fit(X, Y).predict_proba(X_DEV)
        display = CalibrationChangeDisplay.from_estimator(model.calibrate(*corpus(30, BIO, 2)), X_DEV, Y_DEV)
        for loss, each in zip(display.log_losses, (rows, model.predict_proba(X_DEV)), strict=True):
            assert loss == pytest.approx(token_log_loss(Y_DEV, each, model.classes_))


def test_models_without_a_temperature_are_refused():
    with pytest.raises(ValueError, match=r"a StructuredSVM after calibrate\(X, y\)\. Got StructuredSVM instead"):
        CalibrationChangeDisplay.from_estimator(StructuredSVM(random_state=0).fit(X, Y), X, Y)
