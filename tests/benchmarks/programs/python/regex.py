"""Regular expressions: searched, replaced, split, with groups and alternatives."""

import re

line = '10.1.{0}.7 - user{0} [12/Mar/2024:10:{1:02}:00 +0000] "GET /a/b{0}/index.html?q=x&r={0} HTTP/1.1" 200 {0}'
text = "\n".join(line.format(i % 256, i % 60) for i in range(3000))
log = re.compile(r'^(\d+\.\d+\.\d+\.\d+) - (\w+) \[([^\]]+)\] "(GET|POST) ([^ ?]+)(?:\?(\S*))? HTTP/[\d.]+" (\d{3}) (\d+)$', re.M)
total = 0
for turn in range(9):
    total += sum(len(found[1]) + int(found[8]) for found in log.finditer(text))
    total += len(re.sub(r"user(\d+)", lambda found: found[1][::-1], text))
    total += len(re.findall(r"index|html|GET\b|(?:[a-c]/)+b\d", text)) + len(re.split(r"[\s\"]+", text))
    total += sum(1 for _ in re.finditer(r"(?i)USER1?5", text)) + bool(re.search(r"(x+x+)+y", "x" * 16))
print(total)
