"""Results of other tools as runs of ours: read strictly, judged anew, and marked as imported.

An importer turns a file into the records a run leaves behind; the command line writes them to a
run file. What the other tool did not keep stays "not measured".
"""

# What results of fio's own files are called where a run names its test.
FIO_TEST = "fio"
