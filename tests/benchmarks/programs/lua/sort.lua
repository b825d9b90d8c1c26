-- Sorting: with and without a comparison.
local n, seed = 150000, 1
local function fill()
    local numbers = {}
    for i = 1, n do seed = (seed * 1103515245 + 12345) % 2147483648; numbers[i] = seed end
    return numbers
end
local first, second = fill(), fill()
table.sort(first)
table.sort(second, function(a, b) return a > b end)
print(first[1], first[n], second[1], second[n])
