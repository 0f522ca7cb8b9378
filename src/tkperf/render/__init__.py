"""Reports for people. Needs the extra ``report``; nothing else imports it."""
