"""From text to compiled corpora: chunks of files, pieces, partitions."""

from dualfield.io.compiling.compile import compile_corpus
from dualfield.io.compiling.running import CompileProgress

__all__ = ["CompileProgress", "compile_corpus"]
