"""Grey pictures as PNG, written by hand so that a report needs no imaging library."""

import base64
import struct
import zlib

import numpy as np
from numpy.typing import ArrayLike

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def _chunk(kind: bytes, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + kind + payload + struct.pack(">I", zlib.crc32(kind + payload))


def encode_png(ink: ArrayLike) -> bytes:
    """Encode an array of ink as an 8-bit grey PNG.

    Parameters
    ----------
    ink : array-like of shape (height, width)
        0 is white paper, 1 is black; values outside [0, 1] are cut off.

    Returns
    -------
    bytes
        The content of a PNG file.

    Examples
    --------
    >>> from dualfield.report import encode_png
    >>> encode_png([[0.0, 1.0], [0.5, 0.0]])[1:4]
    b'PNG'
    """
    picture = np.asarray(ink, dtype=np.float64)
    if picture.ndim != 2 or picture.size == 0:
        raise ValueError(f"Expected a non-empty 2D array of ink. Got an array of shape {picture.shape} instead.")
    if not np.isfinite(picture).all():
        raise ValueError("The array of ink contains NaN or infinity.")
    grey = np.rint(255.0 * (1.0 - np.clip(picture, 0.0, 1.0))).astype(np.uint8)
    height, width = grey.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bits per pixel, grey, not interlaced
    rows = b"".join(b"\x00" + row.tobytes() for row in grey)  # each row starts with its filter: none
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")


def png_data_uri(ink: ArrayLike) -> str:
    """Encode an array of ink as a ``data:`` address for the ``src`` of an image.

    Parameters
    ----------
    ink : array-like of shape (height, width)
        0 is white paper, 1 is black.

    Returns
    -------
    str
        ``data:image/png;base64,...``

    Examples
    --------
    >>> from dualfield.report import png_data_uri
    >>> png_data_uri([[0.0]])[:22]
    'data:image/png;base64,'
    """
    return "data:image/png;base64," + base64.b64encode(encode_png(ink)).decode("ascii")
