"""JSON: records to text and back."""

import json

records = [{"id": i, "name": f"name {i}", "tags": ["a", "bc", str(i)], "share": i / 7, "flag": i % 2 == 0, "none": None,
            "inner": {"text": "a line\nwith \"quotes\" and \u00e4\u20ac", "list": list(range(i % 10))}} for i in range(1500)]
length = 0
for turn in range(16):
    text = json.dumps(records)
    length += len(text)
    back = json.loads(text)
    length += len(json.dumps(back, indent=1, sort_keys=True)) if turn % 4 == 0 else 0
print(length, back == records)
