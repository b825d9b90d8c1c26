"""What real programs cost in a cage: interpreters, a database, tools."""
