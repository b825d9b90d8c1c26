// The basics of ten packages that many programs use. Prints `ok NAME` or what is wrong.
const assert = require('assert');
const { once } = require('events');
const http = require('http');

function get(port, options, body) {
    return new Promise((resolve, reject) => {
        const request = http.request({ port, ...options }, response => {
            let text = '';
            response.on('data', data => { text += data; });
            response.on('end', () => resolve([response.statusCode, text]));
        });
        request.on('error', reject);
        request.end(body);
    });
}

const packages = {
    lodash(_) {
        assert.deepStrictEqual(_.chunk([1, 2, 3, 4, 5], 2), [[1, 2], [3, 4], [5]]);
        assert.strictEqual(_.camelCase('foo bar'), 'fooBar');
        assert(_.isEqual(_.cloneDeep({ a: [1, { b: 2 }] }), { a: [1, { b: 2 }] }));
        assert.strictEqual(_.template('hi <%= x %>')({ x: 1 }), 'hi 1');
    },
    chalk: chalk => assert.strictEqual(new chalk.Instance({ level: 1 }).red('x'), '\x1b[31mx\x1b[39m'),
    commander({ Command }) {
        const program = new Command().option('-n, --num <n>').argument('<file>');
        program.parse(['node', 'x', '-n', '5', 'file']);
        assert.deepStrictEqual([program.opts().num, program.args], ['5', ['file']]);
    },
    semver(semver) {
        assert(semver.satisfies('1.2.3', '^1.0.0') && !semver.satisfies('2.0.0', '^1.0.0'));
        assert.strictEqual(semver.inc('1.2.3', 'minor'), '1.3.0');
    },
    uuid(uuid) {
        assert(uuid.validate(uuid.v4()));
        assert.strictEqual(uuid.v5('hello.example.com', uuid.v5.DNS), 'fdda765f-fc57-5604-a269-52a7df8164ec');
    },
    yargs(yargs) {
        const found = yargs(['--x', '3', 'y']).parse();
        assert.deepStrictEqual([found.x, found._], [3, ['y']]);
    },
    minimist: minimist => assert.deepStrictEqual(minimist(['-a', '1', 'b']), { _: ['b'], a: 1 }),
    async: async async => assert.deepStrictEqual(await async.mapLimit([1, 2, 3], 2, async n => n * 2), [2, 4, 6]),
    moment: moment => assert.strictEqual(moment.utc(0).format('YYYY-MM-DD'), '1970-01-01'),
    async express(express) {
        const app = express();
        app.use(express.json());
        app.get('/a/:id', (request, response) => response.json({ id: request.params.id, query: request.query }));
        app.post('/p', (request, response) => response.send(request.body));
        const server = app.listen(0);
        await once(server, 'listening');
        const { port } = server.address();
        const headers = { 'content-type': 'application/json' };
        assert.deepStrictEqual(await get(port, { path: '/a/7?x=1' }), [200, '{"id":"7","query":{"x":"1"}}']);
        assert.deepStrictEqual(await get(port, { path: '/p', method: 'POST', headers }, '{"z":1}'), [200, '{"z":1}']);
        assert.strictEqual((await get(port, { path: '/none' }))[0], 404);
        server.close();
    },
};

(async () => {
    for (const [name, use] of Object.entries(packages))
        try {
            await use(require(name));
            console.log('ok', name);
        } catch (error) {
            console.log('FAILED', name, error);
            process.exitCode = 1;
        }
})();
