"""Servers: sandboxes behind protocols that other programs speak."""
