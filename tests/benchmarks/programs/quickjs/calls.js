// Calls: recursion, closures, methods, generators.
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
class Account { constructor() { this.n = 0; } add(k) { this.n += k; return this; } get half() { return this.n / 2; } }
function* numbers(n) { for (let i = 0; i < n; i++) yield i; }
let total = fibonacci(26);
const account = new Account();
for (let i = 0; i < 400000; i++) {
    const step = n => n + i;
    account.add(step(1)).add(2);
    if (i % 8 === 0) total += account.half;
}
for (const n of numbers(200000)) total += n;
console.log(total, account.n);
