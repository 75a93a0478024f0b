"""Templates: attributes of tokens from the raw columns of a table, as CRF++ and Wapiti write them."""

from dualfield.features.template import Template, TemplateRows

__all__ = ["Template", "TemplateRows"]
