"""The suite that measures sandboxes as a program uses them: the Python package beside others."""
