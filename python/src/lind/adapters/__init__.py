"""Sandboxes in the interfaces of frameworks for agents.

Each module is for one framework, and needs it: `pip install 'lind-sandbox[langchain]'` installs it with this package.
"""
