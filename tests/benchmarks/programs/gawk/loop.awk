# Loops, functions, strings without input.
function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) }
BEGIN {
	total = f(22)
	for (i = 0; i < 600000; i++) { total += i % 7; a[i % 1000] = a[i % 1000] + i }
	for (i = 0; i < 60000; i++) { s = sprintf("%05d:%s", i, substr("abcdefgh", i % 5 + 1, 3)); total += length(s) + index(s, ":c") + split(s, p, ":") }
	print total, a[77], toupper(s)
}
