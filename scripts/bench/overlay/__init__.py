"""The suite that measures what an overlay costs."""
