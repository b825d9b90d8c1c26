"""The parts of scripts/benchrunner.py."""
