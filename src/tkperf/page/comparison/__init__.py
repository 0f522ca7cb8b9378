"""Build the content of a comparison's page: findings, tables and charts."""
