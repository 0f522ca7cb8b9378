"""Results as data: sentences, tables and figures. Renderers draw them."""
