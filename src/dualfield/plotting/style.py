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
# A hue for each type of span: those of Okabe and Ito, which people with any kind of colour vision can tell apart.
# Shades of up to UNDER_TEXT keep a contrast of at least 4.5:1 to ink, on paper and on panels, in both schemes.
HUES = (
    ("#009e73", "#009e73"),  # green
    ("#cc79a7", "#cc79a7"),  # purple
    ("#e69f00", "#d68c10"),  # orange
    ("#0072b2", "#1c86d1"),  # blue
    ("#d55e00", "#c04a00"),  # vermilion
    ("#56b4e9", "#56b4e9"),  # sky blue
    ("#f0e442", "#c3c53a"),  # yellow
)
UNDER_TEXT = 0.45
LIGHT = {name: light for name, (light, _) in PALETTE.items()}
CYCLE = [LIGHT[name] for name in ("accent", "second", "third", "fourth", "soft", "wrong")]


def variables(scheme: int) -> str:
    """Return the palette as CSS variables: scheme 0 is light, 1 is dark."""
    hues = {f"hue-{at}": colours for at, colours in enumerate(HUES)}
    return " ".join(f"--{name}: {colours[scheme]};" for name, colours in (PALETTE | hues).items())


TABLE_STYLE = """
table { border-collapse: collapse; margin: .8rem 0; }
caption { text-align: left; padding-bottom: .3rem; }
.soft, caption, figcaption { color: var(--soft); font-size: .9rem; }
.data th, .data td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; }
.data th:first-child, .data td:first-child { text-align: left; }
.data td:first-child { white-space: nowrap; }
.scroll { overflow-x: auto; }
"""
SVG_STYLE = "svg text { font-family: system-ui, sans-serif; } svg path { stroke-linejoin: round; }"
DRAWING_STYLE = (
    SVG_STYLE
    + """
svg { display: block; max-width: 100%; height: auto; overflow: visible; }
svg.whole { max-width: none; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 250px), 1fr)); gap: 1rem 2rem;
  align-items: start; }
.charts svg { width: 100%; max-width: min(100%, 440px); }
.charts table { margin: 0; font-size: .85rem; }
.charts .data th, .charts .data td { padding: .2rem .5rem; }
.grid-box { overflow-x: auto; margin: .8rem 0; }
.grid-box svg { width: var(--full); min-width: var(--least); overflow: hidden; }
.weights { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 330px), 1fr)); gap: 12px; }
.weights section { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 8px 10px; }
.weights h4 { font-size: .95rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }
.weights table { width: 100%; margin: 0; table-layout: fixed; font-size: .85rem; }
.weights td { padding: 1px 4px 1px 0; vertical-align: top; }
.weights td:first-child { overflow-wrap: anywhere; }
.weights .sign { width: 6.5rem; background: linear-gradient(90deg, transparent 50%, var(--line) 50%,
  var(--line) calc(50% + 1px), transparent calc(50% + 1px)); }
.weights .number { width: 4.2rem; text-align: right; font-variant-numeric: tabular-nums; }
.weights .bar { display: block; height: .7em; margin-top: .35em; background: var(--accent); }
.weights .bar.minus { background: var(--second); }
.sentence { display: flex; flex-wrap: wrap; gap: 4px; margin: .5rem 0 1rem; line-height: 1.25; }
.sentence.spans { display: block; line-height: 2.1; padding-right: .4em; overflow-wrap: anywhere; }
.span { color: inherit; padding: .2em .4em; margin: 0 .1em; border: 1px solid var(--hue); border-radius: .4em;
  background: color-mix(in srgb, var(--hue) var(--strength), transparent);
  -webkit-box-decoration-break: clone; box-decoration-break: clone; }
.span .type, .span .chance, .span .note { font-size: .72rem; margin-left: .45em; white-space: nowrap; }
.span .last { white-space: nowrap; }
.span .type { font-weight: 700; }
.span .chance { font-variant-numeric: tabular-nums; }
.span .note { font-weight: 700; color: var(--wrong); white-space: normal; background: var(--paper); border-radius: .3em;
  padding: .1em .35em; }
.span.wrong, .span.missed { border: 2px solid var(--wrong); }
.span.missed { background: none; border-style: dashed; }
.doubt { text-decoration: underline dotted var(--soft); text-underline-offset: .25em; }
.token { border: 1px solid var(--hue, transparent); border-radius: 4px; padding: 2px 6px; text-align: center;
  background: color-mix(in srgb, var(--hue, transparent) var(--strength, 0%), transparent);
  max-width: 100%; overflow-wrap: anywhere; }
.token span, .token b { display: block; }
.token b { font-weight: 600; }
.token .label, .token .chance { font-size: .75rem; font-variant-numeric: tabular-nums; }
.token.wrong { border: 2px solid var(--wrong); }
.token.wrong .label { text-decoration: line-through 1.5px; }
.token .note { font-size: .75rem; font-weight: 600; }
"""
)
