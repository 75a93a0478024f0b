"""Model files and checkpoints: one safetensors file each, validated when read."""

from dualfield.persistence.file import ModelFileError, read_model_header

__all__ = ["ModelFileError", "read_model_header"]
