-- Calls: recursion, closures, varargs, methods, protected calls.
local function fibonacci(n) if n < 2 then return n end return fibonacci(n - 1) + fibonacci(n - 2) end
local function count(...) return select("#", ...) end
local Account = {}
Account.__index = Account
function Account.new(n) return setmetatable({n = n}, Account) end
function Account:add(k) self.n = self.n + k return self end
local total = fibonacci(27)
local account = Account.new(0)
for i = 1, 500000 do
    local step = function(n) return n + i end
    account:add(step(1)):add(2)
    total = total + count(i, i, nil)
    if i % 8 == 0 then total = total + (pcall(fibonacci, 3) and 1 or 0) end
end
print(total, account.n)
