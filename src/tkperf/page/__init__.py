"""Build the content of reports as data: sentences, tables and figures. The renderers turn this content into output."""
