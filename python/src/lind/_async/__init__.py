"""Sandboxes for asyncio."""
