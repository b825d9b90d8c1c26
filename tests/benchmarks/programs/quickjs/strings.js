// Strings, regular expressions, JSON.
let total = 0;
const records = [];
for (let i = 0; i < 40000; i++) {
    let text = `${i}:abc:${(i / 3).toFixed(2)}`;
    text = text.replace(/\d+/g, digits => digits + "x");
    for (const word of text.split(":")) total += word.length;
    total += text.toUpperCase().indexOf("X:") + text.charCodeAt(1);
    if (i < 8000) records.push({ id: i, name: text, tags: ["a", "bc"], inner: { share: i / 7 } });
}
for (let turn = 0; turn < 4; turn++) total += JSON.stringify(JSON.parse(JSON.stringify(records))).length;
console.log(total);
