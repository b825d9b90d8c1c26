// fs: at once, with a callback, with promises, and as streams.
const fs = require('fs');
const path = require('path');
const os = require('os');
const assert = require('assert');

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'files-'));
const file = path.join(dir, 'a.txt');
fs.writeFileSync(file, 'one\n');
fs.appendFileSync(file, 'two\n');
console.log(fs.readFileSync(file, 'utf8').split('\n'), fs.statSync(file).size, fs.statSync(file).isFile());
fs.symlinkSync('a.txt', path.join(dir, 'link'));
fs.mkdirSync(path.join(dir, 'x/y/z'), { recursive: true });
console.log(fs.readdirSync(dir, { withFileTypes: true }).map(e => [e.name, e.isDirectory(), e.isSymbolicLink()]));
console.log(fs.readlinkSync(path.join(dir, 'link')), fs.existsSync(path.join(dir, 'none')));
for (const wrong of [() => fs.readFileSync('/none'), () => fs.rmdirSync(dir), () => fs.openSync(file, 'wx')])
    try {
        wrong();
    } catch (error) {
        console.log(error.code, error.syscall);
    }
fs.readFile('/none', error => console.log('callback', error.code, error.errno));
(async () => {
    const handle = await fs.promises.open(file, 'r+');
    await handle.write('ONE', 0);
    console.log((await handle.readFile('utf8')), (await handle.stat()).size);
    await handle.close();
    const out = fs.createWriteStream(path.join(dir, 'big'));
    for (let i = 0; i < 1000; i++) out.write(`line ${i}\n`);
    out.end();
    await require('events').once(out, 'finish');
    let size = 0;
    for await (const chunk of fs.createReadStream(path.join(dir, 'big'))) size += chunk.length;
    console.log('streamed', size);
    // Bytes that are detached while they are written, and memory that changes its length.
    const bytes = new Uint8Array(100000).fill(65), detached = path.join(dir, 'detached'), fd = fs.openSync(detached, 'w');
    await new Promise(done => {
        fs.write(fd, bytes, done);
        structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    });
    console.log(bytes.length, fs.readFileSync(detached, 'latin1') === 'A'.repeat(100000), fs.readFileSync(detached).buffer.resizable);
    await new Promise(done => fs.readv(fd, [], error => done(console.log('nothing to read into', error.code))));
    fs.closeSync(fd);
    fs.unlinkSync(detached);
    const memory = new ArrayBuffer(100, { maxByteLength: 1000 }), view = new Uint8Array(memory);
    for (const length of [10, 300]) {
        memory.resize(length);
        console.log(length, require('crypto').createHash('md5').update(view).digest('hex'));
    }
    await fs.promises.cp(dir, `${dir}-copy`, { recursive: true });
    assert.deepStrictEqual(fs.readdirSync(`${dir}-copy`), ['a.txt', 'big', 'link', 'x']);
    for (const each of [dir, `${dir}-copy`]) fs.rmSync(each, { recursive: true });
    console.log('gone', fs.existsSync(dir));
})();
