"""What drives of one host share: groups that run at once, their CPUs, and the comparison of reads."""
