-- What scripts do, for the profile by which the interpreter is compiled: a little of each library, and of the parser.
local Shape = {}
Shape.__index = Shape
Shape.__eq = function(a, b) return a.side == b.side end
Shape.__add = function(a, b) return Shape.new(a.side + b.side) end
function Shape.new(side) return setmetatable({ side = side, name = "shape" .. side }, Shape) end
function Shape:area() return self.side * self.side end
local Box = setmetatable({}, { __index = Shape, __call = function(class, side) local new = Shape.new(side); return setmetatable(new, class) end })
Box.__index = Box
function Box:volume() return self:area() * self.side end

local function objects(n)
    local sum, last = 0, Shape.new(0)
    for i = 1, n do
        local shape, box = Shape.new(i % 10), Box(i % 7)
        sum = sum + shape:area() + box:volume() + (shape == last and 1 or 0) + (shape + last).side
        last = shape
    end
    return sum
end

local function texts(n)
    local lines, total = {}, 0
    for i = 1, n do lines[#lines + 1] = ("%s = %d; -- %q %6.3f"):format("key" .. i % 50, i, "a\tb", i / 9) end
    local text = table.concat(lines, "\n")
    for key, value in text:gmatch("(%w+) = (%d+);") do total = total + #key + tonumber(value) end
    text = text:gsub("key(%d)", { ["1"] = "one", ["2"] = "two" }):gsub("%-%-.-\n", ""):lower():reverse()
    for i = 1, #text, 17 do total = total + text:byte(i) + (text:sub(i, i + 3) == "eno" and 1 or 0) end
    local at = 1
    while true do
        local from, to = text:find("%d+", at)
        if not from then break end
        at, total = to + 1, total + to - from
    end
    return total
end

local function tables(n)
    local list, set, total = {}, {}, 0
    for i = n, 1, -1 do list[#list + 1] = i * 7919 % 1013 end
    for i, value in ipairs(list) do set[value] = (set[value] or 0) + i end
    table.sort(list)
    table.sort(list, function(a, b) return a % 100 < b % 100 or (a % 100 == b % 100 and a < b) end)
    for value, count in pairs(set) do total = total + value * count end
    while #list > n // 2 do table.remove(list) end
    for i = 1, 100 do table.insert(list, i, i) end
    return total + select("#", table.unpack(list, 1, 50)) + #{ next(set) }
end

local function numbers(n)
    local grid, total = {}, 0.0
    for i = 1, n do
        grid[i] = {}
        for j = 1, n do grid[i][j] = (i * j) % 11 / 3 end
    end
    for i = 1, n do
        for j = 1, n do
            local sum = 0
            for k = 1, n do sum = sum + grid[i][k] * grid[k][j] end
            total = total + sum
        end
    end
    local bits = 1
    for i = 1, n * n do bits = ((bits << 5) ~ (bits >> 2) ~ i) & 0xffffffff; total = total + math.floor(bits % 7) + math.max(i, n) end
    return total
end

local function calls(n)
    local function tree(depth) return depth == 0 and { 1 } or { tree(depth - 1), tree(depth - 1) } end
    local function count(node) return #node == 1 and 1 or count(node[1]) + count(node[2]) end
    local function later(step) local at = 0; return function(...) at = at + step; return at, ... end end
    local total, step = 0, later(3)
    for i = 1, n do
        total = total + count(tree(6)) + select(2, step(i, nil))
        local ok, message = pcall(function(x) if x % 5 == 0 then error("five") end return x end, i)
        total = total + (ok and message or #message)
    end
    local produce = coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end return 0 end)
    for _ = 1, n do total = total + produce() end
    return total
end

local function parser(n)
    local total = 0
    for i = 1, n do
        local source = ("local a, b = %d, { x = 'y', [%d] = 2 }\nfor i = 1, 3 do a = a + (b[i] or i) ^ 2 // 1 end\nif a > 4 and not b.z then return a else goto done end ::done::"):format(i, i)
        total = total + assert(load(source))()
    end
    return total
end

for _ = 1, 3 do
    for _, result in ipairs { objects(30000), texts(3000), tables(20000), numbers(60), calls(400), parser(300) } do io.write(result, " ") end
    print(collectgarbage("count") > 0)
end
