"""Import of other tools' results: read strictly, judged anew, and marked as imported.

An importer turns a file into the records of a run; the command line writes them to a run file. Values that
the other tool did not keep stay "not measured".
"""

# Test name of results from fio's own files.
FIO_TEST = "fio"
