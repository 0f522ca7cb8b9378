"""Print pages in a terminal. Figures are drawn with characters."""
