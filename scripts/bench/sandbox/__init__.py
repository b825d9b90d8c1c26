"""The parts of scripts/sandbench.py."""
