"""Strings: built, split, joined, searched, formatted, encoded."""

text = " ".join(f"word{i % 97} \u00e4{i}" for i in range(6000))
total = 0
for turn in range(20):
    parts = text.split()
    total += len("-".join(part.upper() for part in parts))
    total += len(text.replace("word", "other")) + text.count("7 ") + text.find("word96 \u00e45999")
    total += sum(part.startswith("word9") or part.endswith("3") for part in parts)
    total += len("".join([f"{part:>8}|{turn:04d}" for part in parts[:4000]]))
    total += len("%s %d %.3f" % ("x", turn, turn / 7)) + len(text.encode().decode())
    reversed_text = text[::-1]
    built = ""
    for character in reversed_text[:20000]:
        built += character
    total += len(built.strip("9").title().swapcase()) + ord(built[turn])
print(total)
