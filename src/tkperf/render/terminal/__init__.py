"""Print pages in a terminal, with figures that are drawn with characters."""
