"""Counts words."""
import sys
from collections import Counter


def tally(text):
    # TODO: handle punctuation
    return Counter(text.lower().split())


def main():
    for word, count in sorted(tally(sys.stdin.read()).items()):
        print(word, count)


if __name__ == "__main__":
    main()
