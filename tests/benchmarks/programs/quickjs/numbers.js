// Numbers: doubles in typed arrays, 32-bit integers, large integers.
const size = 90, a = new Float64Array(size * size), b = new Float64Array(size * size);
for (let i = 0; i < size * size; i++) { a[i] = i % 17; b[i] = i % 13; }
let trace = 0;
for (let i = 0; i < size; i++)
    for (let j = 0; j < size; j++) {
        let sum = 0;
        for (let k = 0; k < size; k++) sum += a[i * size + k] * b[k * size + j];
        if (i === j) trace += sum;
    }
let hash = 0x811c9dc5 | 0;
for (let i = 0; i < 3000000; i++) hash = Math.imul(hash ^ (i & 255), 16777619);
let large = 1n;
for (let i = 1n; i < 1500n; i++) large *= i;
console.log(trace, hash, large.toString().length, String(large % 1000000007n));
