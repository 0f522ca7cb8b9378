"""Resources that the drives of one host share: groups of drives that run at the same time, the CPUs of each drive, and
the comparison of reads.
"""
