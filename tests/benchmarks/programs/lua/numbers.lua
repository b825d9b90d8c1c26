-- Numbers: a spectral norm and a sieve.
local function entry(i, j) local k = i + j; return 1.0 / (k * (k + 1) / 2 + i + 1) end
local function times(vector, n, transposed)
    local out = {}
    for i = 0, n - 1 do
        local sum = 0.0
        for j = 0, n - 1 do sum = sum + (transposed and entry(j, i) or entry(i, j)) * vector[j + 1] end
        out[i + 1] = sum
    end
    return out
end
local n, vector = 250, {}
for i = 1, n do vector[i] = 1.0 end
for _ = 1, 30 do vector = times(times(vector, n, false), n, true); local s = 0; for i = 1, n do s = s + vector[i] end
    for i = 1, n do vector[i] = vector[i] / s end end
local sieve, primes = {}, 0
for i = 2, 2000000 do
    if not sieve[i] then primes = primes + 1; for j = i * i, 2000000, i do sieve[j] = true end end
end
print(string.format("%.9f", vector[1]), primes)
