"""What is shown, as data: results in sentences, tables and figures. Renderers draw it."""
