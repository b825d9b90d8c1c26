// Typical work of scripts, for the profile by which the interpreter is compiled: a little of each
// kind of value, and of the parser.
class Shape {
    #side;
    constructor(side) { this.#side = side; this.name = `shape${side}`; }
    get area() { return this.#side ** 2; }
    scaled(by) { return new this.constructor(this.#side * by); }
    static of(...sides) { return sides.map(side => new this(side)); }
}
class Box extends Shape {
    scaled(by) { return super.scaled(by + 1); }
    *[Symbol.iterator]() { for (let i = 0; i < 3; i++) yield [this.name, i]; }
}
function objects(n) {
    let sum = 0;
    const seen = new Map(), kinds = new Set(), plain = {};
    for (let i = 0; i < n; i++) {
        const [shape, box] = [...Shape.of(i % 9), ...Box.of(i % 7)];
        sum += shape.area + box.scaled(2).area;
        for (const [name, k] of box) seen.set(name + k, (seen.get(name + k) ?? 0) + 1);
        plain['key' + i % 40] = { i, ...plain['key' + (i + 1) % 40], next: null };
        kinds.add(typeof plain[i % 5 ? 'key1' : 'none']);
        if ('key3' in plain && i % 11 === 0) delete plain.key3;
    }
    return sum + seen.size + Object.entries(plain).filter(([, { i }]) => i & 1).length + [...kinds].join().length;
}
function texts(n) {
    const lines = Array.from({ length: n }, (_, i) => `name${i % 50} = ${i * 1.5}; // "${String.fromCharCode(97 + i % 26)}"\t\u00e9`);
    const text = lines.join('\n'), found = {};
    for (const match of text.matchAll(/(\w+)(\d) = ([\d.]+);/g)) found[match[1]] = (found[match[1]] || 0) + parseFloat(match[3]);
    const changed = text.replace(/"(.)"/g, (_, c) => c.toUpperCase()).split('\n').map(line => line.trim().padEnd(40, '.').slice(2, 30));
    let sum = 0;
    for (let i = 0; i < text.length; i += 7) sum += text.charCodeAt(i) + (text[i] === 'n' ? 1 : 0);
    return sum + changed.sort((a, b) => a < b ? 1 : a > b ? -1 : 0).indexOf('name') + JSON.stringify(found).length + text.lastIndexOf('name7');
}
function numbers(n) {
    const typed = new Float64Array(n), words = new Uint32Array(n), list = [];
    for (let i = 0; i < n; i++) {
        typed[i] = Math.sqrt(i) * Math.sin(i) + (i % 3 ? i / 7 : -i);
        words[i] = (i * 2654435761 ^ i << 5) >>> (i & 7);
        list.push(i % 13 - 6, words[i] | 0);
    }
    let big = 1n;
    for (let i = 1n; i < 120n; i++) big = big * i % (1n << 300n) + 7n;
    const rows = [];
    for (let i = 0; i < 20; i++) { rows[i] = []; for (let j = 0; j < 20; j++) rows[i][j] = list[i * 20 + j] * typed[j]; }
    list.sort((a, b) => a - b);
    return list.reduce((a, b) => a + b, 0) + typed.reduce((a, b) => Math.max(a, b)) + rows.flat().length + Number(big % 1000n) + list.includes(99);
}
function calls(n) {
    const add = (a, b = 1, ...rest) => a + b + rest.length;
    const counter = () => { let count = 0; return { up: () => ++count, get value() { return count; } }; };
    function walk(tree, depth) { return tree ? depth + walk(tree.left, depth + 1) + walk(tree.right, depth + 1) : 0; }
    const grow = depth => depth ? { left: grow(depth - 1), right: depth % 3 ? grow(depth - 1) : undefined } : null;
    let sum = 0;
    const count = counter();
    for (let i = 0; i < n; i++) {
        sum += add(i) + add(i, 2, 3, 4) + add.call(null, i, i) + add.apply(null, [i, 1]) + count.up();
        try { if (i % 50 === 0) throw new RangeError(`at ${i}`); } catch (error) { sum += error.message.length; } finally { sum++; }
        switch (i % 6) { case 0: sum ^= 3; break; case 1: case 4: sum -= count.value; break; default: sum += [1, 2, 3].map(x => x * i).length; }
    }
    return sum + walk(grow(9), 1);
}
function parsed(n) {
    let sum = 0;
    for (let i = 0; i < n; i++) {
        const value = JSON.parse(`{"id": ${i}, "list": [1, 2.5, -3e2, true, null, "t\\n\\u0041"], "more": {"a": {"b": [[], {}]}}}`);
        sum += JSON.stringify({ ...value, when: new Date(1e12 + i * 1e7) }, null, i % 3).length;
        sum += new Function('a', `let b = a + ${i}; for (var c = 0; c < 5; c++) { if (b % 2) b += c; else b--; } return b;`)(i);
    }
    return sum;
}
async function later(n) { let sum = 0; for (let i = 0; i < n; i++) sum += await Promise.resolve(i).then(x => x * 2); return sum; }
console.log(objects(3000), texts(2500), numbers(12000), calls(15000), parsed(400));
later(2000).then(console.log);
