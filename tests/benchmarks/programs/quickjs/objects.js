// Objects, arrays, maps: filled, read, sorted.
let total = 0;
for (let turn = 1; turn <= 6; turn++) {
    const array = [], hash = {}, map = new Map();
    for (let i = 0; i < 60000; i++) array.push(i * turn % 1009);
    for (const n of array) { hash["k" + n] = (hash["k" + n] || 0) + 1; map.set(n, (map.get(n) || 0) + 1); }
    for (const key in hash) total += hash[key];
    const points = array.map((n, i) => ({ x: n, y: i % 7 }));
    for (const point of points) [point.x, point.y] = [point.y, point.x];
    points.sort((a, b) => a.y - b.y || a.x - b.x);
    total += points[turn].y + array.filter(n => n % 3 === 0).reduce((a, b) => a + b, 0) + map.size;
}
console.log(total);
