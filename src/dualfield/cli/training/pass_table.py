"""Progress of a fit: a line for each pass, and on a terminal a progress bar of the gap."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from dualfield.cli.program import tell

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

_BAR = 30  # characters


class PassTable:
    """Shows passes as they end; a context manager, and the ``monitor`` of a fit.

    Parameters
    ----------
    tol : float
        The relative gap at which the fit stops.
    score : callable or None
        Gives the score of a model on development data, between 0 and 1.
    score_name : str
        What it is called.
    certified : bool
        Whether the solver knows objective and gap on its way.
    quiet : bool
        Whether to show nothing; scores are kept all the same.
    factor : float
        A pass has a line if its gap is smaller by this factor than that of the line before, or first within the
        tolerance.
    """

    def __init__(
        self,
        tol: float,
        score: Callable[[Any], float] | None = None,
        score_name: str = "",
        *,
        certified: bool = True,
        quiet: bool = False,
        factor: float = 0.0,
    ) -> None:
        self.tol, self.score, self.score_name, self.quiet = tol, score, score_name, quiet
        self.certified, self.factor = certified, factor
        self.history: list[tuple[float, float, str, float]] = []  # passes, seconds, name of the score, score
        self._live: Live | None = None
        self._first_gap, self._last_gap = math.nan, math.inf
        self._begun = False
        self._shown_at = 0.0

    def __enter__(self) -> PassTable:
        from rich.console import Console

        console = Console(stderr=True, highlight=False, soft_wrap=True)
        if console.is_terminal and not self.quiet:
            from rich.live import Live

            self._live = Live(console=console, transient=True, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, moment: Any, model: Any) -> None:
        """Take note of a pass."""
        value = None
        if self.score is not None:
            value = self.score(model)
            self.history.append((float(moment.passes), float(moment.seconds), self.score_name, value))
        if self.quiet:
            return
        if not self._begun:
            self._begin(model)
        gap = float(moment.relative_gap)
        if not gap * self.factor > self._last_gap or gap <= self.tol < self._last_gap:
            self._line(self._row(moment, value))
            self._last_gap = gap
        self._show_bar(gap)

    def _begin(self, model: Any) -> None:
        self._begun = True
        self._line(f"{_size(model)}\n")
        score = f"  {'dev ' + self.score_name:>12}" if self.score is not None else ""
        self._line(f"{'pass':>6}  {'objective':>14}  {'gap':>8}{score}  {'seconds':>8}")

    def _row(self, moment: Any, value: float | None) -> str:
        score = f"  {100 * value:>12.2f}" if value is not None else ""
        shown = f"{moment.relative_gap:.1e}" if self.certified else "-"
        objective = f"{moment.objective:.{4 if moment.objective < 1e8 else 0}f}" if self.certified else "-"
        return f"{moment.passes:>6.1f}  {objective:>14}  {shown:>8}{score}  {moment.seconds:>8.1f}"

    def _line(self, text: str) -> None:
        if self._live is not None:
            self._live.console.print(text, markup=False)
        else:
            tell(text)

    def _show_bar(self, gap: float) -> None:
        if self._live is None or not math.isfinite(gap):
            return
        now = time.monotonic()
        if now - self._shown_at < 0.1:  # quick passes: the eye sees no more
            return
        self._shown_at = now
        if math.isnan(self._first_gap):
            self._first_gap = gap
        self._live.update(bar(self._first_gap, gap, self.tol), refresh=True)


def bar(first: float, gap: float, tol: float) -> Text:
    """Draw how far a gap has come on its way from the first one to the tolerance, in equal steps for equal factors."""
    from rich.text import Text

    share = 1.0 if first <= tol else math.log(first / max(gap, tol)) / math.log(first / tol)
    full = round(_BAR * min(max(share, 0.0), 1.0))
    text = Text("  gap ")
    text.append("━" * full, style="green")
    text.append("━" * (_BAR - full), style="bright_black")
    return text.append(f" {gap:.1e}, stops at {tol:.0e}")


def _size(model: Any) -> str:
    attributes = f"{len(model.vocabulary_):,} attributes, " if model.vocabulary_ is not None else ""
    return f"{attributes}{model.n_features_:,} weights"
