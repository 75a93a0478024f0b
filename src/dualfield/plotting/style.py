"""The look of everything on a page: its colours in both schemes, and the CSS of what is drawn or marked up."""

# Text and line colours keep a contrast of at least 4.5:1 against paper and panel, in both schemes.
PALETTE = {  # in light and in dark mode
    "paper": ("#ffffff", "#14171a"),
    "panel": ("#f5f7f9", "#1e2226"),
    "ink": ("#1b1f24", "#e6e8ea"),
    "soft": ("#57606a", "#a5adb5"),
    "line": ("#cfd6dd", "#454c53"),
    "accent": ("#0b4f9e", "#86b8ff"),
    "second": ("#a34a00", "#ffb26b"),
    "third": ("#1a7431", "#7ee787"),
    "fourth": ("#7a3fd1", "#d2a8ff"),
    "wrong": ("#b3261e", "#ff8f85"),
}
LIGHT = {name: light for name, (light, _) in PALETTE.items()}
CYCLE = [LIGHT[name] for name in ("accent", "second", "third", "fourth", "soft", "wrong")]


def variables(scheme: int) -> str:
    """Return the palette as CSS variables: scheme 0 is light, 1 is dark."""
    return " ".join(f"--{name}: {colours[scheme]};" for name, colours in PALETTE.items())


SVG_STYLE = "svg text { font-family: system-ui, sans-serif; } svg path { stroke-linejoin: round; }"
DRAWING_STYLE = (
    SVG_STYLE
    + """
svg { display: block; max-width: 100%; height: auto; overflow: visible; }
.charts { display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: flex-start; }
.grid-box { overflow-x: auto; }
.grid-box svg { max-width: none; overflow: hidden; }
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
)
