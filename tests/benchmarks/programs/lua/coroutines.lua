-- Coroutines that pass numbers on.
local function numbers(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end) end
local function odd(source) return coroutine.wrap(function() for i in source do if i % 2 == 1 then coroutine.yield(i) end end end) end
local total = 0
for i in odd(odd(numbers(400000))) do total = total + i end
print(total)
