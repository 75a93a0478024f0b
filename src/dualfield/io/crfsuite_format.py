"""The layout of CRFsuite's model files.

A file is a header and five chunks at places that the header names: all features (FEAT), two dictionaries (CQDB) of the
names of labels and attributes, and for each label (LFRF) and each attribute (AFRF) the list of its features, by which
CRFsuite itself finds them. Numbers are little-endian.
"""

from __future__ import annotations

import struct

import numpy as np

MARK, KIND, VERSION = b"lCRF", b"FOMC", 100
# Mark, size, kind, version, number of features (always 0: CRFsuite never fills it in), of labels and of attributes, and
# the places of features, labels, attributes, lists of labels and lists of attributes.
HEADER = struct.Struct("<4sI4s9I")
CHUNK = struct.Struct("<4sII")  # mark, size with this head, number of entries
DICTIONARY = struct.Struct("<4s5I")  # mark, size, flags, byte order, length and place of the array of records
N_TABLES = 256  # hash tables of a dictionary, from names to numbers; behind its head come place and size of each
TABLES_SIZE = N_TABLES * 8
BYTE_ORDER = 0x62445371
FEATURE = np.dtype([("kind", "<u4"), ("source", "<u4"), ("target", "<u4"), ("weight", "<f8")])
STATE, TRANSITION = 0, 1  # the kinds of features
WORD = np.dtype("<u4")
LIMIT = 2**32  # places are numbers of 32 bits
