"""Large integers: products, quotients, powers, decimal text."""

import sys

sys.set_int_max_str_digits(0)
product = 1
for i in range(1, 3000):
    product *= i
text = str(product)[:4000]
number = int(text)
total = len(text) + number % 1000003
modulus = (1 << 1279) - 1
power = 3
for turn in range(60):
    power = pow(power, 65537 + turn, modulus)
    total += power % 97
quotient, rest = divmod(product, number)
total += quotient.bit_length() + rest.bit_length()
a, b = 0, 1
for _ in range(20000):
    a, b = b, a + b
small = 0
for i in range(600000):
    small = (small * 31 + i) % 1000000007
print(total, a % 1000000007, small)
