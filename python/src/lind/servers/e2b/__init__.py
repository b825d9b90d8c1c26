"""E2B: clients made for its cloud run their commands in sandboxes of this machine."""
