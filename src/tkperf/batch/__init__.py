"""Many drives on one host: one plan, one consent, a process and a run file for each drive, one answer."""
