"""One module a widget, each with an ENTRY; `registry.py` finds them."""
