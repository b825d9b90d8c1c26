"""A sandbox behind the Model Context Protocol.

`main` reads the options and serves, `server` has the tools, and each other module does what a few of them need.
"""
