"""Resources that the drives of one host share. The modules form groups of drives that run at the same time, assign CPUs
to each drive, and compare the rate at which a drive reads alone and together with other drives.
"""
