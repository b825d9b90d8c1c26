# Fields, arrays, substitutions, matches over a text.
{ for (i = 1; i <= NF; i++) count[$i]++; n += NF; if (sub(/ab+c?/, "<&>")) changed++; if ($2 ~ /^[a-e]+j/) matched++ }
END { for (word in count) if (count[word] > best || (count[word] == best && word < top)) { best = count[word]; top = word }
	print n, changed, matched, top, best, length(count) }
