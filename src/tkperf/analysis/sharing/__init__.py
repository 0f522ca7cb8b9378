"""Resources that the drives of one host share. The modules form groups of drives that run at the same time, assign CPUs
to each drive, and compare the read rate of a drive alone with the read rate of the drive while other drives also read.
"""
