// A program of AssemblyScript: data from the first page of memory on, and a collector of its own.
let total: u64 = 0;
for (let i: u64 = 0; i < 100000; i++) total = total * 31 + i;
console.log("arguments " + process.argv.slice(1).join(" "));
console.log("total " + total.toString());
const squares = new Map<string, i32>();
for (let i = 0; i < 1000; i++) squares.set("n" + i.toString(), i * i);
console.log("squares " + squares.size.toString() + " " + squares.get("n77").toString());
process.exit(5);
