"""Build the content of reports as data: sentences, tables and figures. The renderers convert this content into
output.
"""
