"""Tables of data for pages."""

from collections.abc import Iterable, Sequence

from dualfield.plotting.markup import Html, escape


def table(header: Sequence[object], rows: Iterable[Sequence[object]], *, caption: object = "") -> Html:
    r"""Lay out a table of data: first column to the left, the others to the right.

    Parameters
    ----------
    header : sequence
        One heading per column.
    rows : iterable of sequences
        The cells, as many in each row as there are headings.
    caption : object, default=""
        A sentence above the table.

    Returns
    -------
    Html
        The table, in a box that scrolls sideways on a narrow screen.

    Examples
    --------
    >>> from dualfield.report import table
    >>> "<td>1 &lt; 2</td>" in table(["claim", "true"], [["1 < 2", "yes"]])
    True
    >>> "<td>7.0 ± 0.2</td>" in table(["error"], [["7.0 ± 0.2"]]).replace("\N{NO-BREAK SPACE}", " ")
    True
    """
    lines = ['<div class="scroll"><table class="data">']
    if caption:
        lines.append(f"<caption>{escape(caption)}</caption>")
    lines.append("<thead><tr>" + "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header) + "</tr></thead>")
    lines.append("<tbody>")
    for number, row in enumerate(rows):
        if len(row) != len(header):
            raise ValueError(f"rows[{number}] has {len(row)} cells; expected {len(header)}, as in the header.")
        # A number and its uncertainty stay on one line.
        cells = (escape(cell).replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}") for cell in row)
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    lines.append("</tbody></table></div>")
    return Html("\n".join(lines))
