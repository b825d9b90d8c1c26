"""The suite that measures the cost of an overlay."""
