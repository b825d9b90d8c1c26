"""Measures the cost of a cage for real programs: interpreters, a database, tools."""
