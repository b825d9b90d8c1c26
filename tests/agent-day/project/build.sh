#!/bin/bash
set -euo pipefail
mkdir -p out
wc -l < data/scores.csv > out/lines
echo "built $(cat out/lines) lines"
