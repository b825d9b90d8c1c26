// Nothing: only what this package depends on is wanted.
