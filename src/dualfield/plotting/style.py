"""The look of everything that is drawn as HTML and SVG; the colours themselves are those of the page."""

from dualfield.plotting.line_chart import LINE_CHART_STYLE

DRAWING_STYLE = (
    """
svg { display: block; max-width: 100%; height: auto; }
svg text { fill: var(--ink); font: 11px system-ui, sans-serif; }
svg .soft { fill: var(--soft); font-size: 11px; }
svg .frame { fill: none; stroke: var(--line); }
svg .cell, svg .shade { fill: var(--accent); }
svg .mark { fill: none; stroke: var(--second); stroke-width: 1.5; }
svg .even { fill: none; stroke: var(--soft); stroke-dasharray: 2 4; }
svg .curve { fill: none; stroke-width: 2; }
svg .curve.c0 { stroke: var(--second); stroke-dasharray: 6 4; }
svg .curve.c1 { stroke: var(--accent); }
svg .spread { fill: none; stroke-width: 1; }
svg .spread.c0 { stroke: var(--second); }
svg .spread.c1 { stroke: var(--accent); }
svg .dot.c0 { fill: var(--second); }
svg .dot.c1 { fill: var(--accent); }
svg .cell.minus, svg .shade.minus { fill: var(--second); }
svg .crossed { fill: none; stroke: var(--soft); stroke-opacity: .55; }
.charts { display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: flex-start; }
.grid-box { overflow-x: auto; }
.grid-box svg { max-width: none; }
.weights { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 330px), 1fr)); gap: 12px; }
.weights section { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 8px 10px; }
.weights h4 { font-size: .95rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }
.weights table { width: 100%; margin: 0; table-layout: fixed; font-size: .85rem; }
.weights td { padding: 1px 4px 1px 0; vertical-align: top; }
.weights td:first-child { overflow-wrap: anywhere; }
.weights .sign { width: 5rem; background: linear-gradient(90deg, transparent 50%, var(--line) 50%,
  var(--line) calc(50% + 1px), transparent calc(50% + 1px)); }
.weights .number { width: 4.2rem; text-align: right; font-variant-numeric: tabular-nums; }
.weights .bar { display: block; height: .7em; margin-top: .35em; background: var(--accent); }
.weights .bar.minus { background: var(--second); }
.sentence { display: flex; flex-wrap: wrap; gap: 4px; margin: .5rem 0 1rem; line-height: 1.25; }
.token { position: relative; border: 1px solid var(--line); border-radius: 4px; padding: 2px 6px; text-align: center;
  overflow: hidden; max-width: 100%; overflow-wrap: anywhere; }
.token .shade { position: absolute; inset: 0; background: var(--accent); }
.token span, .token b { position: relative; display: block; }
.token b { font-weight: 600; }
.token .label, .token .chance { font-size: .75rem; font-variant-numeric: tabular-nums; }
.token.wrong { border: 2px solid var(--wrong); }
.token.wrong .label { text-decoration: line-through 1.5px; }
.token .truth { font-size: .75rem; font-weight: 600; }
"""
    + LINE_CHART_STYLE
)
