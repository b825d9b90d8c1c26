-- Tables: arrays, hashes, both grown and cleared.
local total = 0
for turn = 1, 8 do
    local array, hash = {}, {}
    for i = 1, 100000 do array[i] = i * turn % 1009 end
    for i = 1, #array do local n = array[i]; hash["k" .. n] = (hash["k" .. n] or 0) + 1 end
    for key, value in pairs(hash) do total = total + #key + value end
    for _ = 1, 40 do table.insert(array, 1 + #array // 2, 7); table.remove(array, #array // 3) end
    local points = {}
    for i = 1, 30000 do points[i] = {x = i, y = i % 7} end
    for _, point in ipairs(points) do point.x, point.y = point.y, point.x; total = total + point.y end
end
print(total)
