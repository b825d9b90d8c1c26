-- Strings: formats, patterns, concatenation.
local total = 0
for i = 1, 120000 do
    local text = string.format("%d:%s:%5.2f", i, "abc", i / 3)
    text = text:gsub("%d+", function(digits) return digits .. "x" end)
    for word in text:gmatch("[^:]+") do total = total + #word end
    total = total + #text:upper() + (text:find("x:", 1, true) or 0) + text:byte(1)
end
local parts = {}
for i = 1, 200000 do parts[#parts + 1] = tostring(i) end
print(total, #table.concat(parts, ","))
