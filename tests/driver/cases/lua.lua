-- What of Lua leans on the C library: numbers, strings, errors (longjmp), coroutines, files, time, memory.
assert(string.format("%.17g %d %5.1f|%-5s|%q", 0.1, 7, 2.25, "ab", "x\n") == '0.10000000000000001 7   2.2|ab   |"x\\\n"')
assert(tonumber("0x1p4") == 16 and tonumber("1e308") * 10 == math.huge and 7 // 2 == 3 and -7 % 3 == 2)
assert(math.type(1) == "integer" and math.maxinteger + 1 == math.mininteger and 2^53 == 9007199254740992)
assert(math.abs(math.sin(1) - 0.8414709848078965) < 1e-15 and math.floor(-1.5) == -2 and math.fmod(7, 3) == 1)

-- Errors unwind through C frames.
local function deep(n) if n == 0 then error({ code = 42 }) end return deep(n - 1) + 1 end
for _ = 1, 1000 do
	local ok, e = pcall(deep, 50)
	assert(not ok and e.code == 42)
end
assert(select(2, pcall(string.rep, "x", -1)) == "")
assert(select(2, xpcall(function() local x = nil; return x.y end, function(m) return "caught " .. m end)):find("caught .*index"))
assert(not pcall(string.rep, "x", 1 << 40))
local ok, e = pcall(function() local function f() return f() + 1 end return f() end)
assert(not ok and tostring(e):find("stack overflow"))

-- Sorting calls back and forth between C and Lua; coroutines leave by error and yield across pcall.
local t = {}
for i = 1, 5000 do t[i] = (i * 7919) % 10007 end
table.sort(t, function(a, b) return a > b end)
for i = 2, #t do assert(t[i - 1] >= t[i]) end
local co = coroutine.wrap(function(a) local b = a; while true do b = coroutine.yield(select(2, pcall(coroutine.yield, b))) end end)
assert(co(1) == 1 and co(2) == 2)
local dead = coroutine.create(function() error("x") end)
assert(not coroutine.resume(dead) and coroutine.status(dead) == "dead")

-- Patterns, utf8, packing.
assert(("key = value"):match("^(%w+)%s*=%s*(%w+)$") == "key" and ("abc"):gsub("%w", "%0%0") == "aabbcc")
assert(utf8.len("äöü€") == 4 and utf8.char(8364) == "€" and string.pack("<i4d", 7, 1.5):len() == 12)

-- Files.
local name = os.tmpname()
local f = assert(io.open(name, "w+b"))
assert(f:setvbuf("full", 4096))
for i = 1, 20000 do f:write(i, "\n") end
assert(f:seek("set", 0) == 0 and f:read("n") == 1 and f:seek("end") == 108894)
f:close()
local sum = 0
for line in io.lines(name) do sum = sum + tonumber(line) end
assert(sum == 200010000)
assert(os.rename(name, name .. ".b") and not io.open(name) and os.remove(name .. ".b"))
local _, message, code = io.open("/no/such/file")
assert(code == 2 and message:find("No such file or directory"))

-- Time, environment, collection of a lot of garbage.
assert(os.time({ year = 2001, month = 9, day = 9, hour = 1, min = 46, sec = 40 }) == 1000000000 and os.date("!%Y", 0) == "1970")
assert(os.getenv("NOT_SET_ANYWHERE") == nil and os.clock() >= 0)
local weak = setmetatable({}, { __mode = "v", __gc = function() end })
for i = 1, 200000 do weak[1] = { i, tostring(i) } end
collectgarbage()
assert(weak[1] == nil and collectgarbage("count") < 20000)
print("OK")
